/* SPDX-License-Identifier: Apache-2.0
 *
 * REVERSE_V2: the listed dimensions run backwards.
 * Source: LiteRT f6745779, tflite/kernels/reverse.cc.
 */
#include "ops/check.h"
#include "ops/movement/movement.h"

static tq_status reverse_moves(tq_node *node, tq_error *error)
{
    const tq_shape *in = &node->in[0]->shape;
    ptrdiff_t from[TQ_DIMS];
    size_t dims[TQ_DIMS];
    unsigned listed = 0;
    tq_strided *copy = tq_dense_move_begin(node, from);
    for (int d = 0; d < in->rank; d++)
        dims[d] = (size_t)in->dims[d];
    for (size_t i = 0; i < tq_tensor_count(node->in[1]); i++) {
        int axis = 0;
        TQ_TRY(tq_check_axis(node, tq_integer_at(node->in[1], i), in->rank, "axis", &axis, error));
        if (listed >> axis & 1)
            return tq_input_fail(node, 1, error, "names dimension %d twice", axis);
        listed |= 1u << axis;
        if (dims[axis] > 0)
            copy->from_at += (ptrdiff_t)(dims[axis] - 1) * from[axis];
        from[axis] = -from[axis];
    }
    tq_dense_move_end(copy, in->rank, dims, from);
    return TQ_OK;
}

static tq_status eval_reverse(tq_node *node, tq_error *error)
{
    TQ_TRY(reverse_moves(node, error));
    return tq_eval_moves(node, error);
}

tq_status tq_prepare_reverse_v2(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_list(node, 1, -1, error));
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    if (tq_is_constant(node->in[1]))
        TQ_TRY(reverse_moves(node, error));
    else if (node->in[0]->type == TQ_TensorType_STRING)
        return tq_input_fail(node, 1, error, "is not constant, as it must be where strings are reversed");
    else
        node->eval = eval_reverse;
    return tq_moves_shape(node, &node->in[0]->shape, error);
}
