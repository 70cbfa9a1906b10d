/* SPDX-License-Identifier: Apache-2.0
 *
 * The scalar rows of gemm.def: the definition that every other row equals bit for bit.
 */
#include <math.h>
#include <string.h>

#include "kernels/gemm/products.h"
#include "kernels/inline.h"

#define LANES 8 /* channels of a panel; compilers vectorize over them */

static tq_tile_fn the_tile(tq_tile_fn tile, size_t rows, size_t panels)
{
    return rows == 1 && panels == 1 ? tile : NULL;
}

/* Flipped 8-bit rows are signed.  Sums wrap. */
static void tile_i8(const tq_tile *t)
{
    uint32_t sums[LANES];
    const int8_t *weights = (const int8_t *)t->panel;
    memcpy(sums, t->bias, sizeof sums);
    for (size_t run = 0; run < t->runs; run++) {
        const uint8_t *row = tq_tile_run(t, run, 0);
        for (size_t k = 0; k < t->length; k++, weights += LANES)
            for (size_t c = 0; c < LANES; c++)
                sums[c] += (uint32_t)((int8_t)(row[k] ^ t->flip) * weights[c]);
    }
    memcpy(t->sums, sums, sizeof sums);
}

static void tile_i16(const tq_tile *t)
{
    uint32_t sums[LANES];
    const int8_t *weights = (const int8_t *)t->panel;
    memcpy(sums, t->bias, sizeof sums);
    for (size_t run = 0; run < t->runs; run++) {
        const int16_t *row = tq_tile_run(t, run, 0);
        for (size_t k = 0; k < t->length; k++, weights += LANES)
            for (size_t c = 0; c < LANES; c++)
                sums[c] += (uint32_t)(row[k] * weights[c]);
    }
    memcpy(t->sums, sums, sizeof sums);
}

/* The two orders of gemm.h; always inlined, so that each has its own loop. */
TQ_INLINE void float_tile(const tq_tile *t, const bool fused)
{
    float sums[LANES];
    const float *weights = (const float *)(const void *)t->panel, *bias = t->bias;
    for (size_t c = 0; c < LANES; c++)
        sums[c] = fused ? bias[c] : 0;
    for (size_t run = 0; run < t->runs; run++) {
        const float *row = tq_tile_run(t, run, 0);
        for (size_t k = 0; k < t->length; k++, weights += LANES)
            for (size_t c = 0; c < LANES; c++)
                sums[c] = fused ? fmaf(row[k], weights[c], sums[c]) : sums[c] + row[k] * weights[c];
    }
    for (size_t c = 0; c < LANES; c++)
        ((float *)t->sums)[c] = tq_bounded(fused ? sums[c] : sums[c] + bias[c], t->floor, t->ceiling);
}

static void tile_f32(const tq_tile *t)
{
    float_tile(t, false);
}

static void tile_f32_fused(const tq_tile *t)
{
    float_tile(t, true);
}

static tq_tile_fn find_i8(size_t rows, size_t panels)
{
    return the_tile(tile_i8, rows, panels);
}
static tq_tile_fn find_i16(size_t rows, size_t panels)
{
    return the_tile(tile_i16, rows, panels);
}
static tq_tile_fn find_f32(size_t rows, size_t panels)
{
    return the_tile(tile_f32, rows, panels);
}
static tq_tile_fn find_f32_fused(size_t rows, size_t panels)
{
    return the_tile(tile_f32_fused, rows, panels);
}

static void copy_i8(const int8_t *from, int16_t *to, size_t n, int32_t zero_point)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (int16_t)(from[i] - zero_point);
}

static void copy_u8(const uint8_t *from, int16_t *to, size_t n, int32_t zero_point)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (int16_t)(from[i] - zero_point);
}

void tq_store_integers_scalar(const tq_tile_store *t)
{
    const tq_gemm_store *s = t->store;
    for (size_t r = 0; r < t->rows; r++)
        for (size_t c = 0; c < t->channels; c++) {
            uint32_t sum = ((const uint32_t *)t->sums)[r * t->sums_stride + c] + (uint32_t)t->adjust[r];
            const tq_multiplier *m = &s->multiplier[t->first + c];
            int32_t value = tq_requantize((int32_t)sum, m, m->rule, s->zero_point, s->low, s->high);
            size_t at = r * t->out_stride + c;
            if (s->out == TQ_i8)
                ((int8_t *)t->out)[at] = (int8_t)value;
            else if (s->out == TQ_u8)
                ((uint8_t *)t->out)[at] = (uint8_t)value;
            else
                ((int16_t *)t->out)[at] = (int16_t)value;
        }
}

void tq_store_wide_scalar(const tq_tile_store *t)
{
    const tq_gemm_store *s = t->store;
    for (size_t r = 0; r < t->rows; r++)
        for (size_t c = 0; c < t->channels; c++) {
            int64_t sum = ((const int64_t *)t->sums)[r * t->sums_stride + c];
            const tq_multiplier *m = &s->multiplier[t->first + c];
            int32_t value = tq_requantize_i64(sum, m, s->rule, s->zero_point, s->low, s->high);
            ((int16_t *)t->out)[r * t->out_stride + c] = (int16_t)value;
        }
}

void tq_store_floats_scalar(const tq_tile_store *t)
{
    const float low = t->store->floor, high = t->store->ceiling;
    for (size_t r = 0; r < t->rows; r++)
        for (size_t c = 0; c < t->channels; c++) {
            float x = ((const float *)t->sums)[r * t->sums_stride + c];
            ((float *)t->out)[r * t->out_stride + c] = tq_bounded(x, low, high);
        }
}

static int32_t sum_i8(const void *run, size_t n, uint8_t flip)
{
    uint32_t sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += (uint32_t)(int8_t)(((const uint8_t *)run)[k] ^ flip);
    return (int32_t)sum;
}

static int32_t sum_i16(const void *run, size_t n, uint8_t flip)
{
    (void)flip;
    uint32_t sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += (uint32_t)((const int16_t *)run)[k];
    return (int32_t)sum;
}

const tq_stores tq_stores__scalar = {.i8 = tq_store_integers_scalar,
                                     .u8 = tq_store_integers_scalar,
                                     .i16 = tq_store_integers_scalar,
                                     .i16_wide = tq_store_wide_scalar,
                                     .f32 = tq_store_floats_scalar};

const tq_gemm_kernel tq_gemm_i8__scalar = {
    .isa = "scalar",
    .lanes = LANES,
    .group = 1,
    .row_bytes = 1,
    .weight_bytes = 1,
    .rows = 1,
    .panels = 1,
    .wide_panels = 1,
    .flip_i8 = 0,
    .flip_u8 = 0x80,
    .tile = find_i8,
    .stores = &tq_stores__scalar,
    .row_sum = sum_i8,
};

const tq_gemm_kernel tq_gemm_i16__scalar = {
    .isa = "scalar",
    .lanes = LANES,
    .group = 1,
    .row_bytes = 2,
    .weight_bytes = 1,
    .rows = 1,
    .panels = 1,
    .wide_panels = 1,
    .tile = find_i16,
    .stores = &tq_stores__scalar,
    .row_sum = sum_i16,
    .copy_i8 = copy_i8,
    .copy_u8 = copy_u8,
};

const tq_gemm_kernel tq_gemm_f32__scalar = {
    .isa = "scalar",
    .lanes = LANES,
    .group = 1,
    .row_bytes = 4,
    .weight_bytes = 4,
    .rows = 1,
    .panels = 1,
    .wide_panels = 1,
    .tile = find_f32,
    .stores = &tq_stores__scalar,
};

const tq_gemm_kernel tq_gemm_f32_fused__scalar = {
    .isa = "scalar",
    .lanes = LANES,
    .group = 1,
    .row_bytes = 4,
    .weight_bytes = 4,
    .rows = 1,
    .panels = 1,
    .wide_panels = 1,
    .tile = find_f32_fused,
    .stores = &tq_stores__scalar,
};
