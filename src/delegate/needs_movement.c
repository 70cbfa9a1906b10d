/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators need that move elements: mostly that the numbers that steer them are constants of the file.
 */
#include "ops/check.h"
#include "delegate/needs.h"

bool tq_need_joined_axis(const tq_node *node)
{
    int64_t axis = option(node, TQ_ConcatenationOptions_axis);
    for (int i = 0; i < node->in_count; i++)
        if (axis >= rank_of(node->in[i]))
            return false;
    return true;
}

static bool has_equal_quantization(const tq_tensor *a, const tq_tensor *b)
{
    return scale_of(a) == scale_of(b) && zero_point_of(a) == zero_point_of(b);
}

bool tq_need_equal_uint8(const tq_node *node)
{
    for (int i = 0; i < node->in_count && type_of(output(node, 0)) == TQ_TensorType_UINT8; i++)
        if (!has_equal_quantization(node->in[i], node->out[0]))
            return false;
    return true;
}

bool tq_need_constant_axis(const tq_node *node)
{
    const tq_tensor *axis = input(node, 0);
    return type_of(axis) == TQ_TensorType_INT32 && is_in_file(axis);
}

bool tq_need_constant_widths(const tq_node *node)
{
    const tq_tensor *widths = input(node, 1);
    return is_list(widths, TQ_TensorType_INT32, 2) && dimension(widths, 0) == rank_of(input(node, 0)) &&
           dimension(widths, 1) == 2 && all_above(widths, -1);
}

static bool is_whole_list(const tq_tensor *t)
{
    return is_list(t, TQ_TensorType_INT32, 1) || is_list(t, TQ_TensorType_INT64, 1);
}

bool tq_need_constant_range(const tq_node *node)
{
    const tq_tensor *begin = input(node, 1), *size = input(node, 2);
    return is_whole_list(begin) && is_whole_list(size) && dimension(begin, 0) == dimension(size, 0) &&
           all_above(size, 0);
}

bool tq_need_plain_strides(const tq_node *node)
{
    if (option(node, TQ_StridedSliceOptions_ellipsis_mask) || option(node, TQ_StridedSliceOptions_new_axis_mask) ||
        option(node, TQ_StridedSliceOptions_shrink_axis_mask))
        return false;
    for (int i = 1; i < 4; i++)
        if (!is_list(input(node, i), TQ_TensorType_INT32, 1) || dimension(input(node, i), 0) != rank_of(input(node, 0)))
            return false;
    for (size_t i = 0; i < tq_tensor_count(input(node, 3)); i++)
        if (tq_integer_at(input(node, 3), i) != 1)
            return false;
    return true;
}

bool tq_need_constant_shape(const tq_node *node)
{
    const tq_tensor *shape = input(node, 1);
    if (node->in_count < 1 || node->in_count > 2 || node->out_count != 1)
        return false;
    if (node->in_count == 1) {
        tq_vector wanted = tq_get_vector(&node->options.table, TQ_ReshapeOptions_new_shape);
        return !(wanted.count == 1 && tq_vector_i32(&wanted, 0) <= 0);
    }
    if (type_of(shape) != TQ_TensorType_INT32 || !is_in_file(shape))
        return false;
    for (int i = 0; i < rank_of(shape) - 1; i++)
        if (dimension(shape, i) != 1)
            return false;
    int64_t first = tq_tensor_count(shape) == 1 ? tq_integer_at(shape, 0) : 1;
    return first != -1 && first != 0;
}

bool tq_need_equal_quantization(const tq_node *node)
{
    return !is_byte(output(node, 0)) || has_equal_quantization(input(node, 0), output(node, 0));
}

bool tq_need_constant_permutation(const tq_node *node)
{
    return is_in_file(input(node, 1));
}

bool tq_need_block(const tq_node *node)
{
    return option(node, TQ_DepthToSpaceOptions_block_size) > 1;
}

bool tq_need_blocks(const tq_node *node)
{
    const tq_tensor *x = input(node, 0);
    int64_t size = option(node, TQ_SpaceToDepthOptions_block_size);
    return size > 1 && rank_of(x) >= 3 && dimension(x, 1) % size == 0 && dimension(x, 2) % size == 0;
}
