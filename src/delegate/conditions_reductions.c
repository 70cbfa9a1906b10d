/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions on reductions, pooling, SOFTMAX and resizing.
 */
#include "ops/check.h"
#include "delegate/conditions.h"

bool tq_condition_constant_axes(const tq_node *node)
{
    const tq_tensor *axes = tq_view_input(node, 1);
    if (tq_view_type(axes) != TQ_TensorType_INT32 || tq_view_rank(axes) > 1 || !tq_view_is_in_file(axes))
        return false;
    size_t count = tq_tensor_count(axes);
    return count >= 1 && count <= TQ_XNNPACK_DIMENSIONS &&
           !(count == 1 && tq_integer_at(axes, 0) == 0 && tq_view_rank(tq_view_input(node, 0)) == 0);
}

bool tq_condition_pool_options(const tq_node *node)
{
    int64_t strides[] = {tq_view_int_option(node, TQ_Pool2DOptions_stride_h),
                         tq_view_int_option(node, TQ_Pool2DOptions_stride_w)};
    int64_t filter[] = {tq_view_int_option(node, TQ_Pool2DOptions_filter_height),
                        tq_view_int_option(node, TQ_Pool2DOptions_filter_width)};
    for (int i = 0; i < 2; i++)
        if (strides[i] <= 0 || filter[i] <= 0 || strides[i] > filter[i])
            return false;
    return true;
}

bool tq_condition_beta_of_one(const tq_node *node)
{
    return tq_view_float_option(node, TQ_SoftmaxOptions_beta) == 1;
}

bool tq_condition_constant_size(const tq_node *node)
{
    const tq_tensor *size = tq_view_input(node, 1), *x = tq_view_input(node, 0), *y = tq_view_output(node, 0);
    return tq_view_type(x) != TQ_TensorType_FLOAT16 && tq_view_has_dimensions(x, 4, 4) &&
           tq_view_has_dimensions(y, 4, 4) && tq_view_is_constant(size, TQ_TensorType_INT32, 1) &&
           tq_tensor_count(size) == 2 && tq_view_all_above(size, 0);
}
