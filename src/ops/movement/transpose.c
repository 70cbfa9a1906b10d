/* SPDX-License-Identifier: Apache-2.0
 *
 * TRANSPOSE: output dimension d is input dimension perm[d].
 * Source: LiteRT f6745779, tflite/kernels/transpose.cc.
 */
#include "ops/check.h"
#include "ops/movement/movement.h"

static tq_status transpose_shape(tq_node *node, tq_error *error)
{
    const tq_shape *in = &node->in[0]->shape;
    tq_shape shape = {in->rank, {0}};
    ptrdiff_t from[TQ_DIMS], steps[TQ_DIMS];
    size_t dims[TQ_DIMS];
    unsigned listed = 0;
    tq_strided *copy = tq_dense_move_begin(node, from);
    for (int d = 0; d < in->rank; d++) {
        int axis = 0;
        TQ_TRY(tq_check_axis(node, tq_integer_at(node->in[1], (size_t)d), in->rank, "perm", &axis, error));
        if (listed >> axis & 1)
            return tq_input_fail(node, 1, error, "names dimension %d twice; it needs a permutation", axis);
        listed |= 1u << axis;
        shape.dims[d] = in->dims[axis];
        dims[d] = (size_t)in->dims[axis];
        steps[d] = from[axis];
    }
    tq_dense_move_end(copy, in->rank, dims, steps);
    return tq_moves_shape(node, &shape, error);
}

tq_status tq_prepare_transpose(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_list(node, 1, node->in[0]->shape.rank, error));
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    return tq_shape_from_values(node, 1u << 1, transpose_shape, error);
}
