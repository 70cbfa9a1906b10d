/* SPDX-License-Identifier: Apache-2.0
 *
 * EQUAL to GREATER_EQUAL of quantized values and strings.  Other types are rows of binary.def.
 *
 *   quantized   each side is MBQM((q - z) 2^8, s), and these integers are compared: a resolution of 1/256.  INT8 and
 *               UINT8 by tables of all quantized values; INT16 for EQUAL and NOT_EQUAL.  The other comparisons of
 *               INT16, and integers without a scale, are rows of binary.def.
 *   strings     EQUAL and NOT_EQUAL, byte by byte
 *
 * The runtime aborts where a scale is 1, and loses bits where it is greater.  tq computes the left shift that the
 * formula needs.
 *
 * Source: LiteRT f6745779, tflite/kernels/comparisons.cc, internal/reference/comparisons.h.
 */
#include <string.h>

#include "model/tensor.h"
#include "ops/elementwise/binary.h"
#include "ops/quantized.h"

typedef struct sides {
    int32_t first[256], second[256]; /* indexed by a quantized value's low 8 bits */
    int32_t first_zero, second_zero;
    tq_fixed first_scale, second_scale;
} sides;

typedef struct state {
    tq_broadcast walk;
    sides s;
} state;

/* ---- quantized values ---- */

/* MBQM((q - zero_point) 2^8, scale): the real value in units of 1/256. */
static inline int32_t real_256ths(int32_t q, int32_t zero_point, tq_fixed scale)
{
    return tq_multiply_fixed((q - zero_point) * 256, scale);
}

#define COMPARE_BYTES(name, operator)                                           \
    static void name##_bytes(const tq_broadcast_run *run)                       \
    {                                                                           \
        const sides *s = run->params;                                           \
        const uint8_t *a = run->in[0], *b = run->in[1];                         \
        uint8_t *out = run->out;                                                \
        const size_t a_step = !run->scalar[0], b_step = !run->scalar[1];        \
        for (size_t i = 0; i < run->n; i++)                                     \
            out[i] = s->first[a[i * a_step]] operator s->second[b[i * b_step]]; \
    }
#define COMPARE_INT16(name, operator)                                \
    TQ_BROADCAST_2(name##_int16, , int16_t, int16_t, uint8_t, sides, \
                   real_256ths(x, p.first_zero, p.first_scale) operator real_256ths(y, p.second_zero, p.second_scale))
COMPARE_BYTES(equal, ==)
COMPARE_BYTES(not_equal, !=)
COMPARE_BYTES(less, <)
COMPARE_BYTES(less_equal, <=)
COMPARE_BYTES(greater, >)
COMPARE_BYTES(greater_equal, >=)
COMPARE_INT16(equal, ==)
COMPARE_INT16(not_equal, !=)

static const struct {
    int16_t code;
    tq_broadcast_fn bytes, int16; /* int16 NULL: a row of binary.def */
} rows[] = {
    {TQ_BuiltinOperator_EQUAL, equal_bytes, equal_int16},
    {TQ_BuiltinOperator_NOT_EQUAL, not_equal_bytes, not_equal_int16},
    {TQ_BuiltinOperator_LESS, less_bytes, NULL},
    {TQ_BuiltinOperator_LESS_EQUAL, less_equal_bytes, NULL},
    {TQ_BuiltinOperator_GREATER, greater_bytes, NULL},
    {TQ_BuiltinOperator_GREATER_EQUAL, greater_equal_bytes, NULL},
};

/* The function for a node's quantized inputs; NULL where binary.def has the row. */
static tq_broadcast_fn quantized_fn(const tq_node *node)
{
    const tq_tensor *in = node->in[0];
    for (size_t i = 0; in->quantization.count > 0 && i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].code != node->row.code)
            continue;
        if (in->type == TQ_TensorType_INT8 || in->type == TQ_TensorType_UINT8)
            return rows[i].bytes;
        return in->type == TQ_TensorType_INT16 ? rows[i].int16 : NULL;
    }
    return NULL;
}

static void fill(const tq_tensor *tensor, tq_fixed scale, int32_t *table)
{
    int32_t low, high;
    tq_quantized_range(tensor->type, &low, &high);
    for (int32_t q = low; q <= high; q++)
        table[(uint8_t)q] = real_256ths(q, tq_zero_point_of(tensor), scale);
}

static tq_status prepare_quantized(tq_node *node, tq_broadcast_fn run, tq_error *error)
{
    state *s;
    for (int i = 0; i < 2; i++)
        TQ_TRY(tq_check_input_scale(node, i, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    TQ_TRY(tq_broadcast_prepare(node, 0, 2, &s->walk, error));
    s->s.first_zero = tq_zero_point_of(node->in[0]);
    s->s.second_zero = tq_zero_point_of(node->in[1]);
    s->s.first_scale = tq_fixed_of(node, tq_scale_of(node->in[0]));
    s->s.second_scale = tq_fixed_of(node, tq_scale_of(node->in[1]));
    if (node->in[0]->type != TQ_TensorType_INT16) {
        fill(node->in[0], s->s.first_scale, s->s.first);
        fill(node->in[1], s->s.second_scale, s->s.second);
    }
    s->walk.params = &s->s;
    s->walk.run = run;
    s->walk.cost = 2000;
    node->eval = tq_broadcast_eval;
    return TQ_OK;
}

/* ---- strings ---- */

/* The index in `tensor`, which broadcasts to `shape`, of element i of `shape`. */
static size_t broadcast_index(const tq_tensor *tensor, const tq_shape *shape, size_t i)
{
    size_t index = 0, stride = 1;
    for (int back = 1; back <= shape->rank; back++) {
        size_t dim = (size_t)shape->dims[shape->rank - back], at = i % dim;
        i /= dim;
        if (back > tensor->shape.rank)
            continue;
        size_t own = (size_t)tensor->shape.dims[tensor->shape.rank - back];
        index += own == 1 ? 0 : at * stride;
        stride *= own;
    }
    return index;
}

static tq_status eval_strings(tq_node *node, tq_error *error)
{
    const bool asked = node->row.code == TQ_BuiltinOperator_EQUAL;
    const tq_shape *shape = &node->out[0]->shape;
    uint8_t *out = node->out[0]->data;
    size_t count = tq_shape_size(shape);
    tq_strings side[2];
    for (int k = 0; k < 2; k++) {
        tq_bytes data = {node->in[k]->data, node->in[k]->bytes};
        TQ_TRY(tq_strings_open(data, &side[k], error));
        if (side[k].count != tq_tensor_count(node->in[k]))
            return tq_input_fail(node, k, error, "holds %u strings, and its shape %zu", side[k].count,
                                 tq_tensor_count(node->in[k]));
    }
    size_t work = 0;
    for (size_t i = 0, each = 16; i < count && !tq_stop_count(&work, each); i++) {
        tq_bytes a = tq_strings_item(&side[0], (uint32_t)broadcast_index(node->in[0], shape, i));
        tq_bytes b = tq_strings_item(&side[1], (uint32_t)broadcast_index(node->in[1], shape, i));
        bool equal = a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
        each = 16 + a.size / 16;
        out[i] = equal == asked;
    }
    return TQ_OK;
}

static tq_status prepare_strings(tq_node *node, tq_error *error)
{
    tq_shape shape;
    TQ_TRY(tq_broadcast_shapes(node, (const tq_tensor *const *)node->in, 2, &shape, error));
    node->eval = eval_strings;
    return tq_output_shape(node, 0, &shape, error);
}

/* ---- prepare ---- */

tq_status tq_prepare_comparison(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input_like(node, 1, 0, error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(BOOL), error));
    bool is_equality = node->row.code == TQ_BuiltinOperator_EQUAL || node->row.code == TQ_BuiltinOperator_NOT_EQUAL;
    if (node->in[0]->type == TQ_TensorType_STRING && is_equality)
        return prepare_strings(node, error);
    tq_broadcast_fn run = quantized_fn(node);
    return run ? prepare_quantized(node, run, error) : tq_binary_prepare(node, error);
}
