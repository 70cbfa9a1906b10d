/* SPDX-License-Identifier: Apache-2.0
 *
 * Float products without tiles, in the order of gemm.h: few channels, and weights that must skip padding.
 */
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "base/stop.h"
#include "kernels/gemm/gemm_parts.h"
#include "kernels/isa.h"

/* ---- few channels ---- */

enum { NARROW_ROWS = 16 };

static inline float add_up(const float *x, const float *weights, size_t n, size_t step)
{
    float sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += x[k] * weights[k * step];
    return sum;
}

/* NARROW_ROWS rows of one element each, contiguous: one vector. */
static inline void sum_single(const float *const *row, const float *weights, float sum[NARROW_ROWS])
{
    const float *x = row[0];
    for (size_t i = 0; i < NARROW_ROWS; i++)
        sum[i] = 0 + x[i] * weights[0];
}

/* NARROW_ROWS longer rows, eight side by side: the additions of one row depend on one another. */
static inline void sum_rows(const float *const *row, const float *weights, size_t n, size_t step,
                            float sum[NARROW_ROWS])
{
    for (size_t i = 0; i < NARROW_ROWS; i += 8) {
        float s[8] = {0};
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < 8; j++)
                s[j] += row[i + j][k] * weights[k * step];
        memcpy(sum + i, s, sizeof s);
    }
}

/* Fused sums, from the bias on; eight rows side by side. */
TQ_BODY void sum_fused(const float *const *row, size_t count, const float *weights, size_t n, size_t step, float bias,
                       float *sum)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        float s[8];
        for (size_t j = 0; j < 8; j++)
            s[j] = bias;
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < 8; j++)
                s[j] = fmaf(row[i + j][k], weights[k * step], s[j]);
        memcpy(sum + i, s, sizeof s);
    }
    for (; i < count; i++) {
        sum[i] = bias;
        for (size_t k = 0; k < n; k++)
            sum[i] = fmaf(row[i][k], weights[k * step], sum[i]);
    }
}

#define SUM_FUSED(isa, target)                                                                                \
    target static void sum_fused_##isa(const float *const *row, size_t count, const float *weights, size_t n, \
                                       size_t step, float bias, float *sum)                                   \
    {                                                                                                         \
        sum_fused(row, count, weights, n, step, bias, sum);                                                   \
    }
TQ_EVERY_ISA(SUM_FUSED)

typedef void (*sum_fused_fn)(const float *const *row, size_t count, const float *weights, size_t n, size_t step,
                             float bias, float *sum);

/* Output rows [first, first + count), count <= NARROW_ROWS; fused: NULL for plain sums. */
static void run_narrow_rows(const tq_gemm_call *call, sum_fused_fn fused, const float *const *row, size_t first,
                            size_t count)
{
    const tq_gemm *g = call->gemm;
    const size_t stride = call->out_stride;
    const float low = call->store->floor, high = call->store->ceiling;
    const bool neighbours = g->depth == 1 && row[count - 1] == row[0] + (count - 1);
    for (size_t c = 0; c < g->channels && !tq_stop_after(count * g->depth / 8); c++) {
        const float *weights = (const float *)g->panel + c, bias = ((const float *)g->bias)[c];
        float sum[NARROW_ROWS], *out = (float *)(void *)call->out + first * stride + c;
        if (fused)
            fused(row, count, weights, g->depth, g->lanes, bias, sum);
        else if (count < NARROW_ROWS)
            for (size_t i = 0; i < count; i++)
                sum[i] = add_up(row[i], weights, g->depth, g->lanes);
        else if (neighbours)
            sum_single(row, weights, sum);
        else
            sum_rows(row, weights, g->depth, g->lanes, sum);
        for (size_t i = 0; i < count; i++)
            out[i * stride] = tq_bounded(fused ? sum[i] : sum[i] + bias, low, high);
    }
}

void tq_gemm_run_narrow(const tq_gemm_call *call, const tq_gemm_space *space, size_t first, size_t count)
{
    static const sum_fused_fn bodies[TQ_ISAS] = TQ_ISA_FUNCTIONS(sum_fused);
    const sum_fused_fn fused = call->gemm->fused ? bodies[tq_isa()] : NULL;
    for (size_t i = 0; i < count; i += NARROW_ROWS)
        run_narrow_rows(call, fused, (const float *const *)(space->table + i), first + i,
                        tq_min_size(NARROW_ROWS, count - i));
}

/* ---- skipped padding ---- */

/* The plain sum of channel c, without its bias, over the taps tap[t * step] that are not padding. */
static float sum_of_taps(const tq_gemm *g, const void *const *tap, size_t step, size_t c)
{
    const size_t lanes = g->lanes;
    const char *panel = (const char *)g->panel + c / lanes * g->panel_bytes;
    const float *w = (const float *)(const void *)panel + c % lanes;
    float sum = 0;
    for (size_t t = 0; t < g->taps; t++) {
        const float *x = tap[t * step];
        for (size_t k = 0; x != g->padding && k < g->depth; k++)
            sum += x[k] * w[(t * g->depth + k) * lanes];
    }
    return sum;
}

/* Weights that are not finite must not be multiplied with padding: 0 times such a weight is NaN. */
void tq_gemm_skip_padding(const tq_gemm_call *call, const tq_gemm_space *space, size_t first, size_t count,
                          size_t channel, size_t channel_end)
{
    const tq_gemm *g = call->gemm;
    const void *const *taps = tq_gemm_taps(call, space);
    const float low = call->store->floor, high = call->store->ceiling, *bias = g->bias;
    for (size_t i = 0; i < count; i++) {
        float *out = (float *)(void *)call->out + (first + i) * call->out_stride;
        for (size_t c = channel; c < channel_end && !tq_stop_after(g->taps * g->depth); c++)
            out[c] = tq_bounded(sum_of_taps(g, taps + i, call->block, c) + bias[c], low, high);
    }
}
