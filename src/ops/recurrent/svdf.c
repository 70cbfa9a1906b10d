/* SPDX-License-Identifier: Apache-2.0
 *
 * SVDF: a fully-connected layer over time, factored into filters.  Inputs: x [n, inputs], feature weights
 * [filters, inputs], time weights [filters, memory], bias [units] or none, state [n, filters * memory]
 * (a variable).  filters = units * rank.
 *
 * The state moves back by one step, its newest is feature . x, and
 *     out[unit] = act(bias + sum over the unit's filters of time . state)
 *
 *     float32, hybrid    hybrid: x quantized row by row, time weights dequantized (ops/products/hybrid.h)
 *     int8               newest = clamp(multiply(sum w (x - z_x), f32(f32(s_x * s_w) / s_state)) + z_state) in the
 *                        type of state and time weights, INT16 (with zero point 0) or INT8; the output with
 *                        32-bit accumulators, clamp8(multiply(acc, f32(f32(s_state * s_time) / s_o)) + z_o); the
 *                        activation must be RELU, and is not applied
 *
 * Source: LiteRT f6745779, tflite/kernels/svdf.cc, internal/reference/svdf.h.  INT8 states follow
 * tflite-micro; LiteRT reads them as INT16, past their end.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/products/dot.h"
#include "ops/products/hybrid.h"
#include "ops/quantized.h"
#include "ops/scratch.h"
#include "ops/recurrent/state.h"

enum { INPUT, FEATURE, TIME, BIAS, STATE };

typedef struct svdf {
    size_t batches, inputs, filters, memory, rank, units;
    int64_t activation;
    tq_fixed to_state, to_output;
    tq_hybrid_rule rule;
    float *time;   /* hybrid: the time weights, dequantized; NULL where they are not constant */
    int32_t *sums; /* hybrid: sums of the feature weights' rows; NULL where they are not constant */
    uint64_t time_at, sums_at, quantized_at, products_at;
} svdf;

/* The index in the state of the newest step of filter f of batch b. */
static size_t newest(const svdf *s, size_t b, size_t f)
{
    return (b * s->filters + f) * s->memory + s->memory - 1;
}

enum { PIECE = 1 << 20 }; /* bytes */

/* Moves the whole state back by one element, piece by piece, and hears Ctrl-C between two pieces.  The caller
   overwrites the newest steps. */
static void move_back(const svdf *s, tq_tensor *state, size_t size)
{
    const size_t count = s->batches * s->filters * s->memory, bytes = count > 1 ? (count - 1) * size : 0;
    char *to = state->data;
    size_t work = 0;
    for (size_t at = 0; at < bytes && !tq_stop_count(&work, PIECE / 16); at += PIECE) {
        const size_t n = bytes - at < PIECE ? bytes - at : PIECE;
        memmove(to + at, to + at + size, n);
    }
}

static const tq_tensor *bias_of(const tq_node *node)
{
    return node->in[BIAS];
}

/* ---- floats ---- */

static void reduce_floats(const tq_node *node, const svdf *s, const float *time, float *products)
{
    size_t work = 0;
    const float *state = node->in[STATE]->data;
    const tq_tensor *bias = bias_of(node);
    float *out = node->out[0]->data;
    for (size_t i = 0; i < s->batches * s->filters && !tq_stop_count(&work, s->memory); i++)
        products[i] = tq_add_dot_f32(0, time + i % s->filters * s->memory, state + i * s->memory, s->memory);
    for (size_t i = 0; i < s->batches * s->units && !tq_stop_count(&work, s->rank); i++) {
        out[i] = tq_sum_f32(products + i * s->rank, s->rank);
        if (bias)
            out[i] += ((const float *)bias->data)[i % s->units];
    }
    tq_activate(s->activation, out, s->batches * s->units);
}

static tq_status eval_floats(tq_node *node, tq_error *error)
{
    size_t work = 0;
    (void)error;
    const svdf *s = node->state;
    const float *x = node->in[INPUT]->data, *feature = node->in[FEATURE]->data;
    float *state = node->in[STATE]->data;
    move_back(s, node->in[STATE], sizeof(float));
    for (size_t b = 0; b < s->batches; b++)
        for (size_t f = 0; f < s->filters && !tq_stop_count(&work, s->inputs); f++)
            state[newest(s, b, f)] = tq_add_dot_f32(0, feature + f * s->inputs, x + b * s->inputs, s->inputs);
    reduce_floats(node, s, node->in[TIME]->data, tq_scratch_at(node, s->products_at));
    return TQ_OK;
}

static void dequantize_time(const tq_tensor *time, float *to)
{
    size_t memory = (size_t)time->shape.dims[1];
    const size_t count = tq_tensor_count(time);
    TQ_EACH (i, count)
        to[i] = (float)((const int8_t *)time->data)[i] * tq_scale_at(time, i / memory);
}

static tq_status eval_hybrid(tq_node *node, tq_error *error)
{
    size_t work = 0;
    (void)error;
    const svdf *s = node->state;
    const int8_t *feature = node->in[FEATURE]->data;
    float *state = node->in[STATE]->data, *time = s->time;
    int32_t *sums = s->sums;
    int8_t *quantized = tq_scratch_at(node, s->quantized_at);
    if (!sums) {
        sums = tq_scratch_at(node, s->sums_at);
        tq_row_sums(feature, s->filters, s->inputs, sums);
    }
    if (!time) {
        time = tq_scratch_at(node, s->time_at);
        dequantize_time(node->in[TIME], time);
    }
    move_back(s, node->in[STATE], sizeof(float));
    for (size_t b = 0; b < s->batches; b++) {
        tq_hybrid_row row = s->rule((const float *)node->in[INPUT]->data + b * s->inputs, s->inputs, quantized);
        for (size_t f = 0; f < s->filters && !tq_stop_count(&work, s->inputs / 8); f++) {
            int64_t acc = tq_dot_i8(feature + f * s->inputs, quantized, s->inputs) - (int64_t)row.zero_point * sums[f];
            state[newest(s, b, f)] = (float)tq_wrap_i32(acc) * (row.scale * tq_scale_at(node->in[FEATURE], f));
        }
    }
    reduce_floats(node, s, time, tq_scratch_at(node, s->products_at));
    return TQ_OK;
}

/* ---- integers ---- */

static int32_t value_at(const tq_tensor *tensor, size_t i)
{
    return tensor->type == TQ_TensorType_INT16 ? ((const int16_t *)tensor->data)[i] : ((const int8_t *)tensor->data)[i];
}

static void put_quantized(tq_tensor *tensor, size_t i, int64_t q)
{
    if (tensor->type == TQ_TensorType_INT16)
        ((int16_t *)tensor->data)[i] = (int16_t)tq_clamp_i64(q, INT16_MIN, INT16_MAX);
    else
        ((int8_t *)tensor->data)[i] = (int8_t)tq_clamp_i64(q, INT8_MIN, INT8_MAX);
}

/* That of INT16 is not read. */
static int32_t state_zero_point(const tq_tensor *state)
{
    return state->type == TQ_TensorType_INT16 ? 0 : tq_zero_point_of(state);
}

/* Time weights . row i of the state: fewer than 2^31 products below 2^32 do not overflow. */
static int64_t over_time(const tq_node *node, const svdf *s, size_t i)
{
    const tq_tensor *time = node->in[TIME], *state = node->in[STATE];
    int32_t zero_point = state_zero_point(state);
    int64_t sum = 0;
    for (size_t step = 0; step < s->memory; step++)
        sum += (int64_t)value_at(time, i % s->filters * s->memory + step) *
               (value_at(state, i * s->memory + step) - zero_point);
    return sum;
}

static tq_status eval_quantized(tq_node *node, tq_error *error)
{
    size_t work = 0;
    (void)error;
    const svdf *s = node->state;
    const int8_t *x = node->in[INPUT]->data, *feature = node->in[FEATURE]->data;
    const tq_tensor *bias = bias_of(node);
    tq_tensor *state = node->in[STATE];
    int32_t zero_in = tq_kernel_zero_point(node, node->in[INPUT]);
    int32_t zero_out = tq_kernel_zero_point(node, node->out[0]);
    int32_t zero_state = state_zero_point(state);
    const size_t inputs = s->inputs;
    move_back(s, state, tq_element_bytes(state->type));
    for (size_t b = 0; b < s->batches; b++)
        for (size_t f = 0; f < s->filters && !tq_stop_count(&work, inputs); f++) {
            const int8_t *weights = feature + f * inputs, *row = x + b * inputs;
            uint32_t acc = 0; /* wraps */
            for (size_t i = 0; i < inputs; i++)
                acc += (uint32_t)(weights[i] * (row[i] - zero_in));
            int32_t q = tq_multiply_fixed((int32_t)acc, s->to_state);
            put_quantized(state, newest(s, b, f), (int64_t)q + zero_state);
        }
    for (size_t i = 0; i < s->batches * s->units; i++) {
        uint32_t acc = bias ? (uint32_t)((const int32_t *)bias->data)[i % s->units] : 0; /* wraps */
        for (size_t f = i * s->rank; f < (i + 1) * s->rank && !tq_stop_count(&work, 2 * s->memory); f++)
            acc += (uint32_t)over_time(node, s, f);
        int32_t q = tq_multiply_fixed(tq_wrap_i32(acc), s->to_output);
        ((int8_t *)node->out[0]->data)[i] = (int8_t)tq_clamp_i64((int64_t)q + zero_out, INT8_MIN, INT8_MAX);
    }
    return TQ_OK;
}

/* ---- prepare ---- */

static tq_status check_types(const tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, INPUT, TQ_T(FLOAT32) | TQ_T(INT8), error));
    TQ_TRY(tq_check_output_like(node, 0, INPUT, error));
    bool floats = node->in[INPUT]->type == TQ_TensorType_FLOAT32;
    TQ_TRY(tq_check_input(node, FEATURE, floats ? TQ_T(FLOAT32) | TQ_HYBRID_WEIGHTS : TQ_T(INT8), error));
    if (!floats)
        TQ_TRY(tq_check_input(node, TIME, TQ_T(INT16) | TQ_T(INT8), error));
    else
        TQ_TRY(tq_check_input_like(node, TIME, FEATURE, error));
    if (node->in[BIAS])
        TQ_TRY(tq_check_input(node, BIAS, floats ? TQ_T(FLOAT32) : TQ_T(INT32), error));
    return TQ_OK;
}

static tq_status check_shapes(tq_node *node, svdf *s, tq_error *error)
{
    for (int i = INPUT; i <= TIME; i++)
        TQ_TRY(tq_check_rank(node, i, 2, 2, error));
    const int32_t *x = node->in[INPUT]->shape.dims, *feature = node->in[FEATURE]->shape.dims;
    const int32_t *time = node->in[TIME]->shape.dims;
    int64_t rank = tq_get_int(&node->options.table, TQ_SVDFOptions_rank);
    if (rank <= 0 || feature[0] % rank)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "rank is %lld; it must be positive and divide the %d filters",
                          (long long)rank, feature[0]);
    if (feature[1] != x[1])
        return tq_input_fail(node, FEATURE, error, "takes %d inputs; the input has %d", feature[1], x[1]);
    if (time[0] != feature[0] || time[1] <= 0)
        return tq_input_fail(node, TIME, error, "has %d filters and %d steps; the feature weights have %d filters",
                             time[0], time[1], feature[0]);
    *s = (svdf){.batches = (size_t)x[0],
                .inputs = (size_t)x[1],
                .filters = (size_t)feature[0],
                .memory = (size_t)time[1],
                .rank = (size_t)rank,
                .units = (size_t)(feature[0] / rank)};
    if (node->in[BIAS] && tq_tensor_count(node->in[BIAS]) != s->units)
        return tq_input_fail(node, BIAS, error, "has %zu elements; there are %zu units",
                             tq_tensor_count(node->in[BIAS]), s->units);
    unsigned state = node->in[INPUT]->type == TQ_TensorType_INT8 ? tq_type_set(node->in[TIME]->type) : TQ_T(FLOAT32);
    TQ_TRY(tq_check_state(node, STATE, state, s->batches * s->filters * s->memory, error));
    tq_shape out = {2, {x[0], (int32_t)s->units}};
    return tq_output_shape(node, 0, &out, error);
}

static tq_status prepare_quantized(tq_node *node, svdf *s, tq_error *error)
{
    if (s->activation != TQ_ActivationFunctionType_RELU)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "activation is %lld; with int8 it must be RELU (1)",
                          (long long)s->activation);
    const int scaled[] = {INPUT, FEATURE, TIME, STATE};
    for (size_t i = 0; i < sizeof scaled / sizeof *scaled; i++)
        TQ_TRY(tq_check_quantized_input(node, scaled[i], error));
    TQ_TRY(tq_check_quantized_output(node, 0, error));
    float s_state = tq_kernel_scale(node, node->in[STATE]);
    float first = tq_kernel_scale(node, node->in[INPUT]) * tq_kernel_scale(node, node->in[FEATURE]) / s_state;
    float second = s_state * tq_kernel_scale(node, node->in[TIME]) / tq_kernel_scale(node, node->out[0]);
    TQ_TRY(tq_fixed_find(node, (double)first, &s->to_state, error));
    TQ_TRY(tq_fixed_find(node, (double)second, &s->to_output, error));
    node->eval = eval_quantized;
    return TQ_OK;
}

static tq_status prepare_hybrid(tq_node *node, svdf *s, uint64_t *total, tq_error *error)
{
    TQ_TRY(tq_check_weight_scales(node, FEATURE, 0, error));
    TQ_TRY(tq_check_weight_scales(node, TIME, 0, error));
    s->rule = tq_hybrid_rule_of(node, tq_get_int(&node->options.table, TQ_SVDFOptions_asymmetric_quantize_inputs) != 0);
    if (tq_is_constant(node->in[FEATURE])) {
        TQ_TRY(tq_node_memory(node, s->filters, sizeof *s->sums, &s->sums, error));
        tq_row_sums(node->in[FEATURE]->data, s->filters, s->inputs, s->sums);
    }
    size_t count = tq_tensor_count(node->in[TIME]);
    if (tq_is_constant(node->in[TIME])) {
        TQ_TRY(tq_node_memory(node, count, sizeof *s->time, &s->time, error));
        dequantize_time(node->in[TIME], s->time);
    }
    s->sums_at = tq_scratch_part(total, s->sums ? 0 : s->filters, sizeof *s->sums);
    s->time_at = tq_scratch_part(total, s->time ? 0 : count, sizeof *s->time);
    s->quantized_at = tq_scratch_part(total, s->inputs, 1);
    node->eval = eval_hybrid;
    return TQ_OK;
}

tq_status tq_prepare_svdf(tq_node *node, tq_error *error)
{
    TQ_TRY(check_types(node, error));
    svdf *s;
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    TQ_TRY(check_shapes(node, s, error));
    s->activation = tq_get_int(&node->options.table, TQ_SVDFOptions_fused_activation_function);
    TQ_TRY(tq_check_activation(node, s->activation, error));
    uint64_t total = 0;
    if (node->in[INPUT]->type == TQ_TensorType_INT8)
        TQ_TRY(prepare_quantized(node, s, error));
    else if (tq_is_hybrid_weights(node->in[FEATURE]))
        TQ_TRY(prepare_hybrid(node, s, &total, error));
    else
        node->eval = eval_floats;
    s->products_at = tq_scratch_part(&total, (uint64_t)s->batches * s->filters, sizeof(float));
    return tq_node_scratch(node, total, error);
}
