/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/products/groups.h"

#include <string.h>

size_t tq_merged_groups(size_t groups, size_t each, size_t lanes)
{
    size_t merged = 1;
    while (groups % (2 * merged) == 0 && 2 * merged * each <= lanes)
        merged *= 2;
    return merged;
}

void tq_spread_groups(const tq_merged_shape *s, tq_gemm_weights *w, uint8_t *to)
{
    const size_t each = s->channels / s->merged, all = s->merged * s->depth;
    const uint8_t *from = w->data;
    w->data = to;
    w->channel_stride = s->taps * all;
    memset(to, w->flip, s->channels * w->channel_stride); /* flipped, the bits of 0 */
    for (size_t c = 0; c < s->channels; c++)
        for (size_t tap = 0; tap < s->taps; tap++, from += s->depth)
            memcpy(to + c * w->channel_stride + tap * all + c / each * s->depth, from, s->depth);
}
