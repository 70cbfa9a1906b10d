/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: the depthwise convolution of one element type.  The includer defines, and this file undefines at its end:
 *
 *   IN, DEPTH_ISA               i8 ..., avx2 ...; TARGET and INLINE are attributes of functions
 *   DEPTH_STORES                tq_stores of products.h
 *   DEPTH_LANES, DEPTH_GROUP    channels of a vector; taps that are multiplied at once (1 or 2)
 *   IN_BYTES, WEIGHT_BYTES      of an element
 *   sums_t, first_sums, last_sums, save_sums: as in gemm_simd.h
 *   weights_t, load_weights
 *   multiply(sums, a, b, weights): a and b point to a vector of each of two taps (groups of 1: of the same tap)
 *   BAND_COLUMNS_FIRST          the order of taps (tq_scan) of bands, where the body has them; else undefined
 *   COLUMN_FIELDS               of tq_depthwise_kernel, where the body has columns; else undefined
 *   IN_REGISTER(x)              holds x in a register, where compilers would load it twice
 */
#include "base/names.h"
#define LOCAL(name) TQ_GLUE4(depthwise_, IN, _, name)
#define EACH(i, n) _Pragma("GCC unroll 8") for (int i = 0; i < n; i++)
#define VECTOR_WEIGHTS (DEPTH_LANES * DEPTH_GROUP * WEIGHT_BYTES)

/* Vectors [at, at + count) of rows [r, r + rows): rows share the loads of weights. */
INLINE void LOCAL(part)(const tq_depthwise_tile *t, size_t r, const int rows, size_t at, const int count)
{
    sums_t sums[4][4];
    const size_t offset = t->offset + at * DEPTH_LANES * IN_BYTES, vector_bytes = t->vector_bytes;
    const char *weights = t->weights + at * vector_bytes;
    const void *const *row = t->row + r;
    EACH (k, count)
        EACH (i, rows)
            sums[i][k] = first_sums((const char *)t->bias + (at + (size_t)k) * DEPTH_LANES * 4);
    for (size_t tap = 0; tap < t->taps; tap += DEPTH_GROUP, weights += VECTOR_WEIGHTS) {
        /* the weight past the last tap is 0: any pixel will do */
        const size_t step = tap + DEPTH_GROUP <= t->taps ? (DEPTH_GROUP - 1) * t->step : 0;
        const char *a[4], *b[4];
        EACH (i, rows) {
            a[i] = (const char *)row[tap * t->step + (size_t)i] + offset;
            b[i] = (const char *)row[tap * t->step + (size_t)i + step] + offset;
            (void)b[i]; /* groups of one tap do not read it */
        }
        EACH (k, count) {
            weights_t w = load_weights(weights + (size_t)k * vector_bytes);
            IN_REGISTER(w);
            EACH (i, rows)
                sums[i][k] =
                    multiply(sums[i][k], a[i] + k * DEPTH_LANES * IN_BYTES, b[i] + k * DEPTH_LANES * IN_BYTES, w);
        }
    }
    EACH (i, rows)
        EACH (k, count)
            save_sums((char *)t->sums + (r + (size_t)i) * t->sums_stride + (at + (size_t)k) * DEPTH_LANES * 4,
                      last_sums(sums[i][k], (const char *)t->bias + (at + (size_t)k) * DEPTH_LANES * 4));
}

INLINE void LOCAL(rows)(const tq_depthwise_tile *t, size_t r, const int rows)
{
    size_t at = 0;
    for (; at + 4 <= t->vectors; at += 4)
        LOCAL(part)(t, r, rows, at, 4);
    switch (t->vectors - at) {
    case 3: LOCAL(part)(t, r, rows, at, 3); break;
    case 2: LOCAL(part)(t, r, rows, at, 2); break;
    case 1: LOCAL(part)(t, r, rows, at, 1); break;
    default: break;
    }
}

static TARGET void LOCAL(tile)(const tq_depthwise_tile *tile)
{
    const tq_depthwise_tile own = *tile, *t = &own; /* stores of sums cannot change it */
    size_t r = 0;
#ifdef SLIDE_TILE
    if (SLIDE_TILE(t))
        return;
#endif
    for (; r + 4 <= t->rows; r += 4)
        LOCAL(rows)(t, r, 4);
    for (; r < t->rows; r++)
        LOCAL(rows)(t, r, 1);
}

#ifdef BAND_COLUMNS_FIRST
/* side: 0 at an edge, where some taps are left out.  Taps are added by lines of the filter, in their order; between
   them, IN_REGISTER makes compilers finish all sums. */
INLINE void LOCAL(band_of)(const tq_depthwise_band *t, const int side)
{
    const int first = side ? 0 : (int)t->from, behind = side ? side : (int)t->to, all = side ? side : (int)t->side;
    size_t at = 0, to = 0;
    for (size_t x = 0; x < t->pixels; x++, at += t->skip, to += t->gap) {
        const char *weights = t->weights, *bias = t->bias;
        for (size_t v = 0; v < t->vectors; v++, at += DEPTH_LANES * IN_BYTES, to += DEPTH_LANES * 4) {
            sums_t sums[TQ_BAND_LINES];
            EACH (r, TQ_BAND_LINES)
                sums[r] = first_sums(bias);
            EACH (g, all) {
                EACH (k, all) {
                    const int i = BAND_COLUMNS_FIRST ? k : g, j = BAND_COLUMNS_FIRST ? g : k;
                    const weights_t w = load_weights(weights);
                    weights += VECTOR_WEIGHTS;
                    if (first <= j && j < behind)
                        EACH (r, TQ_BAND_LINES)
                            sums[r] = multiply(sums[r], t->row[i][r] + at + (size_t)(j - first) * t->column, NULL, w);
                }
                EACH (r, TQ_BAND_LINES)
                    IN_REGISTER(sums[r]);
            }
            EACH (r, TQ_BAND_LINES)
                save_sums(t->out[r] + to, last_sums(sums[r], bias));
            bias += DEPTH_LANES * 4;
        }
    }
}

static TARGET void LOCAL(band)(const tq_depthwise_band *band)
{
    const tq_depthwise_band own = *band, *t = &own; /* stores cannot change it */
    if (t->to - t->from < t->side)
        LOCAL(band_of)(t, 0);
    else if (t->side == 3)
        LOCAL(band_of)(t, 3);
    else
        LOCAL(band_of)(t, 5);
}
#define BAND_FIELDS .band = LOCAL(band), .band_columns_first = BAND_COLUMNS_FIRST,
#else
#define BAND_FIELDS
#endif

#ifndef COLUMN_FIELDS
#define COLUMN_FIELDS
#endif

const tq_depthwise_kernel TQ_GLUE4(tq_depthwise_, IN, __, DEPTH_ISA) = {
    .isa = TQ_TEXT(DEPTH_ISA),
    .lanes = DEPTH_LANES,
    .group = DEPTH_GROUP,
    .weight_bytes = WEIGHT_BYTES,
    .tile = LOCAL(tile),
    .stores = &DEPTH_STORES,
    BAND_FIELDS COLUMN_FIELDS /* the last */
};

#undef LOCAL
#undef EACH
#undef VECTOR_WEIGHTS
#undef IN
#undef SLIDE_TILE
#undef COLUMN_FIELDS
#undef BAND_FIELDS
#undef BAND_COLUMNS_FIRST
#undef DEPTH_LANES
#undef DEPTH_GROUP
#undef IN_BYTES
#undef WEIGHT_BYTES
#undef sums_t
#undef first_sums
#undef last_sums
#undef save_sums
#undef weights_t
#undef load_weights
#undef multiply
