/* SPDX-License-Identifier: Apache-2.0
 *
 * Integer sums of a tile to floats, by a scale a row and a scale a channel.
 */
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "kernels/gemm/gemm_parts.h"
#include "kernels/isa.h"

enum { BLOCK = 16, HALF = 8, LEAST_LANES = 4 }; /* channels: of a block and a half one; of a panel */

typedef struct columns {
    float scale[BLOCK], bias[BLOCK];
    int32_t weight_sum[BLOCK];
} columns;

/* The first n of a block's entries; the others are 0. */
TQ_BODY void load_entries(void *to, const void *from, size_t n)
{
    memset(to, 0, BLOCK * sizeof(float));
    if (n == BLOCK)
        memcpy(to, from, BLOCK * sizeof(float));
    else
        tq_copy_part(to, from, n % BLOCK * sizeof(float)); /* compilers see that it fits */
}

TQ_BODY void splat(float x, float *to)
{
    for (size_t i = 0; i < BLOCK; i++)
        to[i] = x;
}

/* The columns of n channels from `channel` on. */
TQ_BODY void load_columns(const tq_gemm_scaling *s, size_t channel, size_t n, columns *to)
{
    load_entries(to->weight_sum, s->weight_sums + channel, n);
    if (s->scale_step)
        load_entries(to->scale, s->scale + channel, n);
    else
        splat(s->scale[0], to->scale);
    if (s->bias)
        load_entries(to->bias, s->bias + channel, n);
    else
        splat(s->order == TQ_SCALE_FUSED ? 0.0f : -0.0f, to->bias); /* -0 changes no sum */
}

TQ_BODY float clamped(float x, float low, float high, const bool drops_nan)
{
    if (drops_nan) {
        x = x > high ? high : x;
        return x > low ? x : low;
    }
    return tq_bounded(x, low, high);
}

/* `width` channels of one row.  y overlaps neither sums nor col: compilers find vectors and store them where they
 * belong. */
TQ_BODY void scale_sums(const int32_t *sums, const columns *col, tq_quantized_row by, float low, float high,
                        const tq_scale_order order, const bool drops_nan, float *restrict y, const size_t width)
{
    TQ_EACH_LANE (i, width) {
        const uint32_t shift = (uint32_t)by.zero_point * (uint32_t)col->weight_sum[i];
        const float sum = (float)(int32_t)((uint32_t)sums[i] - shift);
        const float x = order == TQ_SCALE_FUSED      ? fmaf(sum * by.scale, col->scale[i], col->bias[i])
                        : order == TQ_SCALE_ROW_LAST ? col->bias[i] + sum * col->scale[i] * by.scale
                                                     : col->bias[i] + sum * (col->scale[i] * by.scale);
        y[i] = clamped(x, low, high, drops_nan);
    }
}

/* `width` channels of all rows, from channel `at` of the tile on, of which n are in use. */
TQ_BODY void scale_block(const tq_tile_store *t, size_t row, size_t at, size_t n, const tq_scale_order order,
                         const bool drops_nan, float *to, size_t out_stride, const size_t width)
{
    const tq_gemm_scaling *s = t->store->scaling;
    const float low = t->store->floor, high = t->store->ceiling;
    const size_t stride = t->sums_stride, row_step = s->row_step;
    const tq_quantized_row *by = s->row + row_step * row;
    const int32_t *sums = (const int32_t *)t->sums + at;
    columns col;
    load_columns(s, t->first + at, n, &col);
    for (size_t r = t->rows; r > 0; r--, sums += stride, to += out_stride, by += row_step)
        scale_sums(sums, &col, *by, low, high, order, drops_nan, to, width);
}

/* TQ_GEMM_SLACK bytes follow the sums, so that the last block is whole, too; its results go by `part`. */
TQ_BODY void scale_tile(const tq_tile_store *t, size_t row, const tq_scale_order order, const bool drops_nan)
{
    float *out = t->out, part[TQ_TILE_ROWS * TQ_TILE_CHANNELS / LEAST_LANES * BLOCK];
    const size_t rest = t->channels % BLOCK == HALF ? 0 : t->channels % BLOCK, whole = t->channels - rest;
    for (size_t at = 0, n; at < t->channels; at += n) {
        n = tq_min_size(BLOCK, t->channels - at);
        float *to = at < whole ? out + at : part;
        const size_t stride = at < whole ? t->out_stride : BLOCK;
        if (n > HALF)
            scale_block(t, row, at, n, order, drops_nan, to, stride, BLOCK);
        else
            scale_block(t, row, at, n, order, drops_nan, to, stride, HALF);
    }
    for (size_t r = 0; rest && r < t->rows; r++)
        tq_copy_part((char *)(out + r * t->out_stride + whole), (const char *)(part + r * BLOCK), rest * sizeof *out);
}

#define SCALE(name, target, order, drops_nan)                   \
    target static void name(const tq_tile_store *t, size_t row) \
    {                                                           \
        scale_tile(t, row, order, drops_nan);                   \
    }
TQ_ISA_DEFINE(SCALE, scale_plain, TQ_SCALE_PLAIN, false)
TQ_ISA_DEFINE(SCALE, scale_row_last, TQ_SCALE_ROW_LAST, false)
TQ_ISA_DEFINE(SCALE, scale_fused, TQ_SCALE_FUSED, false)
TQ_ISA_DEFINE(SCALE, drop_plain, TQ_SCALE_PLAIN, true)
TQ_ISA_DEFINE(SCALE, drop_fused, TQ_SCALE_FUSED, true)

void tq_gemm_scale_tile(const tq_tile_store *t, size_t row)
{
    typedef void (*scale_fn)(const tq_tile_store *, size_t);
    static const scale_fn keeping[][TQ_ISAS] = {[TQ_SCALE_PLAIN] = TQ_ISA_FUNCTIONS(scale_plain),
                                                [TQ_SCALE_ROW_LAST] = TQ_ISA_FUNCTIONS(scale_row_last),
                                                [TQ_SCALE_FUSED] = TQ_ISA_FUNCTIONS(scale_fused)};
    static const scale_fn dropping[][TQ_ISAS] = {[TQ_SCALE_PLAIN] = TQ_ISA_FUNCTIONS(drop_plain),
                                                 [TQ_SCALE_ROW_LAST] = TQ_ISA_FUNCTIONS(scale_row_last),
                                                 [TQ_SCALE_FUSED] = TQ_ISA_FUNCTIONS(drop_fused)};
    const tq_gemm_scaling *s = t->store->scaling;
    (s->drops_nan ? dropping : keeping)[s->order][tq_isa()](t, row);
}
