/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling of integers, and the windows of any pooling operator.
 */
#ifndef TQ_OPS_POOL_INTEGERS_H
#define TQ_OPS_POOL_INTEGERS_H

#include "ops/op.h"

typedef struct tq_pool {
    int32_t in_h, in_w, out_h, out_w; /* pixels; an image of one column counts as one row */
    int64_t stride_h, stride_w, filter_h, filter_w, pad_h, pad_w;
    int32_t low, high; /* bounds of quantized values */
    float float_low, float_high;
} tq_pool;

/* The part in the input, of `dim` cells, of the window at output `at`: *first, its first index; returns its size. */
static inline int64_t tq_pool_clip(int64_t at, int64_t stride, int64_t pad, int64_t filter, int64_t dim, int64_t *first)
{
    int64_t begin = at * stride - pad, end = begin + filter;
    *first = begin > 0 ? begin : 0;
    return (end < dim ? end : dim) - *first;
}

/* Prepares AVERAGE_POOL_2D and MAX_POOL_2D of integers.  cells: the most of a window. */
tq_status tq_prepare_pool_integers(tq_node *node, const tq_pool *pool, uint64_t cells, tq_error *error);

#endif
