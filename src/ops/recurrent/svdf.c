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

#include "base/sizes.h"
#include "kernels/gemm/gemm.h"
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
    tq_gemm gemm; /* int8: of the feature weights */
    uint64_t packed_at; /* in node->prepacked; of weights that are not constant in scratch */
    uint64_t time_at, sums_at, quantized_at, products_at, work_at;
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

/* The newest steps of batch b, whose input is quantized. */
static void add_hybrid_steps(const tq_node *node, const svdf *s, size_t b, const int32_t *sums, const int8_t *quantized,
                             tq_hybrid_row row)
{
    enum { SOME = 64 };
    const int8_t *feature = node->in[FEATURE]->data;
    float *state = (float *)node->in[STATE]->data + newest(s, b, 0);
    int32_t dots[SOME];
    for (size_t first = 0, n; first < s->filters && !tq_stop_after(SOME * s->inputs / 8); first += n) {
        n = tq_min_size(SOME, s->filters - first);
        tq_dot_rows_i8(feature + first * s->inputs, n, quantized, s->inputs, dots);
        for (size_t i = 0, f = first; i < n; i++, f++) {
            const int32_t acc = tq_wrap_i32(dots[i] - (int64_t)row.zero_point * sums[f]);
            state[f * s->memory] = (float)acc * (row.scale * tq_scale_at(node->in[FEATURE], f));
        }
    }
}

static tq_status eval_hybrid(tq_node *node, tq_error *error)
{
    (void)error;
    const svdf *s = node->state;
    const float *x = node->in[INPUT]->data;
    float *time = s->time;
    int32_t *sums = s->sums;
    int8_t *quantized = tq_scratch_at(node, s->quantized_at);
    if (!sums) {
        sums = tq_scratch_at(node, s->sums_at);
        tq_row_sums(node->in[FEATURE]->data, s->filters, s->inputs, sums);
    }
    if (!time) {
        time = tq_scratch_at(node, s->time_at);
        dequantize_time(node->in[TIME], time);
    }
    move_back(s, node->in[STATE], sizeof(float));
    for (size_t b = 0; b < s->batches && !tq_stop_now(); b++) {
        const tq_hybrid_row row = s->rule(x + b * s->inputs, s->inputs, 1, quantized);
        add_hybrid_steps(node, s, b, sums, quantized, row);
    }
    reduce_floats(node, s, time, tq_scratch_at(node, s->products_at));
    return TQ_OK;
}

/* ---- integers ---- */

/* sums[r] = row r of weights . (row r of x - zero_point), modulo 2^32, for `count` rows of n. */
struct dots {
    const void *weights, *x;
    size_t count, n;
    bool is_int16; /* weights and x; else int8 */
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

static void sum_rows(const struct dots *d)
{
    static void (*const bodies[][TQ_ISAS])(const void *, const void *, uint32_t, size_t, size_t, uint32_t *) = {
        TQ_ISA_FUNCTIONS(dots_int8_t), TQ_ISA_FUNCTIONS(dots_int16_t)};
    const size_t bytes = d->is_int16 ? 2 : 1, some = d->n && d->n < PRODUCTS ? PRODUCTS / d->n : 1;
    const char *w = d->weights, *x = d->x;
    memset(d->sums, 0, d->count * sizeof *d->sums);
    for (size_t row = 0, rows; row < d->count; row += rows, w += rows * d->n * bytes, x += rows * d->n * bytes) {
        rows = d->count - row < some ? d->count - row : some;
        for (size_t k = 0; k < d->n && !tq_stop_after(PRODUCTS / 8); k += PRODUCTS)
            bodies[d->is_int16][tq_isa()](w + k * bytes, x + k * bytes, (uint32_t)d->zero_point, rows,
                                          d->n - k < PRODUCTS ? d->n - k : PRODUCTS, d->sums + row);
    }
}

/* sums[i] = clamp(multiply(sums[i], by), least, most), in a loop that compilers vectorize. */
#define REQUANTIZE(isa, target)                                                                                  \
    target static void requantize_##isa(int32_t *sums, size_t n, const tq_fixed by, int32_t least, int32_t most) \
    {                                                                                                            \
        for (size_t i = 0; i < n; i++) {                                                                         \
            const int32_t q = tq_multiply_fixed(sums[i], by), raised = q < least ? least : q;                    \
            sums[i] = raised > most ? most : raised;                                                             \
        }                                                                                                        \
    }
TQ_EVERY_ISA(REQUANTIZE)

/* to[i * step] = the quantized value of sums[i], which changes.  `type` is INT8 or INT16. */
static void put_quantized(int32_t *sums, size_t n, tq_fixed by, int32_t zero_point, int32_t type, void *to, size_t step)
{
    static void (*const bodies[TQ_ISAS])(int32_t *, size_t, tq_fixed, int32_t, int32_t) = TQ_ISA_FUNCTIONS(requantize);
    int32_t low, high;
    tq_quantized_range(type, &low, &high);
    bodies[tq_isa()](sums, n, by, low - zero_point, high - zero_point);
    if (type == TQ_TensorType_INT16)
        TQ_EACH (i, n)
            ((int16_t *)to)[i * step] = (int16_t)(sums[i] + zero_point);
    else
        TQ_EACH (i, n)
            ((int8_t *)to)[i * step] = (int8_t)(sums[i] + zero_point);
}

/* That of INT16 is not read. */
static int32_t state_zero_point(const tq_tensor *state)
{
    return state->type == TQ_TensorType_INT16 ? 0 : tq_zero_point_of(state);
}

static void pack(const tq_node *node, tq_gemm *gemm, void *memory)
{
    const svdf *s = node->state;
    const tq_gemm_weights weights = {.data = node->in[FEATURE]->data,
                                     .type = TQ_i8,
                                     .channel_stride = s->inputs,
                                     .k_stride = 1,
                                     .row_zero_point = tq_kernel_zero_point(node, node->in[INPUT])};
    *gemm = s->gemm;
    tq_gemm_pack(gemm, &weights, memory);
}

static void prepack(tq_node *node)
{
    pack(node, node->prepacked, (char *)node->prepacked + ((const svdf *)node->state)->packed_at);
}

/* The newest steps. */
static void add_steps(const tq_node *node, const svdf *s, int32_t *sums)
{
    const tq_tensor *state = node->in[STATE];
    const tq_gemm_rows rows = {node->in[INPUT]->data, s->batches, s->inputs, NULL};
    const tq_gemm_store store = {.out = TQ_i32};
    const bool constant = tq_is_constant(node->in[FEATURE]);
    tq_gemm own;
    if (!constant)
        pack(node, &own, tq_scratch_at(node, s->packed_at));
    tq_gemm_run(constant ? node->prepacked : &own, &rows, &store, sums, s->filters, tq_scratch_at(node, s->work_at),
                node->threads);
    put_quantized(sums, s->batches * s->filters, s->to_state, state_zero_point(state), state->type,
                  (char *)state->data + newest(s, 0, 0) * tq_element_bytes(state->type), s->memory);
}

/* The outputs of batch b. */
static void put_outputs(const tq_node *node, const svdf *s, size_t b, int32_t *sums)
{
    const tq_tensor *bias = bias_of(node), *state = node->in[STATE];
    const struct dots d = {.weights = node->in[TIME]->data,
                           .x = (const char *)state->data + b * s->filters * s->memory * tq_element_bytes(state->type),
                           .count = s->filters,
                           .n = s->memory,
                           .is_int16 = state->type == TQ_TensorType_INT16,
                           .zero_point = state_zero_point(state),
                           .sums = (uint32_t *)sums};
    size_t work = 0;
    sum_rows(&d);
    for (size_t i = 0; i < s->units && !tq_stop_count(&work, s->rank); i++) {
        uint32_t acc = bias ? (uint32_t)((const int32_t *)bias->data)[i] : 0; /* wraps */
        for (size_t f = i * s->rank; f < (i + 1) * s->rank; f++)
            acc += (uint32_t)sums[f];
        sums[i] = (int32_t)acc;
    }
    put_quantized(sums, s->units, s->to_output, tq_kernel_zero_point(node, node->out[0]), TQ_TensorType_INT8,
                  (int8_t *)node->out[0]->data + b * s->units, 1);
}

static tq_status eval_quantized(tq_node *node, tq_error *error)
{
    (void)error;
    const svdf *s = node->state;
    tq_tensor *state = node->in[STATE];
    int32_t *sums = tq_scratch_at(node, s->products_at);
    move_back(s, state, tq_element_bytes(state->type));
    add_steps(node, s, sums);
    for (size_t b = 0; b < s->batches; b++)
        put_outputs(node, s, b, sums);
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

static tq_status prepare_quantized(tq_node *node, svdf *s, uint64_t *total, tq_error *error)
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
    TQ_TRY(tq_gemm_plan(&s->gemm, TQ_i8, s->filters, 1, s->inputs, 0, error));
    const bool constant = tq_is_constant(node->in[FEATURE]);
    uint64_t prepacked = 0;
    tq_scratch_part(&prepacked, 1, sizeof s->gemm);
    s->packed_at = tq_scratch_part(constant ? &prepacked : total, s->gemm.packed_bytes, 1);
    s->work_at = tq_scratch_part(total, tq_gemm_scratch_bytes(&s->gemm, node->threads), 1);
    node->eval = eval_quantized;
    const int64_t key[] = {(intptr_t)s->gemm.kernel};
    return constant ? tq_node_prepack(node, prepacked, prepack, key, 1, error) : TQ_OK;
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
        TQ_TRY(prepare_quantized(node, s, &total, error));
    else if (tq_is_hybrid_weights(node->in[FEATURE]))
        TQ_TRY(prepare_hybrid(node, s, &total, error));
    else
        node->eval = eval_floats;
    s->products_at = tq_scratch_part(&total, (uint64_t)s->batches * s->filters, sizeof(float));
    return tq_node_scratch(node, total, error);
}
