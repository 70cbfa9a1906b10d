/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of an element's scale: per-tensor, per-axis, blockwise and multi-axis in one form.
 *
 * Element (i0, i1, ...) of a tensor has the scale  sum over d of (i_d / block_d) * stride_d.  A dimension along which
 * scales do not vary has stride 0.
 */
#ifndef TQ_QUANT_SCALE_MAP_H
#define TQ_QUANT_SCALE_MAP_H

#include "base/status.h"

#define TQ_SCALE_MAP_MAX_RANK 32

typedef struct tq_scale_map {
    int rank;
    uint64_t dims[TQ_SCALE_MAP_MAX_RANK];
    uint64_t block[TQ_SCALE_MAP_MAX_RANK];  /* at least 1 */
    uint64_t stride[TQ_SCALE_MAP_MAX_RANK];
    uint64_t scales; /* 1 + the largest index of a scale */
} tq_scale_map;

/* One scale for all elements; rank: 0 and more.  TQ_BAD_SHAPE: a negative dimension, or a rank over the limit. */
tq_status tq_scale_map_per_tensor(int rank, const int64_t *dims, tq_scale_map *out, tq_error *error);

/* Scales vary along the dimensions axes[axis_count], ascending, and are stored row-major in that order; along the last
   of them `block_size` consecutive elements share a scale (0 or 1: each has its own).  TQ_BAD_QUANTIZATION: an axis
   outside the rank, or axes that do not ascend.  TQ_BAD_SHAPE: as above, or more than 2^64 scales. */
tq_status tq_scale_map_along(int rank, const int64_t *dims, int axis_count, const int32_t *axes, int64_t block_size,
                             tq_scale_map *out, tq_error *error);

#endif
