/* SPDX-License-Identifier: Apache-2.0
 *
 * ZEROS_LIKE: zeros of the input's shape and type.
 * Source: LiteRT f6745779, tflite/kernels/zeros_like.cc.
 */
#include "ops/check.h"

static tq_status eval_zeros(tq_node *node, tq_error *error)
{
    (void)error;
    tq_fill(node->out[0]->data, 0, node->out[0]->bytes);
    return TQ_OK;
}

tq_status tq_prepare_zeros_like(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT32) | TQ_T(INT64), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    node->eval = eval_zeros;
    node->foldable = true;
    return tq_output_shape(node, 0, &node->in[0]->shape, error);
}
