/* SPDX-License-Identifier: Apache-2.0
 *
 * ARG_MAX and ARG_MIN: the index of the greatest or least element along a dimension; of equal elements the first.
 * NaN loses to every number.
 *
 * Source: LiteRT f6745779, tflite/kernels/arg_min_max.cc and internal/reference/arg_min_max.h.
 */
#include <math.h>
#include <string.h>

#include "kernels/isa.h"
#include "ops/check.h"

/* Columns that are searched at once: their best values lie on the stack. */
#define COLUMNS 256

/* Lanes that search one contiguous column, unless it is shorter than SHORT. */
#define LANES 16
#define SHORT 64

/* best[i] = the k < dim whose in[k * inner + i] is best, for each i < n <= COLUMNS; where inner is 1, whose in[i * dim
   + k] is.  dim >= 1. */
typedef void (*search_fn)(const void *in, size_t dim, size_t inner, size_t n, int32_t *best);

typedef struct search {
    size_t outer, dim, inner, element;
    search_fn run;
} search;

/* One contiguous column of at least LANES elements: the best value of each of LANES lanes, the best of these, and the
   first index that holds it.  The last step may read elements again.  `worst` loses to all but NaN. */
#define SEARCH_COLUMN(target, name, type, better, worst)                \
    target static int32_t name##_column(const type *x, size_t dim)      \
    {                                                                   \
        type lanes[LANES], value = worst;                               \
        size_t k;                                                       \
        for (size_t l = 0; l < LANES; l++)                              \
            lanes[l] = worst;                                           \
        for (k = 0; k < dim; k += LANES) {                              \
            const type *now = x + (k + LANES <= dim ? k : dim - LANES); \
            for (size_t l = 0; l < LANES; l++)                          \
                lanes[l] = now[l] better lanes[l] ? now[l] : lanes[l];  \
        }                                                               \
        for (size_t l = 0; l < LANES; l++)                              \
            value = lanes[l] better value ? lanes[l] : value;           \
        for (k = 0; k < dim && x[k] != value; k++)                      \
            ;                                                           \
        return k < dim ? (int32_t)k : 0; /* all NaN: the first */       \
    }

/* One short contiguous column, of at least 1 element. */
#define SEARCH_SHORT(target, name, type, better)                         \
    target static inline int32_t name##_short(const type *x, size_t dim) \
    {                                                                    \
        size_t best = 0;                                                 \
        while (best + 1 < dim && x[best] != x[best]) /* NaN */           \
            best++;                                                      \
        best = x[best] != x[best] ? 0 : best;                            \
        type value = x[best];                                            \
        for (size_t k = best + 1; k < dim; k++)                          \
            if (__builtin_expect(x[k] better value, 0)) {                \
                value = x[k];                                            \
                best = k;                                                \
            }                                                            \
        return (int32_t)best;                                            \
    }

/* n columns side by side, `inner` elements from row to row.  A number wins against NaN. */
#define SEARCH_ROWS(target, name, type, better)                                                      \
    target static void name##_rows(const type *x, size_t dim, size_t inner, size_t n, int32_t *best) \
    {                                                                                                \
        type values[COLUMNS];                                                                        \
        memcpy(values, x, n * sizeof(type));                                                         \
        memset(best, 0, n * sizeof *best);                                                           \
        for (size_t k = 1; k < dim && !tq_stop_after(n / 8); k++)                                    \
            for (size_t i = 0; i < n; i++) {                                                         \
                type now = x[k * inner + i], held = values[i];                                       \
                bool wins = (now better held) | ((held != held) & (now == now));                     \
                values[i] = wins ? now : held;                                                       \
                best[i] = wins ? (int32_t)k : best[i];                                               \
            }                                                                                        \
    }
#define SEARCH(target, name, type, better, worst)                                              \
    SEARCH_COLUMN(target, name, type, better, worst)                                           \
    SEARCH_SHORT(target, name, type, better)                                                   \
    SEARCH_ROWS(target, name, type, better)                                                    \
    target static void name(const void *in, size_t dim, size_t inner, size_t n, int32_t *best) \
    {                                                                                          \
        const type *x = in;                                                                    \
        if (inner != 1)                                                                        \
            name##_rows(x, dim, inner, n, best);                                               \
        else                                                                                   \
            for (size_t i = 0; i < n && !tq_stop_after(dim); i++, x += dim)                    \
                best[i] = dim < SHORT ? name##_short(x, dim) : name##_column(x, dim);          \
    }
#define SEARCH_TYPE(isa, target, name, type, low, high) \
    SEARCH(target, max_##name##_##isa, type, >, low)    \
    SEARCH(target, min_##name##_##isa, type, <, high)
#define SEARCHES(isa, target)                                    \
    SEARCH_TYPE(isa, target, f32, float, -INFINITY, INFINITY)    \
    SEARCH_TYPE(isa, target, i8, int8_t, INT8_MIN, INT8_MAX)     \
    SEARCH_TYPE(isa, target, u8, uint8_t, 0, UINT8_MAX)          \
    SEARCH_TYPE(isa, target, i16, int16_t, INT16_MIN, INT16_MAX) \
    SEARCH_TYPE(isa, target, i32, int32_t, INT32_MIN, INT32_MAX) \
    SEARCH_TYPE(isa, target, i64, int64_t, INT64_MIN, INT64_MAX)
TQ_EVERY_ISA(SEARCHES)

/* BOOL is searched as UINT8. */
static search_fn choose(int32_t type, bool max)
{
#define ROW(TYPE, name)                                                \
    {                                                                  \
        TQ_TensorType_##TYPE,                                          \
        {                                                              \
            TQ_ISA_FUNCTIONS(min_##name), TQ_ISA_FUNCTIONS(max_##name) \
        }                                                              \
    }
    static const struct {
        int32_t type;
        search_fn run[2][TQ_ISAS];
    } rows[] = {
        ROW(FLOAT32, f32), ROW(INT8, i8),   ROW(UINT8, u8),  ROW(BOOL, u8),
        ROW(INT16, i16),   ROW(INT32, i32), ROW(INT64, i64),
    };
#undef ROW
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].type == type)
            return rows[i].run[max][tq_isa()];
    return NULL;
}

static void store(const tq_tensor *out, size_t at, const int32_t *best, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (out->type == TQ_TensorType_INT64)
            ((int64_t *)out->data)[at + i] = best[i];
        else
            ((int32_t *)out->data)[at + i] = best[i];
}

static tq_status eval_search(tq_node *node, tq_error *error)
{
    (void)error;
    const search *s = node->state;
    int32_t best[COLUMNS];
    /* With an inner of 1, columns are contiguous, and are searched together too. */
    size_t blocks = s->inner == 1 ? 1 : s->outer, width = s->inner == 1 ? s->outer : s->inner;
    for (size_t o = 0; o < blocks; o++)
        for (size_t c = 0; c < width && !tq_stop_after(s->dim * COLUMNS / 8); c += COLUMNS) {
            size_t n = width - c < COLUMNS ? width - c : COLUMNS;
            size_t from = s->inner == 1 ? c * s->dim : o * s->dim * s->inner + c;
            s->run((const char *)node->in[0]->data + from * s->element, s->dim, s->inner, n, best);
            store(node->out[0], o * s->inner * (s->inner != 1) + c, best, n);
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
    TQ_TRY(tq_check_input(
        node, 0, TQ_T(FLOAT32) | TQ_T(UINT8) | TQ_T(INT8) | TQ_T(INT16) | TQ_T(INT32) | TQ_T(INT64) | TQ_T(BOOL),
        error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(INT32) | TQ_T(INT64), error));
    const bool greatest = node->row.code == TQ_BuiltinOperator_ARG_MAX;
    int64_t said =
        tq_get_int(&node->options.table, greatest ? TQ_ArgMaxOptions_output_type : TQ_ArgMinOptions_output_type);
    TQ_TRY(tq_check_index_output(node, 0, said, error));
    if (tq_tensor_count(node->in[1]) != 1)
        return tq_input_fail(node, 1, error, "has %zu elements; it needs 1", tq_tensor_count(node->in[1]));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    s->element = tq_element_bytes(node->in[0]->type);
    s->run = choose(node->in[0]->type, greatest);
    node->eval = eval_search;
    return tq_shape_from_values(node, 1u << 1, search_shape, error);
}
