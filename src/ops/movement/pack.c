/* SPDX-License-Identifier: Apache-2.0
 *
 * PACK joins tensors along a new dimension; UNPACK splits a tensor along a dimension and removes it.
 * Source: LiteRT f6745779, tflite/kernels/{pack,unpack}.cc.
 */
#include "ops/check.h"
#include "ops/movement/axis_part.h"

tq_status tq_prepare_pack(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    int64_t count = tq_get_int(&node->options.table, TQ_PackOptions_values_count);
    if (count != node->in_count)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %d inputs, and values_count %lld", node->in_count,
                          (long long)count);
    TQ_TRY(tq_check_rank(node, 0, 0, TQ_DIMS - 1, error));
    tq_shape in = node->in[0]->shape, shape = {in.rank + 1, {0}};
    int axis = 0;
    TQ_TRY(
        tq_check_axis(node, tq_get_int(&node->options.table, TQ_PackOptions_axis), shape.rank, "axis", &axis, error));
    for (int d = 0; d < shape.rank; d++)
        shape.dims[d] = d < axis ? in.dims[d] : d == axis ? node->in_count : in.dims[d - 1];
    TQ_TRY(tq_moves_new(node, node->in_count, 0, &moves, error));
    TQ_TRY(tq_moves_shape(node, &shape, error));
    size_t bytes = tq_move_bytes(node->in[0]);
    for (int i = 0; i < node->in_count; i++) {
        TQ_TRY(tq_check_input_like(node, i, 0, error));
        TQ_TRY(tq_check_same_scale(node, i, 0, error));
        if (!tq_shape_equal(&node->in[i]->shape, &in))
            return tq_input_fail(node, i, error, "has another shape than input 0");
        tq_move_into_part(&moves->items[i], tq_axis_part_of(&shape, axis, bytes, i, 1), bytes);
        moves->items[i].input = i;
    }
    return TQ_OK;
}

tq_status tq_prepare_unpack(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    tq_shape in = node->in[0]->shape, shape = {in.rank - 1, {0}};
    int axis = 0;
    TQ_TRY(tq_check_rank(node, 0, 1, TQ_DIMS, error));
    TQ_TRY(tq_check_axis(node, tq_get_int(&node->options.table, TQ_UnpackOptions_axis), in.rank, "axis", &axis, error));
    if (in.dims[axis] != node->out_count)
        return tq_input_fail(node, 0, error, "has %d elements in dimension %d, and there are %d outputs",
                             (int)in.dims[axis], axis, node->out_count);
    for (int d = 0; d < shape.rank; d++)
        shape.dims[d] = in.dims[d < axis ? d : d + 1];
    TQ_TRY(tq_check_splits_elements(node, 0, error));
    TQ_TRY(tq_moves_new(node, node->out_count, 0, &moves, error));
    size_t bytes = tq_move_bytes(node->in[0]);
    for (int i = 0; i < node->out_count; i++) {
        TQ_TRY(tq_check_same_scale(node, 0, i, error));
        TQ_TRY(tq_output_shape(node, i, &shape, error));
        tq_move_out_of_part(&moves->items[i], tq_axis_part_of(&in, axis, bytes, i, 1), bytes);
        moves->items[i].output = i;
    }
    return TQ_OK;
}
