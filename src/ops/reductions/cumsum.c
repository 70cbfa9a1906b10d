/* SPDX-License-Identifier: Apache-2.0
 *
 * CUMSUM: running sums along an axis.  Integers wrap.
 * Source: LiteRT f6745779, tflite/kernels/cumsum.cc.
 */
#include "base/sizes.h"
#include "kernels/isa.h"
#include "ops/check.h"

/* `count` rows of `inner` columns, each of which is summed. */
typedef struct block {
    size_t count, inner;
    bool exclusive, reverse;
} block;

/* name_some: of n columns side by side, at most SOME.  Inlined with a constant 1: a sum in a register. */
enum { SOME = 64 };
#define RUN(name, T, sum)                                                            \
    TQ_BODY void name##_some(const T *in, T *out, const block *b, size_t n)          \
    {                                                                                \
        T total[SOME] = {0};                                                         \
        for (size_t i = 0; i < b->count; i++) {                                      \
            const size_t at = (b->reverse ? b->count - 1 - i : i) * b->inner;        \
            for (size_t k = 0; k < n; k++) {                                         \
                const T before = total[k];                                           \
                total[k] = sum(before, in[at + k]);                                  \
                out[at + k] = b->exclusive ? before : total[k];                      \
            }                                                                        \
        }                                                                            \
    }                                                                                \
    static void name(const void *in, void *out, size_t at, const block *b, size_t n) \
    {                                                                                \
        const T *x = (const T *)in + at;                                             \
        T *y = (T *)out + at;                                                        \
        const block own = *b; /* stores cannot change it */                          \
        if (n == 1)                                                                  \
            name##_some(x, y, &own, 1);                                              \
        else                                                                         \
            name##_some(x, y, &own, n);                                              \
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
    block b = {(size_t)in->shape.dims[axis], inner, false, false};
    b.exclusive = tq_get_int(&node->options.table, TQ_CumsumOptions_exclusive) != 0;
    b.reverse = tq_get_int(&node->options.table, TQ_CumsumOptions_reverse) != 0;
    for (size_t o = 0; o < outer; o++)
        for (size_t i = 0; i < inner; i += SOME) {
            const size_t at = o * b.count * inner + i, n = tq_min_size(inner - i, SOME);
            if (tq_stop_count(&work, b.count * n))
                return TQ_OK;
            switch (in->type) {
            case TQ_TensorType_INT32: run_int32(in->data, node->out[0]->data, at, &b, n); break;
            case TQ_TensorType_INT64: run_int64(in->data, node->out[0]->data, at, &b, n); break;
            default: run_float(in->data, node->out[0]->data, at, &b, n); break;
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
