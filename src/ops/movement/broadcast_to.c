/* SPDX-License-Identifier: Apache-2.0
 *
 * BROADCAST_TO: dimensions of 1 repeated to a shape, and new dimensions added in front.
 * Source: LiteRT f6745779, tflite/kernels/broadcast_to.cc.
 */
#include "ops/check.h"
#include "ops/movement/movement.h"

static tq_status broadcast_shape(tq_node *node, tq_error *error)
{
    const tq_shape *in = &node->in[0]->shape;
    tq_shape shape = {(int32_t)tq_tensor_count(node->in[1]), {0}};
    ptrdiff_t from[TQ_DIMS], steps[TQ_DIMS];
    size_t dims[TQ_DIMS];
    int new_dims = shape.rank - in->rank;
    tq_strided *copy = tq_dense_move_begin(node, from);
    for (int d = 0; d < shape.rank; d++) {
        TQ_TRY(tq_dim_of(node, tq_integer_at(node->in[1], (size_t)d), &shape.dims[d], error));
        int32_t own = d < new_dims ? 1 : in->dims[d - new_dims];
        if (own != 1 && own != shape.dims[d])
            return tq_input_fail(node, 0, error, "has %d elements in dimension %d, which do not broadcast to %d",
                                 (int)own, d - new_dims, (int)shape.dims[d]);
        dims[d] = (size_t)shape.dims[d];
        steps[d] = d < new_dims || own == 1 ? 0 : from[d - new_dims];
    }
    TQ_TRY(tq_moves_shape(node, &shape, error));
    tq_dense_move_end(copy, shape.rank, dims, steps);
    return TQ_OK;
}

tq_status tq_prepare_broadcast_to(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_list(node, 1, -1, error));
    size_t rank = tq_tensor_count(node->in[1]);
    if (rank > TQ_DIMS || rank < (size_t)node->in[0]->shape.rank)
        return tq_input_fail(node, 1, error, "has %zu elements; it needs %d to %d", rank, (int)node->in[0]->shape.rank,
                             TQ_DIMS);
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    return tq_shape_from_values(node, 1u << 1, broadcast_shape, error);
}
