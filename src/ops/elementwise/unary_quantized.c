/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of one input of quantized values: 8 bits by a table of all values, INT16 element by element or by a table
 * of points.
 *
 *   RELU ...     clamp(zo + MBQM(q - zi, f32(si / so)), Q(low), Q(high))
 *   LEAKY_RELU   MBQM by f32(si / so) or, below zero, by the absolute value of f32(f32(si alpha) / so)
 *                optimized, INT16: by that ratio with its sign
 *                XNNPACK: multipliers in units of 1 / 256, ties up
 *   HARD_SWISH   16-bit fixed point: x times (x + 3) / 6, both rounded to 16 bits
 *   ABS          |q - zi|, rescaled where the scales differ
 *   SQRT         f32(sqrt(f32(si (q - zi))) / so), truncated
 *   RSQRT        INT8: the inverse square root of q - zi in fixed point; INT16: a table of points
 *   others       a function of real values (lookup_table.h), some with other bits for XNNPACK
 *
 * Source: LiteRT f6745779, tflite/kernels/activations.cc, elementwise.cc, exp.cc, reference/hard_swish.h,
 * leaky_relu.h.
 */
#include <math.h>

#include "ops/elementwise/fixed_point_lanes.h"
#include "ops/elementwise/float_functions.h"
#include "ops/elementwise/lookup_table.h"
#include "ops/elementwise/sigmoid_16.h"
#include "ops/elementwise/unary_quantized.h"
#include "quant/fixed_math.h"

typedef struct parameters {
    int32_t zero_in, zero_out;
    int32_t low, high; /* bounds of the quantized output */
    float scale_in, scale_out;
    tq_fixed identity, alpha;
    tq_lane_fixed lane_identity, lane_alpha;
    int32_t identity_256, alpha_256;
    bool alpha_negative, rescales;
    int16_t swish_multiplier, gate_multiplier; /* HARD_SWISH: Q15, with these shifts */
    int32_t swish_shift, gate_shift;
} parameters;

typedef struct state {
    tq_map map;
    parameters p;
} state;

/* ---- RELU, LEAKY_RELU, ABS, SQRT, RSQRT: the quantized output for a quantized input ---- */

static inline int32_t saturated_output(int64_t value, const parameters *p)
{
    return tq_clamp_i64(value + p->zero_out, p->low, p->high);
}

static inline int32_t relu(int32_t q, const parameters *p)
{
    return saturated_output(tq_multiply_fixed(q - p->zero_in, p->identity), p);
}

static inline int32_t leaky_relu(int32_t q, const parameters *p)
{
    int32_t x = q - p->zero_in;
    if (x >= 0)
        return saturated_output(tq_multiply_fixed(x, p->identity), p);
    int64_t scaled = tq_multiply_fixed(x, p->alpha);
    return saturated_output(p->alpha_negative ? -scaled : scaled, p);
}

/* XNNPACK's: multipliers in units of 1 / 256, ties up. */
static inline int32_t leaky_relu_256(int32_t q, const parameters *p)
{
    int32_t x = q - p->zero_in;
    return saturated_output((x * (x > 0 ? p->identity_256 : p->alpha_256) + 128) >> 8, p);
}

static inline int32_t absolute(int32_t q, const parameters *p)
{
    int32_t x = q < p->zero_in ? p->zero_in - q : q - p->zero_in;
    return saturated_output(p->rescales ? tq_multiply_fixed(x, p->identity) : x, p);
}

static inline int32_t square_root(int32_t q, const parameters *p)
{
    float root = sqrtf(p->scale_in * (float)(q - p->zero_in)) / p->scale_out;
    return tq_value_of_rounded(truncf(root), p->zero_out, p->low, p->high);
}

static inline int32_t inverse_square_root(int32_t q, const parameters *p)
{
    const int up = 20; /* left shift, so that the inverse is an integer */
    int32_t multiplier;
    int shift;
    if (q <= p->zero_in)
        return p->high;
    tq_inverse_sqrt((uint64_t)(q - p->zero_in), &multiplier, &shift);
    const tq_fixed root = {multiplier, shift + up, p->identity.single};
    const tq_fixed scale = {p->identity.multiplier, p->identity.shift - up, p->identity.single};
    return saturated_output(tq_multiply_fixed(tq_multiply_fixed(1, root), scale), p);
}

/* ---- HARD_SWISH ---- */

/* a * b / 2^15 in 16 bits, ties up. */
static inline int32_t high_16(int32_t a, int32_t b)
{
    return tq_clamp_i64(((int64_t)a * b + (1 << 14)) >> 15, INT16_MIN, INT16_MAX);
}

static inline int32_t left_16(int32_t x, int shift)
{
    return tq_clamp_i64(tq_shift_left_saturating(x, shift), INT16_MIN, INT16_MAX);
}

/* gemmlowp's RoundingDivideByPOT of 16 bits.  For shifts of 16 and more its mask overflows to -1, and the result is -1
   or 1, never 0. */
static inline int32_t right_16(int32_t x, int shift)
{
    return shift < 16 ? tq_rounding_divide_by_pot(x, shift) : x < 0 ? -1 : 1;
}

/* (x + 3) / 6 in [0, 1], Q15, for x at 2^7 times the input's resolution.  The last bit of a left shift comes after
   the multiplication, as in the runtime, so that saturation before it does not show. */
static inline int32_t swish_gate(int32_t x, const parameters *p)
{
    if (p->gate_shift > 0)
        x = left_16(x, p->gate_shift - 1);
    x = high_16(x, p->gate_multiplier);
    x = p->gate_shift > 0 ? left_16(x, 1) : right_16(x, -p->gate_shift);
    return (x + (1 << 15)) >> 1;
}

static inline int32_t hard_swish(int32_t q, const parameters *p)
{
    int32_t x = (int16_t)((q - p->zero_in) * 128);
    int32_t product = swish_gate(x, p) * high_16(x, p->swish_multiplier) / (1 << 15);
    int32_t y =
        p->swish_shift > 0 ? tq_shift_left_saturating(product, p->swish_shift) : right_16(product, -p->swish_shift);
    return saturated_output(y, p);
}

/* The leading 15 of a multiplier's 31 bits, rounded. */
static int16_t multiplier_16(int32_t multiplier)
{
    return multiplier >= INT32_MAX - (1 << 15) ? INT16_MAX : (int16_t)((multiplier + (1 << 15)) >> 16);
}

/* ---- tables and loops ---- */

/* The tq_quantized_fn that fills a table for 8 bits, and the loop for INT16. */
#define ENTRY(name)                                            \
    static int32_t name##_entry(int32_t q, const void *params) \
    {                                                          \
        return name(q, params);                                \
    }
#define LOOP_16(name) TQ_MAP(name##_int16, , int16_t, int16_t, parameters, name(x, &p))
ENTRY(relu)
ENTRY(leaky_relu)
ENTRY(leaky_relu_256)
ENTRY(absolute)
ENTRY(square_root)
ENTRY(inverse_square_root)
ENTRY(hard_swish)
LOOP_16(relu)
LOOP_16(leaky_relu)
LOOP_16(absolute)
LOOP_16(square_root)

/* INT16, whose zero points are 0, where tq_lane_fits holds for the multipliers. */
TQ_BODY int32_t lane_relu(int32_t q, const parameters *p)
{
    return tq_lane_quantized(tq_lane_multiply(q, p->lane_identity), p->low, p->high, 0);
}

TQ_BODY int32_t lane_leaky_relu(int32_t q, const parameters *p)
{
    const int32_t sign = -(int32_t)p->alpha_negative; /* no branch, which compilers would not vectorize */
    int32_t above = tq_lane_multiply(q, p->lane_identity), below = (tq_lane_multiply(q, p->lane_alpha) ^ sign) - sign;
    return tq_lane_quantized(q >= 0 ? above : below, p->low, p->high, 0);
}

TQ_ISA_DEFINE(TQ_MAP, lane_relu, int16_t, int16_t, parameters, lane_relu(x, &p))
TQ_ISA_DEFINE(TQ_MAP, lane_leaky_relu, int16_t, int16_t, parameters, lane_leaky_relu(x, &p))
static const tq_map_fn lane_relus[TQ_ISAS] = TQ_ISA_FUNCTIONS(lane_relu);
static const tq_map_fn lane_leaky_relus[TQ_ISAS] = TQ_ISA_FUNCTIONS(lane_leaky_relu);

static bool is_int16(const tq_node *node)
{
    return node->in[0]->type == TQ_TensorType_INT16;
}

static tq_status check_scales(const tq_node *node, tq_error *error)
{
    const int16_t code = node->row.code;
    const bool needs_scales = code == TQ_BuiltinOperator_ABS || code == TQ_BuiltinOperator_LOG ||
                              code == TQ_BuiltinOperator_RSQRT || code == TQ_BuiltinOperator_SQRT;
    TQ_TRY((needs_scales ? tq_check_quantized_input : tq_check_input_scale)(node, 0, error));
    TQ_TRY((needs_scales ? tq_check_quantized_output : tq_check_output_scale)(node, 0, error));
    if (!is_int16(node) || code == TQ_BuiltinOperator_GELU) /* whose kernel takes zero points of INT16 */
        return TQ_OK;
    if (tq_kernel_zero_point(node, node->in[0]) != 0)
        return tq_input_fail(node, 0, error, "has zero point %d; INT16 needs 0",
                             tq_kernel_zero_point(node, node->in[0]));
    if (tq_kernel_zero_point(node, node->out[0]) != 0)
        return tq_output_fail(node, 0, error, "has zero point %d; INT16 needs 0",
                              tq_kernel_zero_point(node, node->out[0]));
    return TQ_OK;
}

static tq_status find_parameters(const tq_node *node, parameters *p, tq_error *error)
{
    TQ_TRY(check_scales(node, error));
    p->zero_in = tq_kernel_zero_point(node, node->in[0]);
    p->zero_out = tq_kernel_zero_point(node, node->out[0]);
    p->scale_in = tq_kernel_scale(node, node->in[0]);
    p->scale_out = tq_kernel_scale(node, node->out[0]);
    p->rescales = p->scale_in != p->scale_out;
    tq_quantized_range(node->out[0]->type, &p->low, &p->high);
    return tq_fixed_find(node, p->scale_in / p->scale_out, &p->identity, error);
}

/* Prepares 8 bits by a table of `entry`, INT16 by the loop `wide` with its own copy of the parameters. */
static tq_status finish(tq_node *node, const parameters *p, tq_quantized_fn entry, tq_map_fn wide, tq_error *error)
{
    state *s;
    if (!is_int16(node))
        return tq_lookup_prepare(node, entry, p, error);
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    TQ_TRY(tq_map_prepare(node, &s->map, error));
    s->p = *p;
    s->map.params = &s->p;
    s->map.run = wide;
    s->map.cost = 1000;
    return TQ_OK;
}

/* ---- prepare ---- */

static tq_status prepare_relu(tq_node *node, tq_error *error)
{
    parameters p = {0};
    float least = 0, most = INFINITY;
    TQ_TRY(find_parameters(node, &p, error));
    TQ_TRY(tq_check_output_divisor(node, error));
    switch (node->row.code) {
    case TQ_BuiltinOperator_RELU6: most = 6; break;
    case TQ_BuiltinOperator_RELU_0_TO_1: most = 1; break;
    case TQ_BuiltinOperator_RELU_N1_TO_1: least = -1, most = 1; break;
    }
    int32_t low = p.low, high = p.high;
    p.low = tq_quantize_away(least, p.scale_out, p.zero_out, low, high);
    p.high = most == INFINITY ? high : tq_quantize_away(most, p.scale_out, p.zero_out, INT32_MIN, high);
    if (p.high < low) /* every value becomes the bound, and is cut to the type */
        p.low = p.high = tq_value_cut(node->out[0]->type, p.high);
    bool fits = tq_lane_fits(p.identity, 1 << 15);
    p.lane_identity = tq_lane_fixed_of(p.identity);
    return finish(node, &p, relu_entry, fits ? lane_relus[tq_isa()] : relu_int16, error);
}

static tq_status prepare_leaky_relu(tq_node *node, tq_error *error)
{
    parameters p = {0};
    TQ_TRY(find_parameters(node, &p, error));
    float alpha = (float)tq_get_scalar(&node->options.table, TQ_LeakyReluOptions_alpha).f;
    if (node->numerics == TQ_NUMERICS_XNNPACK && !is_int16(node)) {
        const float ratio = p.scale_in / p.scale_out;
        p.identity_256 = tq_multiplier_in_256ths(ratio);
        p.alpha_256 = tq_multiplier_in_256ths(ratio * alpha);
        TQ_TRY(finish(node, &p, leaky_relu_256_entry, NULL, error));
        tq_lookup_by_lines(node, p.alpha_256 / 256.0, p.identity_256 / 256.0);
        return TQ_OK;
    }
    float scaled = p.scale_in * alpha;
    TQ_TRY(tq_fixed_find(node, scaled / p.scale_out, &p.alpha, error));
    if (p.alpha.multiplier < 0 && is_int16(node) && node->numerics == TQ_NUMERICS_OPTIMIZED)
        return finish(node, &p, leaky_relu_entry, leaky_relu_int16, error); /* a negative multiplier */
    p.alpha_negative = p.alpha.multiplier < 0;
    if (p.alpha_negative)
        p.alpha.multiplier = tq_saturate_i32(-(int64_t)p.alpha.multiplier);
    bool fits = tq_lane_fits(p.identity, 1 << 15) && tq_lane_fits(p.alpha, 1 << 15);
    p.lane_identity = tq_lane_fixed_of(p.identity);
    p.lane_alpha = tq_lane_fixed_of(p.alpha);
    TQ_TRY(finish(node, &p, leaky_relu_entry, fits ? lane_leaky_relus[tq_isa()] : leaky_relu_int16, error));
    if (!is_int16(node))
        tq_lookup_by_lines(node, (double)(scaled / p.scale_out), (double)(p.scale_in / p.scale_out));
    return TQ_OK;
}

static tq_status prepare_hard_swish(tq_node *node, tq_error *error)
{
    parameters p = {0};
    tq_fixed swish, gate;
    TQ_TRY(find_parameters(node, &p, error));
    const float fine = 1.0f / 128.0f * p.scale_in;
    TQ_TRY(tq_fixed_find(node, fine / p.scale_out, &swish, error));
    TQ_TRY(tq_fixed_find(node, fine / (3.0f / 32768.0f), &gate, error));
    p.swish_multiplier = multiplier_16(swish.multiplier);
    p.swish_shift = swish.shift;
    p.gate_multiplier = multiplier_16(gate.multiplier);
    p.gate_shift = gate.shift;
    return finish(node, &p, hard_swish_entry, NULL, error);
}

static tq_status prepare_abs(tq_node *node, tq_error *error)
{
    parameters p = {0};
    TQ_TRY(find_parameters(node, &p, error));
    return finish(node, &p, absolute_entry, absolute_int16, error);
}

/* Whether an INT8 or INT16 element is less than `zero`. */
static bool is_any_below(const tq_tensor *in, int32_t zero)
{
    const size_t count = tq_tensor_count(in);
    const int8_t *bytes = in->data;
    const int16_t *words = in->data;
    bool found = false;
    if (in->type == TQ_TensorType_INT16)
        TQ_EACH (i, count)
            found |= words[i] < zero;
    else
        TQ_EACH (i, count)
            found |= bytes[i] < zero;
    return found;
}

/* SQRT and RSQRT refuse real values below 0. */
static tq_status eval_not_negative(tq_node *node, tq_error *error)
{
    const tq_tensor *in = node->in[0];
    const int32_t zero = tq_kernel_zero_point(node, in);
    if (!is_any_below(in, zero))
        return tq_map_eval(node, error);
    size_t i = 0;
    while (i + 1 < tq_tensor_count(in) && tq_integer_at(in, i) >= zero)
        i++;
    return tq_input_fail(node, 0, error,
                         "is negative at element %zu (quantized value %d, zero point %d), and %s needs 0 or more", i,
                         (int)tq_integer_at(in, i), (int)zero, node->op->name);
}

static tq_status prepare_sqrt(tq_node *node, tq_error *error)
{
    parameters p = {0};
    TQ_TRY(find_parameters(node, &p, error));
    TQ_TRY(tq_check_output_divisor(node, error));
    TQ_TRY(finish(node, &p, square_root_entry, square_root_int16, error));
    node->eval = eval_not_negative;
    return TQ_OK;
}

/* ---- functions of real values ---- */

static float real_exp(float x, const void *params)
{
    (void)params;
    return expf(x);
}

static float real_elu(float x, const void *params)
{
    (void)params;
    return tq_elu_libm(x);
}

static float real_tanh(float x, const void *params)
{
    (void)params;
    return tanhf(x);
}

/* XNNPACK's logistic, in float64. */
static float real_wide_logistic(float x, const void *params)
{
    (void)params;
    double e = exp((double)x);
    return x > 100 ? 1.0f : x < -100 ? 0.0f : (float)(e / (1 + e));
}

static float real_logistic(float x, const void *params)
{
    (void)params;
    return tq_logistic_libm(x);
}

static float real_gelu(float x, const void *params)
{
    return *(const bool *)params ? tq_gelu_by_tanh(x) : tq_gelu_libm(x);
}

/* params: the float for x <= 0, of which log and 1 / sqrt are not defined. */
static float real_log(float x, const void *params)
{
    return x <= 0.0f ? *(const float *)params : logf(x);
}

static float real_inverse_sqrt(float x, const void *params)
{
    return x <= 0.0f ? *(const float *)params : 1.0f / sqrtf(x);
}

static tq_status prepare_real(tq_node *node, tq_real_fn real, const void *params, tq_error *error)
{
    TQ_TRY(check_scales(node, error));
    return tq_lookup_prepare_real(node, real, params, error);
}

static tq_status prepare_exp(tq_node *node, tq_error *error)
{
    return prepare_real(node, real_exp, NULL, error);
}

static tq_status prepare_elu(tq_node *node, tq_error *error)
{
    return prepare_real(node, real_elu, NULL, error);
}

static tq_status prepare_gelu(tq_node *node, tq_error *error)
{
    bool approximate = tq_get_int(&node->options.table, TQ_GeluOptions_approximate) != 0;
    return prepare_real(node, real_gelu, &approximate, error);
}

static tq_status prepare_log(tq_node *node, tq_error *error)
{
    int32_t low, high;
    TQ_TRY(check_scales(node, error));
    tq_quantized_range(node->out[0]->type, &low, &high);
    float least = (float)(low - tq_kernel_zero_point(node, node->out[0])) * tq_kernel_scale(node, node->out[0]);
    return tq_lookup_prepare_real(node, real_log, &least, error);
}

static tq_status prepare_rsqrt(tq_node *node, tq_error *error)
{
    parameters p = {0};
    TQ_TRY(find_parameters(node, &p, error));
    if (is_int16(node)) {
        float most = (float)INT16_MAX * p.scale_out;
        TQ_TRY(tq_lookup_prepare_real(node, real_inverse_sqrt, &most, error));
    } else {
        TQ_TRY(tq_fixed_find(node, 1.0 / (double)(sqrtf(p.scale_in) * p.scale_out), &p.identity, error));
        TQ_TRY(tq_lookup_prepare(node, inverse_square_root_entry, &p, error));
    }
    node->eval = eval_not_negative;
    return TQ_OK;
}

static tq_status prepare_tanh(tq_node *node, tq_error *error)
{
    if (!is_int16(node))
        return prepare_real(node, real_tanh, NULL, error);
    TQ_TRY(check_scales(node, error));
    return tq_sigmoid_prepare(node, true, error);
}

static tq_status prepare_logistic(tq_node *node, tq_error *error)
{
    float needed = is_int16(node) ? 1.0f / 32768 : 1.0f / 256;
    TQ_TRY(check_scales(node, error));
    if (node->numerics != TQ_NUMERICS_XNNPACK && tq_kernel_scale(node, node->out[0]) != needed)
        return tq_output_fail(node, 0, error, "has scale %.9g; LOGISTIC needs 1/%d",
                              tq_kernel_scale(node, node->out[0]), is_int16(node) ? 32768 : 256);
    if (is_int16(node))
        return tq_sigmoid_prepare(node, false, error);
    return prepare_real(node, node->numerics == TQ_NUMERICS_XNNPACK ? real_wide_logistic : real_logistic, NULL, error);
}

/* ---- the operators and their types ---- */

static const struct {
    int16_t code;
    unsigned types;
    tq_op_fn prepare;
} rows[] = {
    {TQ_BuiltinOperator_RELU, TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16), prepare_relu},
    {TQ_BuiltinOperator_RELU6, TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16), prepare_relu},
    {TQ_BuiltinOperator_RELU_N1_TO_1, TQ_T(INT8) | TQ_T(UINT8), prepare_relu},
    {TQ_BuiltinOperator_RELU_0_TO_1, TQ_T(INT8) | TQ_T(UINT8), prepare_relu},
    {TQ_BuiltinOperator_LEAKY_RELU, TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16), prepare_leaky_relu},
    {TQ_BuiltinOperator_HARD_SWISH, TQ_T(INT8) | TQ_T(UINT8), prepare_hard_swish},
    {TQ_BuiltinOperator_ELU, TQ_T(INT8), prepare_elu},
    {TQ_BuiltinOperator_GELU, TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16), prepare_gelu},
    {TQ_BuiltinOperator_LOGISTIC, TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16), prepare_logistic},
    {TQ_BuiltinOperator_TANH, TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16), prepare_tanh},
    {TQ_BuiltinOperator_ABS, TQ_T(INT8) | TQ_T(INT16), prepare_abs},
    {TQ_BuiltinOperator_SQRT, TQ_T(INT8) | TQ_T(INT16), prepare_sqrt},
    {TQ_BuiltinOperator_RSQRT, TQ_T(INT8) | TQ_T(INT16), prepare_rsqrt},
    {TQ_BuiltinOperator_EXP, TQ_T(INT8) | TQ_T(INT16), prepare_exp},
    {TQ_BuiltinOperator_LOG, TQ_T(INT8) | TQ_T(INT16), prepare_log},
};

tq_op_fn tq_unary_quantized_find(const tq_node *node, unsigned *types)
{
    const tq_tensor *in = node->in[0];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].code != node->row.code)
            continue;
        *types |= rows[i].types;
        bool is_integer = rows[i].code == TQ_BuiltinOperator_ABS && is_int16(node) && in->quantization.count == 0;
        if (tq_type_is_in(in->type, rows[i].types) && !is_integer)
            return rows[i].prepare;
    }
    return NULL;
}
