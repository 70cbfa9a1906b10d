/* SPDX-License-Identifier: Apache-2.0
 *
 * BITCAST: the same bytes as another type.  A smaller element adds a last dimension, a larger element removes it.
 * Source: LiteRT f6745779, tflite/kernels/bitcast.cc.
 */
#include "ops/check.h"
#include "ops/movement/movement.h"

static tq_status cast_shape(const tq_node *node, int from, int to, tq_shape *shape, tq_error *error)
{
    if (from > to) {
        if (shape->rank == TQ_DIMS)
            return tq_input_fail(node, 0, error, "has %d dimensions; the output would have one more than tq takes",
                                 TQ_DIMS);
        shape->dims[shape->rank++] = from / to;
    } else if (from < to) {
        if (shape->rank == 0 || shape->dims[shape->rank - 1] != to / from)
            return tq_input_fail(node, 0, error,
                                 "has elements of %d bytes for some of %d; it needs a last dimension of %d", from, to,
                                 to / from);
        shape->dims[--shape->rank] = 0;
    }
    return TQ_OK;
}

tq_status tq_prepare_bitcast(tq_node *node, tq_error *error)
{
    const unsigned types = TQ_T(FLOAT32) | TQ_T(FLOAT16) | TQ_T(BFLOAT16) | TQ_T(FLOAT64) | TQ_T(INT8) | TQ_T(UINT8) |
                           TQ_T(INT16) | TQ_T(UINT16) | TQ_T(INT32) | TQ_T(UINT32) | TQ_T(INT64) | TQ_T(UINT64) |
                           TQ_T(BOOL) | TQ_T(COMPLEX64) | TQ_T(COMPLEX128);
    TQ_TRY(tq_check_input(node, 0, types, error));
    TQ_TRY(tq_check_output(node, 0, types, error));
    tq_shape shape = node->in[0]->shape;
    TQ_TRY(cast_shape(node, (int)tq_element_bytes(node->in[0]->type), (int)tq_element_bytes(node->out[0]->type), &shape,
                      error));
    node->eval = tq_eval_copy;
    return tq_output_shape(node, 0, &shape, error);
}
