/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/scale_map.h"

#include "base/checked.h"

tq_status tq_scale_map_per_tensor(int rank, const int64_t *dims, tq_scale_map *out, tq_error *error)
{
    if (rank > TQ_SCALE_MAP_MAX_RANK)
        return tq_fail(error, TQ_BAD_SHAPE, TQ_NO_OFFSET, "rank %d; at most %d", rank, TQ_SCALE_MAP_MAX_RANK);
    out->rank = rank;
    out->scales = 1;
    for (int d = 0; d < rank; d++) {
        if (dims[d] < 0)
            return tq_fail(error, TQ_BAD_SHAPE, TQ_NO_OFFSET, "dimension %d is %lld", d, (long long)dims[d]);
        out->dims[d] = (uint64_t)dims[d];
        out->block[d] = 1;
        out->stride[d] = 0;
    }
    return TQ_OK;
}

tq_status tq_scale_map_along(int rank, const int64_t *dims, int axis_count, const int32_t *axes, int64_t block_size,
                             tq_scale_map *out, tq_error *error)
{
    tq_status status = tq_scale_map_per_tensor(rank, dims, out, error);
    uint64_t stride = 1;
    for (int i = axis_count - 1; i >= 0 && status == TQ_OK; i--) {
        int32_t axis = axes[i];
        if (axis < 0 || axis >= rank || (i && axes[i - 1] >= axis))
            return tq_fail(error, TQ_BAD_QUANTIZATION, TQ_NO_OFFSET,
                           "quantized dimension %d of a tensor of rank %d; dimensions must rise and lie inside", axis,
                           rank);
        uint64_t block = i == axis_count - 1 && block_size > 1 ? (uint64_t)block_size : 1;
        uint64_t count = out->dims[axis] / block + (out->dims[axis] % block != 0);
        out->block[axis] = block;
        out->stride[axis] = stride;
        if (!tq_mul_u64(stride, count, &stride))
            return tq_fail(error, TQ_BAD_SHAPE, TQ_NO_OFFSET, "the quantized dimensions have more than 2^64 elements");
    }
    out->scales = stride;
    return status;
}
