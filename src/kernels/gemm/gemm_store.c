/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of stores: the channels' multipliers as columns.
 */
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "kernels/arrays/arrays.h"
#include "kernels/gemm/gemm.h"

static size_t columns_of(size_t channels)
{
    return tq_round_up(channels, TQ_COLUMN_PADDING) + TQ_COLUMN_PADDING;
}

uint64_t tq_gemm_store_bytes(size_t channels)
{
    return (uint64_t)columns_of(channels) * (sizeof(tq_multiplier) + 3 * sizeof(float) + 5 * sizeof(int32_t));
}

void tq_gemm_store_make(tq_gemm_store *store, size_t channels, tq_real_fn real, const void *context, void *memory)
{
    const size_t n = columns_of(channels);
    tq_multiplier *multiplier = memory;
    float *slope = (float *)(void *)(multiplier + n), *offset = slope + n, *negative = offset + n;
    int32_t *fixed = (int32_t *)(void *)(negative + n), *left = fixed + n, *right = left + n;
    int32_t *reduced = right + n, *total = reduced + n;
    memset(memory, 0, (size_t)tq_gemm_store_bytes(channels));
    store->exact = false;
    /* Every rule rounds a negative real value to 0 or less; so does fixed point with `offset`, whose shift of ties is
       at most 1/4 where the two are at most 1/2 apart.  Where `low` is the zero point or more, both are then clamped.
     */
    const float most = store->low >= store->zero_point ? 32768 : 0;
    store->one_offset = true;
    store->undecided = TQ_FIXED_EXACT_DOUBLED;
    for (size_t c = 0; c < channels; c++)
        if (!tq_fixed_is_exact(real(context, c)))
            store->undecided = 2 * TQ_FIXED_ERROR;
    for (size_t c = channels; c < n; c++) { /* lanes past the last channel: a fixed-point value far from a tie */
        offset[c] = negative[c] = 32768;
        total[c] = 15;
    }
    for (size_t c = 0; c < channels; c++) {
        const tq_requantize_rule rule = c + store->remainder < channels ? store->rule : TQ_REQUANTIZE_DOUBLE;
        const tq_multiplier m = tq_multiplier_of(real(context, c), rule);
        multiplier[c] = m;
        fixed[c] = m.fixed;
        left[c] = m.shift > 0 ? m.shift : 0;
        right[c] = m.shift < 0 ? -m.shift : 0;
        tq_reduce_multiplier(m.fixed, m.shift, &reduced[c], &total[c]);
        if (rule == TQ_REQUANTIZE_FLOAT32_EVEN)
            slope[c] = m.f32;
        else if (!tq_fixed_point_of(&multiplier[c], rule, store->out, store->zero_point, store->undecided, &slope[c],
                                    &offset[c], &negative[c]))
            store->exact = true;
        store->one_offset = store->one_offset && fabsf(offset[c] - negative[c]) <= most;
    }
    store->multiplier = multiplier;
    store->slope = slope, store->offset = offset, store->offset_negative = negative;
    store->fixed = fixed, store->left = left, store->right = right, store->reduced = reduced, store->total = total;
}
