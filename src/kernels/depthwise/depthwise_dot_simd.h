/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: the depthwise convolutions of 8-bit pixels by vpdpbusd, four taps at once.  INT8 has tiles and columns.
 * UINT8, whose weights have 9 bits, has columns of two parts, and the tiles of another instruction set.  The includer
 * defines the names of depthwise_columns_simd.h, which it includes before, and:
 *
 *   DEPTH_ISA, DEPTH_STORES     as in depthwise_simd.h
 *   U8_TILES                    the instruction set whose tiles UINT8 takes
 *   IN_REGISTER                 as in gemm_simd.h
 *   four_taps(tap, at)          DOT_LANES channels of four taps, from byte `at` of each on, with 128 added
 */
#include "base/names.h"

/* Vectors [at, at + count) of rows [r, r + rows): rows share the loads of weights. */
INLINE void part(const tq_depthwise_tile *t, size_t r, const int rows, size_t at, const int count)
{
    vi sums[2][4];
    const size_t offset = t->offset + at * DOT_LANES, vector_bytes = t->vector_bytes;
    const char *weights = t->weights + at * vector_bytes;
    const int32_t *bias = (const int32_t *)t->bias + at * DOT_LANES;
    EACH (i, rows)
        EACH (k, count)
            sums[i][k] = load_vector(bias + k * DOT_LANES);
    const void *const *row = t->row + r;
    const size_t step = t->step;
    for (size_t left = t->taps; left > 0; left = left < 4 ? 0 : left - 4, row += 4 * step, weights += DOT_LANES * 4) {
        /* weights past the last tap are 0: any pixel will do */
        const size_t at1 = left > 1 ? step : 0, at2 = left > 2 ? 2 * step : 0, at3 = left > 3 ? 3 * step : 0;
        const char *tap[2][4];
        EACH (i, rows) {
            tap[i][0] = (const char *)row[i] + offset;
            tap[i][1] = (const char *)row[at1 + (size_t)i] + offset;
            tap[i][2] = (const char *)row[at2 + (size_t)i] + offset;
            tap[i][3] = (const char *)row[at3 + (size_t)i] + offset;
        }
        EACH (k, count) {
            vi w = load_vector(weights + (size_t)k * vector_bytes);
            IN_REGISTER(w);
            EACH (i, rows)
                sums[i][k] = dot(sums[i][k], four_taps(tap[i], (size_t)k * DOT_LANES), w);
        }
    }
    EACH (i, rows)
        EACH (k, count)
            save_s32((int32_t *)t->sums + ((r + (size_t)i) * t->vectors + at + (size_t)k) * DOT_LANES, sums[i][k]);
}

INLINE void some_rows(const tq_depthwise_tile *t, size_t r, const int rows)
{
    size_t at = 0;
    for (; at + 4 <= t->vectors; at += 4)
        part(t, r, rows, at, 4);
    switch (t->vectors - at) {
    case 3: part(t, r, rows, at, 3); break;
    case 2: part(t, r, rows, at, 2); break;
    case 1: part(t, r, rows, at, 1); break;
    default: break;
    }
}

static TARGET void tile(const tq_depthwise_tile *t)
{
    size_t r = 0;
    for (; r + 2 <= t->rows; r += 2)
        some_rows(t, r, 2);
    if (r < t->rows)
        some_rows(t, r, 1);
}

static void tile_u8(const tq_depthwise_tile *t)
{
    TQ_GLUE(tq_depthwise_u8__, U8_TILES).tile(t);
}

const tq_depthwise_kernel TQ_GLUE(tq_depthwise_i8__, DEPTH_ISA) = {
    .isa = TQ_TEXT(DEPTH_ISA),
    .lanes = DOT_LANES,
    .group = 4,
    .weight_bytes = 1,
    .flip = 0x80,
    .columns_flip = 0x80,
    .tile = tile,
    .columns = columns,
    .interleave = interleave,
    .stores = &DEPTH_STORES,
};

const tq_depthwise_kernel TQ_GLUE(tq_depthwise_u8__, DEPTH_ISA) = {
    .isa = TQ_TEXT(DEPTH_ISA),
    .lanes = DOT_LANES,
    .group = 2,
    .weight_bytes = 2,
    .tile = tile_u8,
    .columns = columns,
    .interleave = interleave,
    .stores = &DEPTH_STORES,
};
