/* SPDX-License-Identifier: Apache-2.0
 *
 * CUMSUM: running sums along an axis.  Integers wrap.
 * Source: LiteRT f6745779, tflite/kernels/cumsum.cc.
 */
#include <string.h>

#include "ops/check.h"

typedef struct line {
    size_t count, stride; /* elements along the axis, and between them */
    bool exclusive, reverse;
} line;

#define RUN(name, T, sum)                                                \
    static void name(const T *in, T *out, const line *l)                 \
    {                                                                    \
        T total = 0;                                                     \
        TQ_EACH (i, l->count) {                                          \
            size_t at = (l->reverse ? l->count - 1 - i : i) * l->stride; \
            T before = total;                                            \
            total = sum(total, in[at]);                                  \
            out[at] = l->exclusive ? before : total;                     \
        }                                                                \
    }
#define WRAPPED_32(a, b) (int32_t)((uint32_t)(a) + (uint32_t)(b))
#define WRAPPED_64(a, b) (int64_t)((uint64_t)(a) + (uint64_t)(b))
#define SUM(a, b) (a) + (b)
RUN(run_int32, int32_t, WRAPPED_32)
RUN(run_int64, int64_t, WRAPPED_64)
RUN(run_float, float, SUM)

static tq_status eval_cumsum(tq_node *node, tq_error *error)
{
    size_t work = 0;
    const tq_tensor *in = node->in[0];
    int axis;
    TQ_TRY(tq_check_axis(node, tq_integer_at(node->in[1], 0), in->shape.rank, "axis", &axis, error));
    size_t outer = tq_shape_span(&in->shape, 0, axis), inner = tq_shape_span(&in->shape, axis + 1, in->shape.rank);
    line l = {(size_t)in->shape.dims[axis], inner, false, false};
    l.exclusive = tq_get_int(&node->options.table, TQ_CumsumOptions_exclusive) != 0;
    l.reverse = tq_get_int(&node->options.table, TQ_CumsumOptions_reverse) != 0;
    for (size_t o = 0; o < outer; o++)
        for (size_t i = 0; i < inner && !tq_stop_count(&work, l.count); i++) {
            size_t at = o * l.count * inner + i;
            switch (in->type) {
            case TQ_TensorType_INT32:
                run_int32((int32_t *)in->data + at, (int32_t *)node->out[0]->data + at, &l);
                break;
            case TQ_TensorType_INT64:
                run_int64((int64_t *)in->data + at, (int64_t *)node->out[0]->data + at, &l);
                break;
            default: run_float((float *)in->data + at, (float *)node->out[0]->data + at, &l); break;
            }
        }
    return TQ_OK;
}

tq_status tq_prepare_cumsum(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT32) | TQ_T(INT64), error));
    TQ_TRY(tq_check_rank(node, 0, 1, TQ_DIMS, error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(INT32), error));
    if (tq_tensor_count(node->in[1]) != 1)
        return tq_input_fail(node, 1, error, "has %zu elements; an axis needs one", tq_tensor_count(node->in[1]));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    node->eval = eval_cumsum;
    return tq_output_shape(node, 0, &node->in[0]->shape, error);
}
