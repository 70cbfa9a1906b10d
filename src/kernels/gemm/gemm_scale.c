/* SPDX-License-Identifier: Apache-2.0
 *
 * Integer sums of a tile to floats, by a scale a row and a scale a channel.
 */
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "kernels/gemm/gemm_parts.h"
#include "kernels/isa.h"

enum { WIDE = 16, NARROW = 8 }; /* channels of a block; panels are whole NARROWs, so that these may be read */

typedef struct columns {
    float scale[WIDE], bias[WIDE];
    int32_t weight_sum[WIDE];
} columns;

/* The columns of n channels from `channel` on, and neutral ones up to `width`. */
TQ_BODY void load_columns(const tq_gemm_scaling *s, size_t channel, size_t n, const size_t width, columns *to)
{
    for (size_t i = 0; i < width; i++) {
        const size_t c = channel + (i < n ? i : 0);
        to->scale[i] = s->scale[s->scale_step * c];
        to->weight_sum[i] = s->weight_sums[c];
        to->bias[i] = s->bias ? s->bias[c] : s->order == TQ_SCALE_FUSED ? 0.0f : -0.0f; /* -0 changes no sum */
    }
}

TQ_BODY float clamped(float x, float low, float high, const bool drops_nan)
{
    if (drops_nan) {
        x = x > high ? high : x;
        return x > low ? x : low;
    }
    return tq_bounded(x, low, high);
}

/* n channels of all rows, from channel `at` of the tile on. */
TQ_BODY void scale_block(const tq_tile_store *t, size_t row, size_t at, size_t n, const size_t width,
                         const tq_scale_order order, const bool drops_nan)
{
    const tq_gemm_scaling *s = t->store->scaling;
    const float low = t->store->floor, high = t->store->ceiling;
    columns col;
    load_columns(s, t->first + at, n, width, &col);
    for (size_t r = 0; r < t->rows; r++) {
        const tq_quantized_row by = s->row[s->row_step * (row + r)];
        const int32_t *sums = (const int32_t *)t->sums + r * t->sums_stride + at;
        float y[WIDE];
        for (size_t i = 0; i < width; i++) {
            const float sum =
                (float)(int32_t)((uint32_t)sums[i] - (uint32_t)by.zero_point * (uint32_t)col.weight_sum[i]);
            const float x = order == TQ_SCALE_FUSED      ? fmaf(sum * by.scale, col.scale[i], col.bias[i])
                            : order == TQ_SCALE_ROW_LAST ? col.bias[i] + sum * col.scale[i] * by.scale
                                                         : col.bias[i] + sum * (col.scale[i] * by.scale);
            y[i] = clamped(x, low, high, drops_nan);
        }
        float *to = (float *)t->out + r * t->out_stride + at;
        if (n == width)
            memcpy(to, y, width * sizeof *y);
        else
            tq_copy_part((char *)to, (const char *)y, n * sizeof *y);
    }
}

TQ_BODY void scale_tile(const tq_tile_store *t, size_t row, const tq_scale_order order, const bool drops_nan)
{
    size_t at = 0;
    for (; at + WIDE <= t->channels; at += WIDE)
        scale_block(t, row, at, WIDE, WIDE, order, drops_nan);
    for (; at < t->channels; at += NARROW)
        scale_block(t, row, at, tq_min_size(NARROW, t->channels - at), NARROW, order, drops_nan);
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
