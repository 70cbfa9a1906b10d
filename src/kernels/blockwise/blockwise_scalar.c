/* SPDX-License-Identifier: Apache-2.0
 *
 * The scalar row of blockwise.def: the definition.
 */
#include <math.h>

#include "kernels/blockwise/blockwise.h"

enum { LANES = 8, STEP = 4 };

/* acc[part] += the products of a block; a step belongs to part `step & mask`. */
static void add_block(const tq_blockwise *plan, const uint8_t *weights, const int8_t *row, size_t mask, size_t lane,
                      int32_t *acc)
{
    for (size_t s = 0; s < plan->steps; s++)
        for (size_t j = 0; j < STEP; j++) {
            const uint8_t two = weights[(s / 2 * LANES + lane) * STEP + j];
            acc[s & mask] += (s % 2 ? two >> 4 : two & 15) * row[s * STEP + j];
        }
}

static float result(const tq_blockwise *plan, float x)
{
    if (!plan->clamps)
        return x;
    x = x > plan->high ? plan->high : x;
    return x > plan->low ? x : plan->low;
}

static void run_plain(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row,
                      const float *bias, float *out, size_t out_stride)
{
    (void)out_stride;
    for (size_t l = 0; l < LANES; l++) {
        float sum = 0;
        for (size_t b = 0; b < plan->blocks; b++) {
            int32_t acc = row->offsets[b * TQ_BLOCKWISE_PARTS];
            add_block(plan, panel->values + b * plan->steps / 2 * LANES * STEP, row->values + b * plan->steps * STEP, 0,
                      l, &acc);
            sum += (float)acc * panel->scales[b * LANES + l];
        }
        sum -= row->zero_point * panel->sums[l];
        sum *= row->scale;
        out[l] = result(plan, bias ? sum + bias[l] : sum);
    }
}

static void run_fused(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row,
                      const float *bias, float *out, size_t out_stride)
{
    (void)out_stride;
    for (size_t l = 0; l < LANES; l++) {
        float sum[TQ_BLOCKWISE_PARTS] = {panel->sums[l] * row->zero_point};
        for (size_t b = 0; b < plan->blocks; b++) {
            int32_t acc[TQ_BLOCKWISE_PARTS];
            for (size_t i = 0; i < TQ_BLOCKWISE_PARTS; i++)
                acc[i] = row->offsets[b * TQ_BLOCKWISE_PARTS + i];
            add_block(plan, panel->values + b * plan->steps / 2 * LANES * STEP, row->values + b * plan->steps * STEP,
                      TQ_BLOCKWISE_PARTS - 1, l, acc);
            for (size_t i = 0; i < TQ_BLOCKWISE_PARTS; i++)
                sum[i] = fmaf((float)acc[i], panel->scales[b * LANES + l], sum[i]);
        }
        out[l] = result(plan, fmaf((sum[0] + sum[1]) + (sum[2] + sum[3]), row->scale, bias ? bias[l] : 0));
    }
}

const tq_blockwise_kernel tq_blockwise__scalar = {"scalar", LANES, {{run_plain}}, {{run_fused}}, NULL, NULL};
