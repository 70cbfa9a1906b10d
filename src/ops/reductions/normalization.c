/* SPDX-License-Identifier: Apache-2.0
 *
 * L2_NORMALIZATION and LOCAL_RESPONSE_NORMALIZATION along the last dimension.
 *
 *   L2    x / max(sqrt(sum x^2), 1e-6), summed in order; quantized: MBQM by the inverse square root of the
 *         sum of (q - z)^2 in fixed point, to a scale of 1/128
 *   LRN   x (bias + alpha sum x^2)^-beta, the sum over the elements from -radius to +radius.  The runtime's reference
 *         kernel omits the last element; its optimized kernel, and TensorFlow, include it.
 * Source: LiteRT f6745779, tflite/kernels/l2norm.cc, local_response_norm.cc and internal/reference.
 */
#include <math.h>

#include "ops/check.h"
#include "ops/parallel.h"
#include "ops/elementwise/fixed_point_lanes.h"
#include "ops/quantized.h"
#include "quant/fixed_math.h"

#define COST 500 /* picoseconds an element */

typedef struct state state;
typedef void (*row_fn)(const state *s, const void *in, void *out, size_t n);

struct state {
    row_fn row;
    int32_t zero_point;
    bool single; /* multipliers round once */
    int64_t radius;
    float bias, alpha, beta;
};

/* ---- rows ---- */

static void l2_float(const state *s, const void *in, void *out, size_t n)
{
    (void)s;
    const float *x = in;
    float *y = out, sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    float norm = sqrtf(sum);
    norm = norm < 1e-6f ? 1e-6f : norm;
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] / norm;
}

#define SQUARES(T)                                                    \
    static uint64_t squares_##T(const state *s, const T *x, size_t n) \
    {                                                                 \
        uint64_t sum = 0;                                             \
        for (size_t i = 0; i < n; i++) {                              \
            int32_t value = x[i] - s->zero_point;                     \
            sum += (uint64_t)(value * value);                         \
        }                                                             \
        return sum;                                                   \
    }
SQUARES(int8_t)
SQUARES(uint8_t)

static void l2_int8(const state *s, const void *in, void *out, size_t n)
{
    const int8_t *x = in;
    int8_t *y = out;
    int32_t multiplier;
    int shift;
    tq_inverse_sqrt(squares_int8_t(s, x, n), &multiplier, &shift);
    const tq_fixed by = {multiplier, shift + 7, s->single};
    const int32_t zero = s->zero_point; /* a copy: stores of bytes may change *s */
    const tq_lane_fixed lane = tq_lane_fixed_of(by);
    if (tq_lane_fits(by, 255)) {
        TQ_EACH (i, n)
            y[i] = (int8_t)tq_lane_quantized(tq_lane_multiply(x[i] - zero, lane), -128, 127, 0);
        return;
    }
    TQ_EACH (i, n)
        y[i] = (int8_t)tq_clamp_i64(tq_multiply_fixed(x[i] - zero, by), -128, 127);
}

static void l2_uint8(const state *s, const void *in, void *out, size_t n)
{
    const uint8_t *x = in;
    uint8_t *y = out;
    int32_t multiplier;
    int shift;
    tq_inverse_sqrt(squares_uint8_t(s, x, n), &multiplier, &shift);
    const tq_fixed by = {multiplier, shift, s->single};
    const int32_t zero = s->zero_point;
    const tq_lane_fixed lane = tq_lane_fixed_of(by);
    if (tq_lane_fits(by, 128 * 255)) {
        TQ_EACH (i, n)
            y[i] = (uint8_t)tq_lane_quantized(tq_lane_multiply(128 * (x[i] - zero), lane), -128, 127, 128);
        return;
    }
    TQ_EACH (i, n)
        y[i] = (uint8_t)tq_clamp_i64((int64_t)tq_multiply_fixed(128 * (x[i] - zero), by) + 128, 0, 255);
}

static void local_response(const state *s, const void *in, void *out, size_t n)
{
    const float *x = in;
    float *y = out;
    for (size_t i = 0; i < n; i++) {
        size_t before = (uint64_t)s->radius < i ? (size_t)s->radius : i;
        size_t after = (uint64_t)s->radius < n - 1 - i ? (size_t)s->radius : n - 1 - i;
        float sum = 0;
        if (tq_stop_after(before + after))
            return;
        for (size_t k = i - before; k <= i + after; k++)
            sum += x[k] * x[k];
        y[i] = x[i] * powf(s->bias + s->alpha * sum, -s->beta);
    }
}

/* ---- eval ---- */

typedef struct walk {
    const state *s;
    const char *in;
    char *out;
    size_t depth, bytes; /* of a row */
} walk;

static void run_rows(void *context, size_t begin, size_t end)
{
    size_t work = 0;
    const walk *w = context;
    for (size_t i = begin; i < end && !tq_stop_count(&work, w->depth); i++)
        w->s->row(w->s, w->in + i * w->bytes, w->out + i * w->bytes, w->depth);
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_tensor *in = node->in[0];
    size_t count = tq_tensor_count(in), depth = (size_t)in->shape.dims[in->shape.rank - 1];
    walk w = {node->state, in->data, node->out[0]->data, depth, depth * tq_element_bytes(in->type)};
    if (count > 0)
        tq_parallel_work(count / depth, 1, depth * COST, node->threads, run_rows, &w);
    return TQ_OK;
}

/* ---- prepare ---- */

static tq_status begin(tq_node *node, unsigned types, int rank, state **out, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, types, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_check_rank(node, 0, rank, rank == 1 ? TQ_DIMS : rank, error));
    TQ_TRY(tq_output_shape(node, 0, &node->in[0]->shape, error));
    node->eval = eval;
    return tq_node_state(node, sizeof **out, out, error);
}

tq_status tq_prepare_l2_normalization(tq_node *node, tq_error *error)
{
    state *s;
    TQ_TRY(begin(node, TQ_T(FLOAT32) | TQ_T(INT8) | TQ_T(UINT8), 1, &s, error));
    int32_t type = node->in[0]->type, needed = type == TQ_TensorType_UINT8 ? 128 : 0;
    int64_t activation = tq_get_int(&node->options.table, TQ_L2NormOptions_fused_activation_function);
    if (activation != TQ_ActivationFunctionType_NONE)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has a fused activation, which L2_NORMALIZATION does not take");
    s->row = type == TQ_TensorType_FLOAT32 ? l2_float : type == TQ_TensorType_INT8 ? l2_int8 : l2_uint8;
    if (type == TQ_TensorType_FLOAT32)
        return TQ_OK;
    TQ_TRY(tq_check_input_scale(node, 0, error));
    if (tq_scale_of(node->out[0]) != 1.0f / 128 || tq_zero_point_of(node->out[0]) != needed)
        return tq_output_fail(node, 0, error, "has scale %.9g and zero point %d; L2_NORMALIZATION needs 1/128 and %d",
                              tq_scale_of(node->out[0]), tq_zero_point_of(node->out[0]), needed);
    s->zero_point = tq_zero_point_of(node->in[0]);
    s->single = tq_rounds_once(node);
    return TQ_OK;
}

tq_status tq_prepare_local_response_normalization(tq_node *node, tq_error *error)
{
    state *s;
    const tq_table *options = &node->options.table;
    TQ_TRY(begin(node, TQ_T(FLOAT32), 4, &s, error));
    s->row = local_response;
    s->radius = tq_get_int(options, TQ_LocalResponseNormalizationOptions_radius);
    s->bias = (float)tq_get_scalar(options, TQ_LocalResponseNormalizationOptions_bias).f;
    s->alpha = (float)tq_get_scalar(options, TQ_LocalResponseNormalizationOptions_alpha).f;
    s->beta = (float)tq_get_scalar(options, TQ_LocalResponseNormalizationOptions_beta).f;
    if (s->radius < 0)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has radius %lld; it needs to be 0 or more",
                          (long long)s->radius);
    const int64_t depth = node->in[0]->shape.dims[3];
    tq_node_work(node, tq_tensor_count(node->in[0]), (uint64_t)(s->radius < depth / 2 ? 2 * s->radius + 1 : depth));
    return TQ_OK;
}
