/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of one input whose elements are codes: 8 bits by a table of all codes, INT16 element by
 * element or by a table of points.
 *
 *   RELU ...     clamp(zo + MBQM(q - zi, f32(si / so)), Q(low), Q(high))
 *   LEAKY_RELU   MBQM by f32(si / so) or, below zero, by the absolute value of f32(f32(si alpha) / so)
 *                optimized, INT16: by that number as it is, also where it is negative
 *                XNNPACK: multipliers in units of 1 / 256, ties up; and other real functions: lookup.h
 *   HARD_SWISH   16-bit fixed point: x times (x + 3) / 6, both rounded to 16 bits
 *   ABS          |q - zi|, rescaled where the scales differ
 *   SQRT         f32(sqrt(f32(si (q - zi))) / so), truncated
 *   RSQRT        INT8: the inverse square root of q - zi in fixed point; INT16: a table of points
 *   others       a real function (lookup.h)
 *
 * Source: LiteRT f6745779, tflite/kernels/activations.cc, elementwise.cc, exp.cc, reference/hard_swish.h,
 * leaky_relu.h.
 */
#include <math.h>

#include "ops/elementwise/fixed_point_lanes.h"
#include "ops/elementwise/lookup_table.h"
#include "ops/elementwise/float_functions.h"
#include "ops/elementwise/sigmoid_16.h"
#include "ops/elementwise/unary.h"
#include "quant/fixed_math.h"

typedef struct codes {
    int32_t zero_in, zero_out;
    int32_t low, high; /* of the output's codes */
    float scale_in, scale_out;
    tq_fixed identity, alpha;
    tq_lane_fixed lane_identity, lane_alpha;
    int32_t identity_256, alpha_256;
    bool alpha_negative, rescales;
    int16_t swish_multiplier, gate_multiplier; /* HARD_SWISH: Q15, with these shifts */
    int32_t swish_shift, gate_shift;
} codes;

typedef struct state {
    tq_map map;
    codes c;
} state;

/* ---- RELU, LEAKY_RELU, ABS, SQRT, RSQRT: one code for one code ---- */

static inline int32_t code_of(int64_t value, const codes *c)
{
    return tq_clamp_i64(value + c->zero_out, c->low, c->high);
}

static inline int32_t relu(int32_t q, const codes *c)
{
    return code_of(tq_multiply_fixed(q - c->zero_in, c->identity), c);
}

static inline int32_t leaky_relu(int32_t q, const codes *c)
{
    int32_t x = q - c->zero_in;
    if (x >= 0)
        return code_of(tq_multiply_fixed(x, c->identity), c);
    int64_t scaled = tq_multiply_fixed(x, c->alpha);
    return code_of(c->alpha_negative ? -scaled : scaled, c);
}

/* XNNPACK's: multipliers in units of 1 / 256, ties up. */
static inline int32_t leaky_relu_256(int32_t q, const codes *c)
{
    int32_t x = q - c->zero_in;
    return code_of((x * (x > 0 ? c->identity_256 : c->alpha_256) + 128) >> 8, c);
}

static inline int32_t absolute(int32_t q, const codes *c)
{
    int32_t x = q < c->zero_in ? c->zero_in - q : q - c->zero_in;
    return code_of(c->rescales ? tq_multiply_fixed(x, c->identity) : x, c);
}

static inline int32_t square_root(int32_t q, const codes *c)
{
    float root = sqrtf(c->scale_in * (float)(q - c->zero_in)) / c->scale_out;
    return tq_value_of_rounded(truncf(root), c->zero_out, c->low, c->high);
}

static inline int32_t inverse_square_root(int32_t q, const codes *c)
{
    const int up = 20; /* to keep the inverse an integer */
    int32_t multiplier;
    int shift;
    if (q <= c->zero_in)
        return c->high;
    tq_inverse_sqrt((uint64_t)(q - c->zero_in), &multiplier, &shift);
    int32_t inverse = tq_multiply_double(1, multiplier, shift + up);
    return code_of(tq_multiply_double(inverse, c->identity.multiplier, c->identity.shift - up), c);
}

/* ---- HARD_SWISH ---- */

/* a * b / 2^15 in 16 bits, ties up. */
static inline int32_t high_16(int32_t a, int32_t b)
{
    return tq_clamp_i64(((int64_t)a * b + (1 << 14)) >> 15, INT16_MIN, INT16_MAX);
}

static inline int32_t left_16(int32_t x, int places)
{
    return tq_clamp_i64(tq_shift_left_saturating(x, places), INT16_MIN, INT16_MAX);
}

/* gemmlowp's R of 16 bits, whose mask for 16 places and more is -1: what it leaves of x is never nearest to 0. */
static inline int32_t right_16(int32_t x, int places)
{
    return places < 16 ? tq_rounding_divide_by_pot(x, places) : x < 0 ? -1 : 1;
}

/* (x + 3) / 6 in [0, 1], Q15, for x at 2^7 times the input's resolution.  The last bit of a shift to the left comes
   after the multiplication, so that what saturates before it does not show. */
static inline int32_t swish_gate(int32_t x, const codes *c)
{
    if (c->gate_shift > 0)
        x = left_16(x, c->gate_shift - 1);
    x = high_16(x, c->gate_multiplier);
    x = c->gate_shift > 0 ? left_16(x, 1) : right_16(x, -c->gate_shift);
    return (x + (1 << 15)) >> 1;
}

static inline int32_t hard_swish(int32_t q, const codes *c)
{
    int32_t x = (int16_t)((q - c->zero_in) * 128);
    int32_t product = swish_gate(x, c) * high_16(x, c->swish_multiplier) / (1 << 15);
    int32_t y =
        c->swish_shift > 0 ? tq_shift_left_saturating(product, c->swish_shift) : right_16(product, -c->swish_shift);
    return code_of(y, c);
}

/* Of a multiplier's 31 bits the leading 15, rounded. */
static int16_t multiplier_16(int32_t multiplier)
{
    return multiplier >= INT32_MAX - (1 << 15) ? INT16_MAX : (int16_t)((multiplier + (1 << 15)) >> 16);
}

/* ---- tables and loops ---- */

#define CODE(name)                                            \
    static int32_t name##_code(int32_t q, const void *params) \
    {                                                         \
        return name(q, params);                               \
    }
#define CODE_16(name) TQ_MAP(name##_int16, , int16_t, int16_t, codes, name(x, &p))
CODE(relu)
CODE(leaky_relu)
CODE(leaky_relu_256)
CODE(absolute)
CODE(square_root)
CODE(inverse_square_root)
CODE(hard_swish)
CODE_16(relu)
CODE_16(leaky_relu)

/* INT16, whose zero points are 0, where the multipliers fit lanes. */
TQ_BODY int32_t lane_relu(int32_t q, const codes *c)
{
    return tq_lane_quantized(tq_lane_multiply(q, c->lane_identity), c->low, c->high, 0);
}

TQ_BODY int32_t lane_leaky_relu(int32_t q, const codes *c)
{
    int32_t above = tq_lane_multiply(q, c->lane_identity), below = tq_lane_multiply(q, c->lane_alpha);
    below = c->alpha_negative ? -below : below;
    return tq_lane_quantized(q >= 0 ? above : below, c->low, c->high, 0);
}

TQ_ISA_DEFINE(TQ_MAP, lane_relu, int16_t, int16_t, codes, lane_relu(x, &p))
TQ_ISA_DEFINE(TQ_MAP, lane_leaky_relu, int16_t, int16_t, codes, lane_leaky_relu(x, &p))
static const tq_map_fn lane_relus[TQ_ISAS] = TQ_ISA_FUNCTIONS(lane_relu);
static const tq_map_fn lane_leaky_relus[TQ_ISAS] = TQ_ISA_FUNCTIONS(lane_leaky_relu);
CODE_16(absolute)
CODE_16(square_root)

static bool is_int16(const tq_node *node)
{
    return node->in[0]->type == TQ_TensorType_INT16;
}

static tq_status check_scales(const tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input_scale(node, 0, error));
    TQ_TRY(tq_check_output_scale(node, 0, error));
    if (is_int16(node) && tq_zero_point_at(node->in[0], 0) != 0)
        return tq_input_fail(node, 0, error, "has zero point %d; INT16 needs 0", tq_zero_point_at(node->in[0], 0));
    if (is_int16(node) && tq_zero_point_at(node->out[0], 0) != 0)
        return tq_output_fail(node, 0, error, "has zero point %d; INT16 needs 0", tq_zero_point_at(node->out[0], 0));
    return TQ_OK;
}

static tq_status find_codes(const tq_node *node, codes *c, tq_error *error)
{
    TQ_TRY(check_scales(node, error));
    c->zero_in = tq_zero_point_at(node->in[0], 0);
    c->zero_out = tq_zero_point_at(node->out[0], 0);
    c->scale_in = tq_scale_at(node->in[0], 0);
    c->scale_out = tq_scale_at(node->out[0], 0);
    c->rescales = c->scale_in != c->scale_out;
    tq_quantized_range(node->out[0]->type, &c->low, &c->high);
    return tq_fixed_find(node, c->scale_in / c->scale_out, &c->identity, error);
}

/* 8 bits by a table; INT16 by a loop over its own copy of the parameters. */
static tq_status finish(tq_node *node, const codes *c, tq_quantized_fn code, tq_map_fn wide, tq_error *error)
{
    state *s;
    if (!is_int16(node))
        return tq_lookup_prepare(node, code, c, error);
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    TQ_TRY(tq_map_prepare(node, &s->map, error));
    s->c = *c;
    s->map.params = &s->c;
    s->map.run = wide;
    s->map.cost = 3;
    return TQ_OK;
}

/* ---- prepare ---- */

static tq_status prepare_relu(tq_node *node, tq_error *error)
{
    codes c = {0};
    float least = 0, most = INFINITY;
    TQ_TRY(find_codes(node, &c, error));
    switch (node->row.code) {
    case TQ_BuiltinOperator_RELU6: most = 6; break;
    case TQ_BuiltinOperator_RELU_0_TO_1: most = 1; break;
    case TQ_BuiltinOperator_RELU_N1_TO_1: least = -1, most = 1; break;
    }
    int32_t low = c.low, high = c.high;
    c.low = tq_quantize_away(least, c.scale_out, c.zero_out, low, high);
    c.high = most == INFINITY ? high : tq_quantize_away(most, c.scale_out, c.zero_out, low, high);
    bool fits = tq_lane_fits(c.identity, 1 << 15);
    c.lane_identity = tq_lane_fixed_of(c.identity);
    return finish(node, &c, relu_code, fits ? lane_relus[tq_isa()] : relu_int16, error);
}

static tq_status prepare_leaky_relu(tq_node *node, tq_error *error)
{
    codes c = {0};
    TQ_TRY(find_codes(node, &c, error));
    float alpha = (float)tq_get_scalar(&node->options.table, TQ_LeakyReluOptions_alpha).f;
    if (node->numerics == TQ_NUMERICS_XNNPACK && !is_int16(node)) {
        const float ratio = c.scale_in / c.scale_out;
        c.identity_256 = tq_parts_of_256(ratio);
        c.alpha_256 = tq_parts_of_256(ratio * alpha);
        return finish(node, &c, leaky_relu_256_code, NULL, error);
    }
    float scaled = c.scale_in * alpha;
    TQ_TRY(tq_fixed_find(node, scaled / c.scale_out, &c.alpha, error));
    if (c.alpha.multiplier < 0 && is_int16(node) && node->numerics != TQ_NUMERICS_REFERENCE)
        return finish(node, &c, leaky_relu_code, leaky_relu_int16, error); /* by the negative multiplier, as it is */
    c.alpha_negative = c.alpha.multiplier < 0;
    if (c.alpha_negative)
        c.alpha.multiplier = tq_saturate_i32(-(int64_t)c.alpha.multiplier);
    bool fits = tq_lane_fits(c.identity, 1 << 15) && tq_lane_fits(c.alpha, 1 << 15);
    c.lane_identity = tq_lane_fixed_of(c.identity);
    c.lane_alpha = tq_lane_fixed_of(c.alpha);
    return finish(node, &c, leaky_relu_code, fits ? lane_leaky_relus[tq_isa()] : leaky_relu_int16, error);
}

static tq_status prepare_hard_swish(tq_node *node, tq_error *error)
{
    codes c = {0};
    tq_fixed swish, gate;
    TQ_TRY(find_codes(node, &c, error));
    const float fine = 1.0f / 128.0f * c.scale_in;
    TQ_TRY(tq_fixed_find(node, fine / c.scale_out, &swish, error));
    TQ_TRY(tq_fixed_find(node, fine / (3.0f / 32768.0f), &gate, error));
    c.swish_multiplier = multiplier_16(swish.multiplier);
    c.swish_shift = swish.shift;
    c.gate_multiplier = multiplier_16(gate.multiplier);
    c.gate_shift = gate.shift;
    return finish(node, &c, hard_swish_code, NULL, error);
}

static tq_status prepare_abs(tq_node *node, tq_error *error)
{
    codes c = {0};
    TQ_TRY(find_codes(node, &c, error));
    return finish(node, &c, absolute_code, absolute_int16, error);
}

/* SQRT and RSQRT refuse numbers below zero, which are known when they run. */
static tq_status eval_not_negative(tq_node *node, tq_error *error)
{
    const tq_tensor *in = node->in[0];
    const int32_t zero = tq_zero_point_at(in, 0);
    size_t count = tq_tensor_count(in);
    for (size_t i = 0; i < count; i++)
        if (tq_integer_at(in, i) < zero)
            return tq_input_fail(node, 0, error,
                                 "is negative at element %zu (code %d, zero point %d), and %s needs 0 or more", i,
                                 (int)tq_integer_at(in, i), (int)zero, node->op->name);
    return tq_map_eval(node, error);
}

static tq_status prepare_sqrt(tq_node *node, tq_error *error)
{
    codes c = {0};
    TQ_TRY(find_codes(node, &c, error));
    TQ_TRY(finish(node, &c, square_root_code, square_root_int16, error));
    node->eval = eval_not_negative;
    return TQ_OK;
}

/* ---- real functions ---- */

static float real_exp(float x, const void *params)
{
    (void)params;
    return expf(x);
}

static float real_elu(float x, const void *params)
{
    (void)params;
    return tq_elu(x);
}

static float real_tanh(float x, const void *params)
{
    (void)params;
    return tanhf(x);
}

/* XNNPACK's, in float64. */
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
    return *(const bool *)params ? tq_gelu_by_tanh(x) : tq_gelu_by_erfc(x);
}

/* params: what numbers that have no logarithm give. */
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
    float least = (float)(low - tq_zero_point_at(node->out[0], 0)) * tq_scale_at(node->out[0], 0);
    return tq_lookup_prepare_real(node, real_log, &least, error);
}

static tq_status prepare_rsqrt(tq_node *node, tq_error *error)
{
    codes c = {0};
    TQ_TRY(find_codes(node, &c, error));
    if (is_int16(node)) {
        float most = (float)INT16_MAX * c.scale_out;
        TQ_TRY(tq_lookup_prepare_real(node, real_inverse_sqrt, &most, error));
    } else {
        TQ_TRY(tq_fixed_find(node, 1.0 / (double)(sqrtf(c.scale_in) * c.scale_out), &c.identity, error));
        TQ_TRY(tq_lookup_prepare(node, inverse_square_root_code, &c, error));
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
    if (tq_scale_at(node->out[0], 0) != needed)
        return tq_output_fail(node, 0, error, "has scale %.9g; LOGISTIC needs 1/%d", tq_scale_at(node->out[0], 0),
                              is_int16(node) ? 32768 : 256);
    if (is_int16(node))
        return tq_sigmoid_prepare(node, false, error);
    return prepare_real(node, node->numerics == TQ_NUMERICS_XNNPACK ? real_wide_logistic : real_logistic, NULL, error);
}

/* ---- which ---- */

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
        bool plain = rows[i].code == TQ_BuiltinOperator_ABS && is_int16(node) && in->quantization.count == 0;
        if (tq_type_is_in(in->type, rows[i].types) && !plain)
            return rows[i].prepare;
    }
    return NULL;
}
