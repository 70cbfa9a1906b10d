/* SPDX-License-Identifier: Apache-2.0
 *
 * ARG_MAX and ARG_MIN: the index of the greatest or least element along a dimension; of equal ones the first.
 * A NaN loses to everything.
 *
 * Source: LiteRT f6745779, tflite/kernels/arg_min_max.cc and internal/reference/arg_min_max.h.
 */
#include <string.h>

#include "ops/check.h"

/* Columns that are searched at once. */
#define COLUMNS 256

typedef struct search search;
struct search {
    size_t outer, dim, inner;
    /* best[i]: where in[k * inner + i] is best, for k below dim and i below n */
    void (*run)(const void *in, size_t dim, size_t inner, size_t n, int32_t *best);
    size_t element;
};

#define SEARCH(name, type, better)                                                                          \
    static void name(const void *in, size_t dim, size_t inner, size_t n, int32_t *best)                     \
    {                                                                                                       \
        const type *x = in;                                                                                 \
        type values[COLUMNS];                                                                               \
        memcpy(values, x, n * sizeof(type));                                                                \
        memset(best, 0, n * sizeof *best);                                                                  \
        for (size_t k = 1; k < dim; k++)                                                                    \
            for (size_t i = 0; i < n; i++) {                                                                \
                type now = x[k * inner + i], held = values[i];                                              \
                if (better) {                                                                               \
                    values[i] = now;                                                                        \
                    best[i] = (int32_t)k;                                                                   \
                }                                                                                           \
            }                                                                                               \
    }
/* now beats NaN unless it is one too */
#define SEARCHES(name, type)                                                   \
    SEARCH(max_##name, type, now > held || (held != held && now == now))       \
    SEARCH(min_##name, type, now < held || (held != held && now == now))
#define INTEGER_SEARCHES(name, type)    \
    SEARCH(max_##name, type, now > held) \
    SEARCH(min_##name, type, now < held)
SEARCHES(f32, float)
INTEGER_SEARCHES(i8, int8_t)
INTEGER_SEARCHES(u8, uint8_t)
INTEGER_SEARCHES(i16, int16_t)
INTEGER_SEARCHES(i32, int32_t)
INTEGER_SEARCHES(i64, int64_t)

static void choose(search *s, int32_t type, bool max)
{
    switch (type) {
    case TQ_TensorType_FLOAT32: s->run = max ? max_f32 : min_f32; break;
    case TQ_TensorType_INT8: s->run = max ? max_i8 : min_i8; break;
    case TQ_TensorType_INT16: s->run = max ? max_i16 : min_i16; break;
    case TQ_TensorType_INT32: s->run = max ? max_i32 : min_i32; break;
    case TQ_TensorType_INT64: s->run = max ? max_i64 : min_i64; break;
    default: s->run = max ? max_u8 : min_u8; break; /* UINT8, BOOL */
    }
}

static tq_status eval_search(tq_node *node, tq_error *error)
{
    (void)error;
    const search *s = node->state;
    int32_t best[COLUMNS];
    const tq_tensor *out = node->out[0];
    for (size_t o = 0; o < s->outer; o++)
        for (size_t c = 0; c < s->inner; c += COLUMNS) {
            size_t n = s->inner - c < COLUMNS ? s->inner - c : COLUMNS, to = o * s->inner + c;
            s->run((const char *)node->in[0]->data + (o * s->dim * s->inner + c) * s->element, s->dim, s->inner, n,
                   best);
            for (size_t i = 0; i < n; i++)
                if (out->type == TQ_TensorType_INT64)
                    ((int64_t *)out->data)[to + i] = best[i];
                else
                    ((int32_t *)out->data)[to + i] = best[i];
        }
    return TQ_OK;
}

static tq_status search_shape(tq_node *node, tq_error *error)
{
    search *s = node->state;
    const tq_shape *in = &node->in[0]->shape;
    tq_shape shape = {0, {0}};
    int axis = 0;
    TQ_TRY(tq_check_axis(node, tq_integer_at(node->in[1], 0), in->rank, "axis", &axis, error));
    if (in->dims[axis] == 0)
        return tq_input_fail(node, 0, error, "has no elements in dimension %d, which is searched", axis);
    for (int d = 0; d < in->rank; d++)
        if (d != axis)
            shape.dims[shape.rank++] = in->dims[d];
    s->outer = tq_shape_span(in, 0, axis);
    s->dim = (size_t)in->dims[axis];
    s->inner = tq_shape_span(in, axis + 1, in->rank);
    return tq_output_shape(node, 0, &shape, error);
}

tq_status tq_prepare_arg_min_max(tq_node *node, tq_error *error)
{
    search *s = NULL;
    TQ_TRY(tq_check_counts(node, 2, 2, 1, 1, error));
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(UINT8) | TQ_T(INT8) | TQ_T(INT16) | TQ_T(INT32) |
                                       TQ_T(INT64) | TQ_T(BOOL), error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(INT32) | TQ_T(INT64), error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(INT32) | TQ_T(INT64), error));
    if (tq_tensor_count(node->in[1]) != 1)
        return tq_input_fail(node, 1, error, "has %zu elements; it needs 1", tq_tensor_count(node->in[1]));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    s->element = tq_element_bytes(node->in[0]->type);
    choose(s, node->in[0]->type, node->row.code == TQ_BuiltinOperator_ARG_MAX);
    node->eval = eval_search;
    return tq_shape_from_values(node, 1u << 1, search_shape, error);
}
