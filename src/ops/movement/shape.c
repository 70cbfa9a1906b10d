/* SPDX-License-Identifier: Apache-2.0
 *
 * SHAPE and RANK of the input, computed when operators are prepared.
 * Source: LiteRT f6745779, tflite/kernels/{shape,rank}.cc.
 */
#include "ops/check.h"

static tq_status eval_shape(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_shape *shape = &node->in[0]->shape;
    for (int d = 0; d < shape->rank; d++)
        tq_integer_put(node->out[0], (size_t)d, shape->dims[d]);
    return TQ_OK;
}

tq_status tq_prepare_shape(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_index_output(node, 0, tq_get_int(&node->options.table, TQ_ShapeOptions_out_type), error));
    tq_shape shape = {1, {node->in[0]->shape.rank}};
    node->eval = eval_shape;
    node->foldable = true;
    return tq_output_shape(node, 0, &shape, error);
}

static tq_status eval_rank(tq_node *node, tq_error *error)
{
    (void)error;
    tq_integer_put(node->out[0], 0, node->in[0]->shape.rank);
    return TQ_OK;
}

tq_status tq_prepare_rank(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_output(node, 0, TQ_T(INT32), error));
    tq_shape shape = {0, {0}};
    node->eval = eval_rank;
    node->foldable = true;
    return tq_output_shape(node, 0, &shape, error);
}
