/* SPDX-License-Identifier: Apache-2.0
 *
 * FILL: a tensor of one value, of the shape that input 0 lists.
 * Source: LiteRT f6745779, tflite/kernels/fill.cc.
 */
#include "ops/check.h"
#include "ops/movement/movement.h"

static tq_status fill_shape(tq_node *node, tq_error *error)
{
    tq_moves *moves = node->state;
    tq_shape shape = {(int32_t)tq_tensor_count(node->in[0]), {0}};
    for (int d = 0; d < shape.rank; d++)
        TQ_TRY(tq_dim_of(node, tq_integer_at(node->in[0], (size_t)d), &shape.dims[d], error));
    TQ_TRY(tq_moves_shape(node, &shape, error));
    tq_move_fill(&moves->items[0], 1, tq_move_bytes(node->in[1]), tq_shape_size(&shape));
    return TQ_OK;
}

tq_status tq_prepare_fill(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_list(node, 0, -1, error));
    if (tq_tensor_count(node->in[0]) > TQ_DIMS)
        return tq_input_fail(node, 0, error, "has %zu elements; at most %d", tq_tensor_count(node->in[0]), TQ_DIMS);
    TQ_TRY(tq_check_single(node, 1, error));
    TQ_TRY(tq_check_same_scale(node, 1, 0, error));
    TQ_TRY(tq_moves_new(node, 1, 1, &moves, error));
    return tq_shape_from_values(node, 1u << 0, fill_shape, error);
}
