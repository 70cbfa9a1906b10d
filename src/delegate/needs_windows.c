/* SPDX-License-Identifier: Apache-2.0
 *
 * What reductions, pools, the softmax and resizing need.
 */
#include "ops/check.h"
#include "delegate/needs.h"

bool tq_need_constant_axes(const tq_node *node)
{
    const tq_tensor *axes = input(node, 1);
    if (type_of(axes) != TQ_TensorType_INT32 || rank_of(axes) > 1 || !is_in_file(axes))
        return false;
    size_t count = tq_tensor_count(axes);
    return count >= 1 && count <= XNNPACK_DIMENSIONS &&
           !(count == 1 && tq_integer_at(axes, 0) == 0 && rank_of(input(node, 0)) == 0);
}

bool tq_need_pool_options(const tq_node *node)
{
    int64_t strides[] = {option(node, TQ_Pool2DOptions_stride_h), option(node, TQ_Pool2DOptions_stride_w)};
    int64_t filter[] = {option(node, TQ_Pool2DOptions_filter_height), option(node, TQ_Pool2DOptions_filter_width)};
    for (int i = 0; i < 2; i++)
        if (strides[i] <= 0 || filter[i] <= 0 || strides[i] > filter[i])
            return false;
    return true;
}

bool tq_need_beta_of_one(const tq_node *node)
{
    return real_option(node, TQ_SoftmaxOptions_beta) == 1;
}

bool tq_need_constant_size(const tq_node *node)
{
    const tq_tensor *size = input(node, 1), *x = input(node, 0), *y = output(node, 0);
    return type_of(x) != TQ_TensorType_FLOAT16 && has_dimensions(x, 4, 4) && has_dimensions(y, 4, 4) &&
           is_list(size, TQ_TensorType_INT32, 1) && tq_tensor_count(size) == 2 && all_above(size, 0);
}
