/* SPDX-License-Identifier: Apache-2.0
 *
 * EXPAND_DIMS inserts a dimension of 1.
 * Source: LiteRT f6745779, tflite/kernels/expand_dims.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/movement/movement.h"

static tq_status expand_dims_shape(tq_node *node, tq_error *error)
{
    tq_shape shape = node->in[0]->shape;
    int axis = 0;
    TQ_TRY(tq_check_axis(node, tq_integer_at(node->in[1], 0), shape.rank + 1, "axis", &axis, error));
    memmove(shape.dims + axis + 1, shape.dims + axis, (size_t)(shape.rank - axis) * sizeof shape.dims[0]);
    shape.dims[axis] = 1;
    shape.rank++;
    return tq_moves_reshape(node, &shape, error);
}

tq_status tq_prepare_expand_dims(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_list(node, 1, 1, error));
    TQ_TRY(tq_check_rank(node, 0, 0, TQ_DIMS - 1, error));
    TQ_TRY(tq_check_same_scale(node, 0, 0, error));
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    return tq_shape_from_values(node, 1u << 1, expand_dims_shape, error);
}
