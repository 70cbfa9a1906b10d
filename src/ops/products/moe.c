/* SPDX-License-Identifier: Apache-2.0
 *
 * moe, a mixture of experts, LiteRT's custom operator: each token of the input, a row of model_dim elements, goes
 * through num_active_experts of num_experts small networks, and their results are added.
 *
 * Inputs: x [.., model_dim]; weights and indices of the routes [tokens, num_active_experts], float32 and int32; then
 * the constants gate and ff1 [hidden_dim, num_experts, model_dim] and linear [model_dim, num_experts, hidden_dim], each
 * followed by its scales unless the option weight_type is "fp32"; last a scale for each expert.  Row o of expert e is
 * row o * num_experts + e.  An index below 0 counts from the end.
 *
 *     y[t] = 0; in the order of experts, of an expert in the order of tokens and routes:
 *     y[t] += (linear . (activation(gate . x[t]) * (ff1 . x[t]))) * f32(scale[e] * weight[t][route])
 *
 *     products     of float32, in the order of kernels/gemm/gemm.h; XNNPACK: fused
 *     activation   GELU, by erfc, or by tanh for the option "gelu_tanh"
 *     "int8"       w = f32(q * scale of the row)
 *     "int4"       w = f32(q * scale of the group); a row has number of scales / number of rows groups.  q: INT4, or
 * two in each INT8 element.  LiteRT begins a row at a whole byte: with an odd number of columns every second row begins
 * with the last column of the row before.
 *
 * Source: LiteRT f6745779, tflite/delegates/xnnpack/moe_delegate_kernel.cc.
 */
#include <math.h>

#include "kernels/gemm/gemm.h"
#include "ops/check.h"
#include "ops/custom_options.h"
#include "ops/elementwise/float_functions.h"
#include "ops/scratch.h"

enum { X, ROUTE_WEIGHTS, ROUTE_INDICES, GATE }; /* inputs; after GATE they depend on weight_type */
enum { FP32, INT8, INT4 };                      /* weight_type */
enum { MOST_ROWS = 64 };                        /* tokens that go through an expert at once */

/* The weights of one of an expert's three products. */
typedef struct matrix {
    const tq_tensor *weights, *scales; /* scales: NULL for float32 */
    size_t out, in;                    /* rows of one expert, and columns */
    tq_gemm gemm;
    uint64_t packed_at;
} matrix;

typedef struct mixture {
    size_t experts, active, model, hidden, tokens;
    int weight_type;
    bool by_tanh;
    matrix gate, ff1, linear;
    const tq_tensor *expert_scales;
    /* in scratch: rows of the products, the route of each row, an expert's weights as float32, the kernel's own */
    uint64_t x_at, gate_at, ff1_at, y_at, route_at, weights_at, work_at;
} mixture;

/* ---- weights ---- */

/* The value of 4 bits at `at`, counted in values. */
static int32_t four_bits(const tq_tensor *weights, size_t at)
{
    const int8_t *q = weights->data;
    if (weights->type == TQ_TensorType_INT4)
        return q[at];
    const uint8_t bits = (uint8_t)((uint8_t)q[at / 2] >> at % 2 * 4 & 15);
    return (bits ^ 8) - 8;
}

static void read_row_of_4_bits(const matrix *m, size_t experts, size_t row, float *w)
{
    const size_t groups = tq_tensor_count(m->scales) / (m->out * experts);
    const size_t each = groups <= m->in ? m->in / groups : 1, begin = row * m->in / 2 * 2;
    const float *scales = (const float *)m->scales->data + row * groups;
    for (size_t i = 0; i < m->in; i++) {
        const size_t group = i / each < groups ? i / each : groups - 1;
        w[i] = (float)four_bits(m->weights, begin + i) * scales[group];
    }
}

static void read_row_of_8_bits(const matrix *m, size_t row, float *w)
{
    const int8_t *q = (const int8_t *)m->weights->data + row * m->in;
    const float scale = ((const float *)m->scales->data)[row];
    for (size_t i = 0; i < m->in; i++)
        w[i] = (float)q[i] * scale;
}

/* Packs an expert's weights for the matrix kernel. */
static void pack(const tq_node *node, const mixture *s, matrix *m, size_t expert)
{
    float *copy = tq_scratch_at(node, s->weights_at);
    tq_gemm_weights weights = {.data = copy, .type = TQ_f32, .channel_stride = m->in, .k_stride = 1};
    if (s->weight_type == FP32) {
        weights.data = (const float *)m->weights->data + expert * m->in;
        weights.channel_stride = s->experts * m->in;
    }
    for (size_t o = 0; s->weight_type != FP32 && o < m->out && !tq_stop_after(m->in); o++) {
        const size_t row = o * s->experts + expert;
        if (s->weight_type == INT4)
            read_row_of_4_bits(m, s->experts, row, copy + o * m->in);
        else
            read_row_of_8_bits(m, row, copy + o * m->in);
    }
    tq_gemm_pack(&m->gemm, &weights, tq_scratch_at(node, m->packed_at));
}

/* ---- eval ---- */

/* GELU's approximation as the delegate writes it: other operations than those of GELU. */
static float gelu_by_tanh(float x)
{
    const float inner = 0.7978845608028654f * x * (1.0f + 0.044715f * x * x);
    return 0.5f * x * (1.0f + tanhf(inner));
}

static void multiply(const tq_node *node, const mixture *s, const matrix *m, const float *x, size_t rows, float *out)
{
    const tq_gemm_rows in = {x, rows, m->in, NULL};
    const tq_gemm_store store = {.out = TQ_f32, .floor = -INFINITY, .ceiling = INFINITY};
    tq_gemm_run(&m->gemm, &in, &store, out, m->out, tq_scratch_at(node, s->work_at), node->threads);
}

/* Sends the first `rows` of the rows in scratch through an expert, and adds the results to the output. */
static void run_expert(const tq_node *node, const mixture *s, size_t expert, size_t rows)
{
    const float *x = tq_scratch_at(node, s->x_at), *route_weights = node->in[ROUTE_WEIGHTS]->data;
    float *gate = tq_scratch_at(node, s->gate_at), *ff1 = tq_scratch_at(node, s->ff1_at);
    float *y = tq_scratch_at(node, s->y_at), *out = node->out[0]->data;
    const size_t *route = tq_scratch_at(node, s->route_at);
    const float scale = ((const float *)s->expert_scales->data)[expert];
    multiply(node, s, &s->gate, x, rows, gate);
    multiply(node, s, &s->ff1, x, rows, ff1);
    TQ_EACH (i, rows * s->hidden)
        gate[i] = (s->by_tanh ? gelu_by_tanh(gate[i]) : tq_gelu_libm(gate[i])) * ff1[i];
    multiply(node, s, &s->linear, gate, rows, y);
    for (size_t r = 0; r < rows && !tq_stop_after(s->model); r++) {
        const float factor = scale * route_weights[route[r]];
        float *to = out + route[r] / s->active * s->model;
        for (size_t i = 0; i < s->model; i++)
            to[i] += y[r * s->model + i] * factor;
    }
}

/* The expert of a route; s->experts: there is none. */
static size_t expert_of(const mixture *s, int32_t index)
{
    const int64_t expert = index < 0 ? index + (int64_t)s->experts : index;
    return expert >= 0 && expert < (int64_t)s->experts ? (size_t)expert : s->experts;
}

/* Sends all tokens with routes to an expert through it. */
static void serve(const tq_node *node, mixture *s, size_t expert)
{
    const float *x = node->in[X]->data;
    const int32_t *indices = node->in[ROUTE_INDICES]->data;
    float *rows = tq_scratch_at(node, s->x_at);
    size_t *route = tq_scratch_at(node, s->route_at), held = 0;
    bool packed = false;
    TQ_EACH (i, s->tokens * s->active) {
        if (expert_of(s, indices[i]) != expert)
            continue;
        if (!packed) {
            pack(node, s, &s->gate, expert);
            pack(node, s, &s->ff1, expert);
            pack(node, s, &s->linear, expert);
            packed = true;
        }
        route[held] = i;
        tq_copy(rows + held++ * s->model, x + i / s->active * s->model, s->model * sizeof *x);
        if (held == MOST_ROWS) {
            run_expert(node, s, expert, held);
            held = 0;
        }
    }
    if (held > 0 && !tq_stop_now())
        run_expert(node, s, expert, held);
}

static tq_status eval(tq_node *node, tq_error *error)
{
    mixture s = *(const mixture *)node->state;
    const int32_t *indices = node->in[ROUTE_INDICES]->data;
    if (tq_stop_now())
        return TQ_INTERRUPTED;
    TQ_EACH (i, s.tokens * s.active)
        if (expert_of(&s, indices[i]) == s.experts)
            return tq_op_fail(node, error, TQ_BAD_DATA, "element %zu of input 2 is expert %d of %zu", i,
                              (int)indices[i], s.experts);
    if (node->out[0]->bytes > 0)
        tq_fill(node->out[0]->data, 0, node->out[0]->bytes);
    for (size_t expert = 0; expert < s.experts && !tq_stop_now(); expert++)
        serve(node, &s, expert);
    return TQ_OK;
}

/* ---- prepare ---- */

static tq_status check_count(const tq_node *node, int i, uint64_t count, tq_error *error)
{
    if (tq_tensor_count(node->in[i]) != count)
        return tq_input_fail(node, i, error, "has %zu elements; it needs %llu", tq_tensor_count(node->in[i]),
                             (unsigned long long)count);
    return TQ_OK;
}

static tq_status check_constant(const tq_node *node, int i, unsigned types, tq_error *error)
{
    TQ_TRY(tq_check_input(node, i, types, error));
    return tq_is_constant(node->in[i]) ? TQ_OK : tq_input_fail(node, i, error, "is no constant");
}

static tq_status read_options(const tq_node *node, mixture *s, tq_error *error)
{
    static const char *const types[] = {"fp32", "int8", "int4", NULL}, *const functions[] = {"gelu", "gelu_tanh", NULL};
    int64_t experts = 0, active = 0, model = 0, hidden = 0;
    int function = 0;
    TQ_TRY(tq_option_within(node, "num_experts", 1, INT32_MAX, &experts, error));
    TQ_TRY(tq_option_within(node, "num_active_experts", 1, experts, &active, error));
    TQ_TRY(tq_option_within(node, "model_dim", 1, INT32_MAX / experts, &model, error));
    TQ_TRY(tq_option_within(node, "hidden_dim", 1, INT32_MAX / (experts * model), &hidden, error));
    TQ_TRY(tq_option_name(node, "weight_type", types, -1, &s->weight_type, error));
    TQ_TRY(tq_option_name(node, "activation", functions, 0, &function, error));
    s->experts = (size_t)experts;
    s->active = (size_t)active;
    s->model = (size_t)model;
    s->hidden = (size_t)hidden;
    s->by_tanh = function == 1;
    return TQ_OK;
}

/* Sets a matrix of `out` rows of `in` columns for each expert, from input *i on, and moves *i behind it. */
static tq_status read_matrix(const tq_node *node, const mixture *s, size_t out, size_t in, int *i, matrix *m,
                             tq_error *error)
{
    static const unsigned types[] = {TQ_T(FLOAT32), TQ_T(INT8), TQ_T(INT8) | TQ_T(INT4)};
    const size_t rows = out * s->experts, count = rows * in;
    TQ_TRY(check_constant(node, *i, types[s->weight_type], error));
    m->weights = node->in[*i];
    m->out = out;
    m->in = in;
    const bool in_pairs = s->weight_type == INT4 && m->weights->type == TQ_TensorType_INT8;
    TQ_TRY(check_count(node, (*i)++, in_pairs ? (count + 1) / 2 : count, error));
    if (s->weight_type != FP32) {
        TQ_TRY(check_constant(node, *i, TQ_T(FLOAT32), error));
        m->scales = node->in[*i];
        const size_t scales = tq_tensor_count(m->scales);
        if (s->weight_type == INT8)
            TQ_TRY(check_count(node, *i, rows, error));
        else if (scales == 0 || scales % rows != 0)
            return tq_input_fail(node, *i, error, "has %zu elements; it needs a multiple of the %zu rows", scales,
                                 rows);
        (*i)++;
    }
    return tq_gemm_plan(&m->gemm, TQ_f32, out, 1, in, node->numerics == TQ_NUMERICS_XNNPACK ? TQ_GEMM_FUSED : 0, error);
}

static tq_status read_inputs(const tq_node *node, mixture *s, tq_error *error)
{
    int i = GATE;
    const int count = s->weight_type == FP32 ? 7 : 10;
    if (node->in_count != count)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %d inputs; with its weight_type it needs %d",
                          node->in_count, count);
    TQ_TRY(tq_check_input(node, X, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_input(node, ROUTE_WEIGHTS, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_input(node, ROUTE_INDICES, TQ_T(INT32), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    if (tq_tensor_count(node->in[X]) % s->model != 0)
        return tq_input_fail(node, X, error, "has %zu elements; it needs a multiple of model_dim, %zu",
                             tq_tensor_count(node->in[X]), s->model);
    s->tokens = tq_tensor_count(node->in[X]) / s->model;
    TQ_TRY(check_count(node, ROUTE_WEIGHTS, (uint64_t)s->tokens * s->active, error));
    TQ_TRY(check_count(node, ROUTE_INDICES, (uint64_t)s->tokens * s->active, error));
    TQ_TRY(read_matrix(node, s, s->hidden, s->model, &i, &s->gate, error));
    TQ_TRY(read_matrix(node, s, s->hidden, s->model, &i, &s->ff1, error));
    TQ_TRY(read_matrix(node, s, s->model, s->hidden, &i, &s->linear, error));
    TQ_TRY(check_constant(node, i, TQ_T(FLOAT32), error));
    s->expert_scales = node->in[i];
    return check_count(node, i, s->experts, error);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t plan_scratch(const tq_node *node, mixture *s)
{
    uint64_t total = 0, work = 0;
    matrix *const matrices[] = {&s->gate, &s->ff1, &s->linear};
    for (int i = 0; i < 3; i++) {
        matrices[i]->packed_at = tq_scratch_part(&total, matrices[i]->gemm.packed_bytes, 1);
        work = larger(work, tq_gemm_scratch_bytes(&matrices[i]->gemm, node->threads));
    }
    s->x_at = tq_scratch_part(&total, MOST_ROWS * s->model, sizeof(float));
    s->gate_at = tq_scratch_part(&total, MOST_ROWS * s->hidden, sizeof(float));
    s->ff1_at = tq_scratch_part(&total, MOST_ROWS * s->hidden, sizeof(float));
    s->y_at = tq_scratch_part(&total, MOST_ROWS * s->model, sizeof(float));
    s->route_at = tq_scratch_part(&total, MOST_ROWS, sizeof(size_t));
    s->weights_at = tq_scratch_part(&total, s->weight_type == FP32 ? 0 : s->model * s->hidden, sizeof(float));
    s->work_at = tq_scratch_part(&total, work, 1);
    return total;
}

tq_status tq_prepare_moe(tq_node *node, tq_error *error)
{
    mixture *s;
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    TQ_TRY(read_options(node, s, error));
    TQ_TRY(read_inputs(node, s, error));
    tq_node_work(node, (uint64_t)s->tokens * s->active, 3 * (uint64_t)s->model * s->hidden + s->experts);
    node->eval = eval;
    TQ_TRY(tq_output_shape(node, 0, &node->in[X]->shape, error));
    return tq_node_scratch(node, plan_scratch(node, s), error);
}
