/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions on operators that move elements: mostly, that their parameters are constants of the file.
 */
#include "ops/check.h"
#include "delegate/conditions.h"

bool tq_condition_joined_axis(const tq_node *node)
{
    int64_t axis = tq_view_int_option(node, TQ_ConcatenationOptions_axis);
    for (int i = 0; i < node->in_count; i++)
        if (axis >= tq_view_rank(node->in[i]))
            return false;
    return true;
}

static bool has_equal_quantization(const tq_tensor *a, const tq_tensor *b)
{
    return tq_view_scale(a) == tq_view_scale(b) && tq_view_zero_point(a) == tq_view_zero_point(b);
}

bool tq_condition_equal_uint8(const tq_node *node)
{
    for (int i = 0; i < node->in_count && tq_view_type(tq_view_output(node, 0)) == TQ_TensorType_UINT8; i++)
        if (!has_equal_quantization(node->in[i], node->out[0]))
            return false;
    return true;
}

bool tq_condition_constant_axis(const tq_node *node)
{
    const tq_tensor *axis = tq_view_input(node, 0);
    return tq_view_type(axis) == TQ_TensorType_INT32 && tq_view_is_in_file(axis);
}

bool tq_condition_constant_widths(const tq_node *node)
{
    const tq_tensor *widths = tq_view_input(node, 1);
    return tq_view_is_constant(widths, TQ_TensorType_INT32, 2) &&
           tq_view_dimension(widths, 0) == tq_view_rank(tq_view_input(node, 0)) && tq_view_dimension(widths, 1) == 2 &&
           tq_view_all_above(widths, -1);
}

static bool is_whole_list(const tq_tensor *t)
{
    return tq_view_is_constant(t, TQ_TensorType_INT32, 1) || tq_view_is_constant(t, TQ_TensorType_INT64, 1);
}

bool tq_condition_constant_range(const tq_node *node)
{
    const tq_tensor *begin = tq_view_input(node, 1), *size = tq_view_input(node, 2);
    return is_whole_list(begin) && is_whole_list(size) && tq_view_dimension(begin, 0) == tq_view_dimension(size, 0) &&
           tq_view_all_above(size, 0);
}

bool tq_condition_plain_strides(const tq_node *node)
{
    if (tq_view_int_option(node, TQ_StridedSliceOptions_ellipsis_mask) ||
        tq_view_int_option(node, TQ_StridedSliceOptions_new_axis_mask) ||
        tq_view_int_option(node, TQ_StridedSliceOptions_shrink_axis_mask))
        return false;
    for (int i = 1; i < 4; i++)
        if (!tq_view_is_constant(tq_view_input(node, i), TQ_TensorType_INT32, 1) ||
            tq_view_dimension(tq_view_input(node, i), 0) != tq_view_rank(tq_view_input(node, 0)))
            return false;
    for (size_t i = 0; i < tq_tensor_count(tq_view_input(node, 3)); i++)
        if (tq_integer_at(tq_view_input(node, 3), i) != 1)
            return false;
    return true;
}

bool tq_condition_constant_shape(const tq_node *node)
{
    const tq_tensor *shape = tq_view_input(node, 1);
    if (node->in_count < 1 || node->in_count > 2 || node->out_count != 1)
        return false;
    if (node->in_count == 1) {
        tq_vector wanted = tq_get_vector(&node->options.table, TQ_ReshapeOptions_new_shape);
        return !(wanted.count == 1 && tq_vector_i32(&wanted, 0) <= 0);
    }
    if (tq_view_type(shape) != TQ_TensorType_INT32 || !tq_view_is_in_file(shape))
        return false;
    for (int i = 0; i < tq_view_rank(shape) - 1; i++)
        if (tq_view_dimension(shape, i) != 1)
            return false;
    int64_t first = tq_tensor_count(shape) == 1 ? tq_integer_at(shape, 0) : 1;
    return first != -1 && first != 0;
}

bool tq_condition_equal_quantization(const tq_node *node)
{
    return !tq_view_is_8_bit(tq_view_output(node, 0)) ||
           has_equal_quantization(tq_view_input(node, 0), tq_view_output(node, 0));
}

bool tq_condition_constant_permutation(const tq_node *node)
{
    return tq_view_is_in_file(tq_view_input(node, 1));
}

bool tq_condition_block(const tq_node *node)
{
    return tq_view_int_option(node, TQ_DepthToSpaceOptions_block_size) > 1;
}

bool tq_condition_blocks(const tq_node *node)
{
    const tq_tensor *x = tq_view_input(node, 0);
    int64_t size = tq_view_int_option(node, TQ_SpaceToDepthOptions_block_size);
    return size > 1 && tq_view_rank(x) >= 3 && tq_view_dimension(x, 1) % size == 0 &&
           tq_view_dimension(x, 2) % size == 0;
}
