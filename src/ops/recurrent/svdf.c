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

#include "kernels/isa.h"
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
        tq_hybrid_row row = s->rule((const float *)node->in[INPUT]->data + b * s->inputs, s->inputs, 1, quantized);
        for (size_t f = 0; f < s->filters && !tq_stop_count(&work, s->inputs / 8); f++) {
            int64_t acc = tq_dot_i8(feature + f * s->inputs, quantized, s->inputs) - (int64_t)row.zero_point * sums[f];
            state[newest(s, b, f)] = (float)tq_wrap_i32(acc) * (row.scale * tq_scale_at(node->in[FEATURE], f));
        }
    }
    reduce_floats(node, s, time, tq_scratch_at(node, s->products_at));
    return TQ_OK;
}

/* ---- integers ---- */

/* sums[r] = weights of row r . (x - zero_point), modulo 2^32, for `count` rows of n weights.  x has a row for each of
   the weights', or one for all. */
struct dots {
    const void *weights, *x;
    size_t count, n;
    bool is_int16; /* weights and x; else int8 */
    bool one_row;
    int32_t zero_point;
    uint32_t *sums;
};

enum { PRODUCTS = 2048 }; /* that are added at once */

TQ_BODY void add_neighbours(const uint32_t *restrict from, size_t n, uint32_t *restrict to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[2 * i] + from[2 * i + 1];
}

/* Adds to `sums` the products of `count` rows of n, at most PRODUCTS in all.  Rows are short: so products and sums of
   neighbours are made in all rows at once, in loops that compilers vectorize, until a row has an odd number of sums. */
#define DOTS_OF(isa, target, T)                                                                                   \
    target static void dots_##T##_##isa(const void *weights, const void *rows, uint32_t zero_point, size_t count, \
                                        size_t n, uint32_t *sums)                                                 \
    {                                                                                                             \
        uint32_t buffers[2][PRODUCTS], *from = buffers[0], *to = buffers[1];                                      \
        const T *w = weights, *x = rows;                                                                          \
        for (size_t i = 0; i < count * n; i++)                                                                    \
            from[i] = (uint32_t)w[i] * ((uint32_t)x[i] - zero_point);                                             \
        for (; n % 2 == 0; n /= 2) {                                                                              \
            add_neighbours(from, count * n / 2, to);                                                              \
            uint32_t *const other = from;                                                                         \
            from = to, to = other;                                                                                \
        }                                                                                                         \
        for (size_t r = 0; r < count; r++)                                                                        \
            for (size_t i = 0; i < n; i++)                                                                        \
                sums[r] += from[r * n + i];                                                                       \
    }
#define DOTS(isa, target) DOTS_OF(isa, target, int8_t) DOTS_OF(isa, target, int16_t)
TQ_EVERY_ISA(DOTS)

/* `bytes` bytes, which begin with a row, become whole rows. */
static void repeat_row(char *tile, size_t row, size_t bytes)
{
    for (size_t have = row, more; have < bytes; have += more) {
        more = bytes - have < have ? bytes - have : have;
        memcpy(tile + have, tile, more);
    }
}

static void sum_rows(const struct dots *d)
{
    static void (*const bodies[][TQ_ISAS])(const void *, const void *, uint32_t, size_t, size_t, uint32_t *) = {
        TQ_ISA_FUNCTIONS(dots_int8_t), TQ_ISA_FUNCTIONS(dots_int16_t)};
    const size_t bytes = d->is_int16 ? 2 : 1, some = d->n && d->n < PRODUCTS ? PRODUCTS / d->n : 1;
    const char *w = d->weights, *x = d->x;
    char tile[2 * PRODUCTS];
    if (d->one_row && some > 1) {
        const size_t rows = d->count < some ? d->count : some;
        memcpy(tile, x, d->n * bytes);
        repeat_row(tile, d->n * bytes, rows * d->n * bytes);
        x = tile;
    }
    memset(d->sums, 0, d->count * sizeof *d->sums);
    for (size_t row = 0, rows; row < d->count; row += rows, w += rows * d->n * bytes) {
        rows = d->count - row < some ? d->count - row : some;
        for (size_t k = 0; k < d->n && !tq_stop_after(PRODUCTS / 8); k += PRODUCTS)
            bodies[d->is_int16][tq_isa()](w + k * bytes, x + k * bytes, (uint32_t)d->zero_point, rows,
                                          d->n - k < PRODUCTS ? d->n - k : PRODUCTS, d->sums + row);
        x += d->one_row ? 0 : rows * d->n * bytes;
    }
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

/* The newest steps of the filters of batch b. */
static void add_steps(const tq_node *node, const svdf *s, size_t b, uint32_t *sums)
{
    const int32_t zero_state = state_zero_point(node->in[STATE]);
    struct dots d = {.weights = node->in[FEATURE]->data,
                     .x = (const int8_t *)node->in[INPUT]->data + b * s->inputs,
                     .count = s->filters,
                     .n = s->inputs,
                     .one_row = true,
                     .zero_point = tq_kernel_zero_point(node, node->in[INPUT]),
                     .sums = sums};
    sum_rows(&d);
    TQ_EACH (f, s->filters)
        put_quantized(node->in[STATE], newest(s, b, f),
                      (int64_t)tq_multiply_fixed((int32_t)sums[f], s->to_state) + zero_state);
}

/* The outputs of batch b. */
static void put_outputs(const tq_node *node, const svdf *s, size_t b, uint32_t *sums)
{
    const tq_tensor *bias = bias_of(node), *state = node->in[STATE];
    const bool is_int16 = state->type == TQ_TensorType_INT16;
    const int32_t zero_out = tq_kernel_zero_point(node, node->out[0]);
    int8_t *out = (int8_t *)node->out[0]->data + b * s->units;
    size_t work = 0;
    struct dots d = {.weights = node->in[TIME]->data,
                     .x = (const char *)state->data + b * s->filters * s->memory * (is_int16 ? 2 : 1),
                     .count = s->filters,
                     .n = s->memory,
                     .is_int16 = is_int16,
                     .zero_point = state_zero_point(state),
                     .sums = sums};
    sum_rows(&d);
    for (size_t i = 0; i < s->units && !tq_stop_count(&work, s->rank); i++) {
        uint32_t acc = bias ? (uint32_t)((const int32_t *)bias->data)[i] : 0; /* wraps */
        for (size_t f = i * s->rank; f < (i + 1) * s->rank; f++)
            acc += sums[f];
        const int32_t q = tq_multiply_fixed((int32_t)acc, s->to_output);
        out[i] = (int8_t)tq_clamp_i64((int64_t)q + zero_out, INT8_MIN, INT8_MAX);
    }
}

static tq_status eval_quantized(tq_node *node, tq_error *error)
{
    (void)error;
    const svdf *s = node->state;
    tq_tensor *state = node->in[STATE];
    move_back(s, state, tq_element_bytes(state->type));
    for (size_t b = 0; b < s->batches; b++) {
        add_steps(node, s, b, tq_scratch_at(node, s->products_at));
        put_outputs(node, s, b, tq_scratch_at(node, s->products_at));
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
