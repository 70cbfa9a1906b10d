/* SPDX-License-Identifier: Apache-2.0
 *
 * DENSIFY: a constant, dense; a dense constant is copied.
 * Source: LiteRT f6745779, tflite/kernels/densify.cc.
 */
#include "model/sparsity.h"
#include "ops/check.h"
#include "ops/movement/movement.h"

static tq_status eval_densify(tq_node *node, tq_error *error)
{
    const tq_tensor *in = node->in[0], *out = node->out[0];
    tq_fill(out->data, 0, out->bytes);
    tq_bytes stored = {in->data, in->bytes};
    return tq_tensor_densify(&in->table, stored, out->data, out->bytes, error);
}

tq_status tq_prepare_densify(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(FLOAT16) | TQ_T(INT8), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    if (!tq_is_constant(node->in[0]))
        return tq_input_fail(node, 0, error, "is computed; DENSIFY needs a constant");
    node->eval = node->in[0]->packed ? eval_densify : tq_eval_copy;
    return tq_output_shape(node, 0, &node->in[0]->shape, error);
}
