/* SPDX-License-Identifier: Apache-2.0
 *
 * BROADCAST_ARGS: the shape to which two shapes broadcast.
 * Source: LiteRT f6745779, tflite/kernels/broadcast_args.cc.
 */
#include "ops/check.h"

static tq_status eval_broadcast_args(tq_node *node, tq_error *error)
{
    const tq_tensor *out = node->out[0];
    size_t rank = tq_tensor_count(out);
    for (size_t d = 0; d < rank; d++) {
        int64_t dim = 1;
        for (int i = 0; i < 2; i++) {
            size_t own = tq_tensor_count(node->in[i]);
            if (d + own < rank)
                continue;
            int64_t other = tq_integer_at(node->in[i], d + own - rank);
            if (dim != 1 && other != 1 && other != dim)
                return tq_input_fail(node, i, error, "has %lld where the other shape has %lld", (long long)other,
                                     (long long)dim);
            dim = dim == 1 ? other : dim;
        }
        tq_integer_put(out, d, dim);
    }
    return TQ_OK;
}

tq_status tq_prepare_broadcast_args(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_list(node, 0, -1, error));
    TQ_TRY(tq_check_input_like(node, 1, 0, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    for (int i = 0; i < 2; i++)
        TQ_TRY(tq_check_rank(node, i, 1, 1, error));
    tq_shape shape = node->in[0]->shape;
    if (node->in[1]->shape.dims[0] > shape.dims[0])
        shape = node->in[1]->shape;
    node->eval = eval_broadcast_args;
    return tq_output_shape(node, 0, &shape, error);
}
