/* SPDX-License-Identifier: Apache-2.0
 *
 * Which scale belongs to an element: per-tensor, per-axis, blockwise and multi-axis in one form.
 *
 * Element (i0, i1, ...) of a tensor has scale number  sum over d of (i_d / block_d) * stride_d.
 * A dimension that scales do not vary along has stride 0.
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
    uint64_t scales; /* how many the map reaches: 1 + its largest number */
} tq_scale_map;

/* One scale for all. */
tq_status tq_scale_map_per_tensor(int rank, const int64_t *dims, tq_scale_map *out, tq_error *error);

/* Scales vary along `axis_count` dimensions (rising, each once), row by row in that order; along the last
   of them one scale serves `block_size` neighbours (0 or 1: each has its own).  TQ_BAD_QUANTIZATION for
   an axis outside the rank, TQ_BAD_SHAPE for negative dimensions or a rank over the limit. */
tq_status tq_scale_map_along(int rank, const int64_t *dims, int axis_count, const int32_t *axes, int64_t block_size,
                             tq_scale_map *out, tq_error *error);

#endif
