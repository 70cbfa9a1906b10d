/* SPDX-License-Identifier: Apache-2.0
 *
 * SQUEEZE drops dimensions of 1: the listed ones, or all.
 * Source: LiteRT f6745779, tflite/kernels/squeeze.cc.
 */
#include "ops/check.h"
#include "ops/movement/movement.h"

static tq_status squeezed_dims(const tq_node *node, bool *drop, tq_error *error)
{
    const tq_shape *shape = &node->in[0]->shape;
    tq_vector listed = tq_get_vector(&node->options.table, TQ_SqueezeOptions_squeeze_dims);
    for (int d = 0; d < shape->rank && listed.count == 0; d++)
        drop[d] = shape->dims[d] == 1;
    for (uint32_t i = 0; i < listed.count; i++) {
        int axis = 0;
        TQ_TRY(tq_check_axis(node, tq_vector_i32(&listed, i), shape->rank, "squeeze_dims", &axis, error));
        if (shape->dims[axis] != 1)
            return tq_input_fail(node, 0, error, "has %d elements in dimension %d, which squeeze_dims drops",
                                 (int)shape->dims[axis], axis);
        drop[axis] = true;
    }
    return TQ_OK;
}

tq_status tq_prepare_squeeze(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    bool drop[TQ_DIMS] = {false};
    tq_shape shape = {0, {0}};
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    TQ_TRY(squeezed_dims(node, drop, error));
    for (int d = 0; d < node->in[0]->shape.rank; d++)
        if (!drop[d])
            shape.dims[shape.rank++] = node->in[0]->shape.dims[d];
    return tq_moves_reshape(node, &shape, error);
}
