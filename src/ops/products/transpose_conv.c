/* SPDX-License-Identifier: Apache-2.0
 *
 * TRANSPOSE_CONV: inputs (output shape, weights [o, kh, kw, c], x [n, h, w, c], bias [o] or none).
 *
 * Input pixel (y, x) adds to output pixels (y * stride - pad + ky, x * stride - pad + kx).  A convolution of the
 * output, with this padding and stride, has the input's size.  This file checks the contract and chooses the
 * arithmetic.  Where weights and shape are constant, transpose_conv_gemm.h computes the output, or
 * transpose_conv_pixels.h the reference's float32 x int8; else transpose_conv_gather.h.
 *
 *     float32            sum x * w, + bias, act; XNNPACK's as kernels/gemm/gemm.h says, taps from the first on
 *     float32 x int8     each image quantized asymmetrically; sum of f32(f32((q - z) * w) * s_w[o]) * s_x, + bias, act
 *                        XNNPACK: fma(f32(f32(sum (q - z) * w) * s_x), s_w[o], bias), act
 *     int8, uint8, 16x8  acc = sum (x - z_x)(w - z_w) + bias; clamp(multiply(acc, m[o]) + z_o)
 *     m[o]: f64(s_x) * f64(s_w[o]) / f64(s_o); uint8: f64(f32(s_x * s_w)) / f64(s_o)
 *     XNNPACK: rounded once, to even (product.h)
 *     16x8: acc and multiplication in 64 bits, or in 32 where quantized_bias_type says INT32
 *
 * Source: LiteRT f6745779, tflite/kernels/transpose_conv.cc, internal/reference/transpose_conv.h and
 * integer_ops/transpose_conv.h.
 */
#include <math.h>

#include "ops/check.h"
#include "ops/products/dot.h"
#include "ops/products/hybrid.h"
#include "ops/products/transpose_conv.h"
#include "ops/products/transpose_conv_gather.h"
#include "ops/products/transpose_conv_gemm.h"
#include "ops/products/transpose_conv_pixels.h"
#include "ops/quantized.h"

enum { SHAPE, WEIGHTS = TQ_TRANSPOSE_CONV_WEIGHTS, INPUT, BIAS }; /* the inputs */

typedef struct transpose_conv {
    tq_transpose_conv conv; /* the first member */
    tq_requantize_rule rule;
    size_t double_channels; /* the last channels, so many, have the rule DOUBLE */
    tq_transpose_conv_gemm gemm;
    tq_transpose_conv_pixels pixels;
} transpose_conv;

/* node->state and the sizes of a convolution of these inputs. */
static tq_status new_state(tq_node *node, int input, int bias, transpose_conv **state, tq_error *error)
{
    TQ_TRY(tq_node_state(node, sizeof **state, state, error));
    const tq_shape *weights = &node->in[WEIGHTS]->shape;
    (*state)->conv = (tq_transpose_conv){.input = input,
                                         .bias = bias,
                                         .batches = (size_t)node->in[input]->shape.dims[0],
                                         .channels = (size_t)weights->dims[3],
                                         .out_channels = (size_t)weights->dims[0],
                                         .taps = tq_shape_span(weights, 1, 3)};
    return TQ_OK;
}

/* ---- the contract ---- */

/* Sets the output's shape from the values of input SHAPE; its convolution must have the input's size.  XNNPACK takes
   the batch from the input, which may have been resized beside a constant shape. */
static tq_status fit(tq_node *node, tq_error *error)
{
    tq_transpose_conv *conv = node->state;
    const int32_t *x = node->in[INPUT]->shape.dims, *w = node->in[WEIGHTS]->shape.dims;
    const int32_t *given = node->in[SHAPE]->data;
    const bool has_batch = node->numerics == TQ_NUMERICS_XNNPACK || given[0] == x[0];
    if (!has_batch || given[3] != w[0] || given[1] <= 0 || given[2] <= 0)
        return tq_input_fail(node, SHAPE, error,
                             "asks for [%d,%d,%d,%d]; the batch must be %d, the channels %d, and the size positive",
                             given[0], given[1], given[2], given[3], x[0], w[0]);
    const tq_table *options = &node->options.table;
    int64_t padding = tq_get_int(options, TQ_TransposeConvOptions_padding);
    tq_window height = {given[1], w[1], (int32_t)tq_get_int(options, TQ_TransposeConvOptions_stride_h), 1, 0, 0};
    tq_window width = {given[2], w[2], (int32_t)tq_get_int(options, TQ_TransposeConvOptions_stride_w), 1, 0, 0};
    TQ_TRY(tq_window_fit(node, "height", padding, &height, error));
    TQ_TRY(tq_window_fit(node, "width", padding, &width, error));
    if (height.out != x[1] || width.out != x[2])
        return tq_input_fail(node, SHAPE, error,
                             "asks for a size of %d x %d, whose convolution is %d x %d; the input is %d x %d", given[1],
                             given[2], height.out, width.out, x[1], x[2]);
    conv->y = height;
    conv->x = width;
    tq_shape out = {4, {x[0], given[1], given[2], given[3]}};
    return tq_output_shape(node, 0, &out, error);
}

static tq_status check_types(const tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, SHAPE, TQ_T(INT32), error));
    TQ_TRY(tq_check_input(node, INPUT, TQ_T(FLOAT32) | TQ_T(UINT8) | TQ_T(INT8) | TQ_T(INT16), error));
    TQ_TRY(tq_check_output_like(node, 0, INPUT, error));
    switch (node->in[INPUT]->type) {
    case TQ_TensorType_FLOAT32: return tq_check_input(node, WEIGHTS, TQ_T(FLOAT32) | TQ_T(INT8), error);
    case TQ_TensorType_UINT8: return tq_check_input(node, WEIGHTS, TQ_T(UINT8), error);
    default: return tq_check_input(node, WEIGHTS, TQ_T(INT8), error);
    }
}

static const tq_tensor *bias_of(const tq_node *node)
{
    return node->in_count > BIAS ? node->in[BIAS] : NULL;
}

static tq_status check_bias(const tq_node *node, tq_error *error)
{
    const tq_tensor *bias = bias_of(node);
    if (!bias)
        return TQ_OK;
    int32_t type = node->in[INPUT]->type;
    TQ_TRY(tq_check_input(node, BIAS,
                          type == TQ_TensorType_FLOAT32 ? TQ_T(FLOAT32)
                          : type == TQ_TensorType_INT16 ? TQ_T(INT32) | TQ_T(INT64)
                                                        : TQ_T(INT32),
                          error));
    if (tq_tensor_count(bias) != (size_t)node->in[WEIGHTS]->shape.dims[0])
        return tq_input_fail(node, BIAS, error, "has %zu elements; the weights give %d channels", tq_tensor_count(bias),
                             node->in[WEIGHTS]->shape.dims[0]);
    return type == TQ_TensorType_FLOAT32 || type == TQ_TensorType_UINT8 ? TQ_OK
                                                                        : tq_check_symmetric_input(node, BIAS, error);
}

static tq_status check_shapes(const tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_rank(node, SHAPE, 1, 1, error));
    TQ_TRY(tq_check_rank(node, WEIGHTS, 4, 4, error));
    TQ_TRY(tq_check_rank(node, INPUT, 4, 4, error));
    const int32_t *x = node->in[INPUT]->shape.dims, *w = node->in[WEIGHTS]->shape.dims;
    if (node->in[SHAPE]->shape.dims[0] != 4)
        return tq_input_fail(node, SHAPE, error, "has %d elements; an output shape of 4 is needed",
                             node->in[SHAPE]->shape.dims[0]);
    if (x[1] <= 0 || x[2] <= 0 || x[3] <= 0)
        return tq_input_fail(node, INPUT, error, "is empty: %d x %d x %d", x[1], x[2], x[3]);
    if (w[0] <= 0 || w[3] != x[3])
        return tq_input_fail(node, WEIGHTS, error, "takes %d channels and gives %d; the input has %d", w[3], w[0],
                             x[3]);
    const tq_table *options = &node->options.table;
    int64_t down = tq_get_int(options, TQ_TransposeConvOptions_stride_h);
    int64_t right = tq_get_int(options, TQ_TransposeConvOptions_stride_w);
    if (down <= 0 || down > INT16_MAX || right <= 0 || right > INT16_MAX)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "the stride is %lld x %lld; it must be from 1 to 32767",
                          (long long)down, (long long)right);
    return check_bias(node, error);
}

/* ---- the arithmetic ---- */

/* 16x8: accumulators have 64 bits, unless quantized_bias_type or the bias is INT32. */
static tq_status choose_width(const tq_node *node, tq_transpose_conv *conv, tq_error *error)
{
    const tq_tensor *bias = bias_of(node);
    if (node->in[INPUT]->type != TQ_TensorType_INT16)
        return TQ_OK;
    int64_t bias_type = tq_get_int(&node->options.table, TQ_TransposeConvOptions_quantized_bias_type);
    if (bias_type == TQ_TensorType_FLOAT32) /* the option's default */
        bias_type = bias ? bias->type : TQ_TensorType_INT64;
    if ((bias_type != TQ_TensorType_INT32 && bias_type != TQ_TensorType_INT64) || (bias && bias->type != bias_type))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "quantized_bias_type is %s; it must be INT32 or INT64, and the bias's type",
                          tq_type_name(bias_type));
    if (tq_zero_point_of(node->in[INPUT]) != 0 || tq_zero_point_of(node->out[0]) != 0)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "16-bit input and output must have the zero point 0");
    conv->wide = bias_type == TQ_TensorType_INT64;
    conv->chunk = TQ_DOT_16X8;
    return TQ_OK;
}

/* The multiplier of an output channel. */
static double multiplier_of(const void *of, size_t o)
{
    const tq_node *node = of;
    float s_x = tq_scale_of(node->in[INPUT]), s_w = tq_scale_at(node->in[WEIGHTS], o);
    if (node->numerics == TQ_NUMERICS_XNNPACK)
        return (double)tq_even_multiplier(s_x, s_w, tq_scale_of(node->out[0]));
    double product = node->in[INPUT]->type == TQ_TensorType_UINT8 ? (double)(s_x * s_w) : (double)s_x * (double)s_w;
    const double real = product / (double)tq_scale_of(node->out[0]);
    return isfinite(real) ? real : 0;
}

/* The optimized kernels have the rule UP in SIMD code: int8 in whole blocks of 8 channels, uint8 in whole blocks of 16
   elements. */
static void choose_rule(const tq_node *node, transpose_conv *s)
{
    const bool optimized = node->numerics == TQ_NUMERICS_OPTIMIZED && node->in[INPUT]->type != TQ_TensorType_INT16;
    s->rule = node->numerics == TQ_NUMERICS_XNNPACK ? TQ_REQUANTIZE_FLOAT32_EVEN
              : optimized                           ? TQ_REQUANTIZE_UP
                                                    : tq_reference_rule(node);
    s->double_channels = optimized && node->in[INPUT]->type == TQ_TensorType_INT8 ? s->conv.out_channels % 8 : 0;
    s->conv.has_remainder = optimized && node->in[INPUT]->type == TQ_TensorType_UINT8;
}

static tq_requantize_rule rule_at(const transpose_conv *s, size_t o)
{
    return o + s->double_channels < s->conv.out_channels ? s->rule : TQ_REQUANTIZE_DOUBLE;
}

/* A zero point that padding cannot hold. */
static bool is_outside(const tq_node *node, int i)
{
    int32_t low, high, zero_point = tq_transpose_conv_zero_point(node, i);
    tq_quantized_range(node->in[i]->type, &low, &high);
    return zero_point < low || zero_point > high;
}

static tq_status prepare_quantized(tq_node *node, transpose_conv *s, int64_t activation, tq_error *error)
{
    tq_transpose_conv *conv = &s->conv;
    const tq_tensor *input = node->in[INPUT], *weights = node->in[WEIGHTS], *output = node->out[0];
    TQ_TRY(tq_check_quantized_input(node, INPUT, error));
    TQ_TRY(tq_check_quantized_output(node, 0, error));
    bool u8 = input->type == TQ_TensorType_UINT8;
    TQ_TRY(tq_check_activation_bounds(node, activation, node->numerics != TQ_NUMERICS_REFERENCE, error));
    TQ_TRY(u8 ? tq_check_quantized_input(node, WEIGHTS, error) : tq_check_weight_scales(node, WEIGHTS, 0, error));
    conv->chunk = TQ_DOT_8_BIT;
    for (int i = WEIGHTS; i <= INPUT; i++)
        if (is_outside(node, i))
            conv->chunk = 1; /* differences take 16 bits */
    TQ_TRY(choose_width(node, conv, error));
    TQ_TRY(tq_node_memory(node, conv->out_channels, sizeof *conv->multipliers, &conv->multipliers, error));
    choose_rule(node, s);
    for (size_t o = 0; o < conv->out_channels; o++)
        conv->multipliers[o] = tq_multiplier_of(multiplier_of(node, o), rule_at(s, o));
    conv->zero_point = tq_zero_point_of(output);
    conv->weights_zero_point = u8 ? tq_transpose_conv_zero_point(node, WEIGHTS) : 0;
    tq_activation_range(node, activation, &conv->low_q, &conv->high_q);
    const tq_tensor *bias = bias_of(node);
    double s_x = tq_scale_of(input), s_o = tq_scale_of(output);
    if (u8 && bias && node->numerics != TQ_NUMERICS_XNNPACK &&
        fabs(s_x * (double)tq_scale_of(weights) - (double)tq_scale_of(bias)) / s_o > 0.02)
        return tq_input_fail(node, BIAS, error, "has the scale %g; it must be the input's times the weights', %g",
                             (double)tq_scale_of(bias), s_x * (double)tq_scale_of(weights));
    return TQ_OK;
}

static tq_status choose_form(tq_node *node, transpose_conv *s, int64_t activation, tq_error *error)
{
    const bool xnnpack = node->numerics == TQ_NUMERICS_XNNPACK;
    tq_activation_range_f32(node, activation, &s->conv.low, &s->conv.high);
    if (node->in[INPUT]->type != TQ_TensorType_FLOAT32) {
        s->conv.form = TQ_TRANSPOSE_CONV_QUANTIZED;
        return prepare_quantized(node, s, activation, error);
    }
    if (node->in[WEIGHTS]->type == TQ_TensorType_FLOAT32) {
        s->conv.form = xnnpack ? TQ_TRANSPOSE_CONV_FUSED : TQ_TRANSPOSE_CONV_FLOATS;
        return TQ_OK;
    }
    s->conv.form = xnnpack ? TQ_TRANSPOSE_CONV_HYBRID_FUSED : TQ_TRANSPOSE_CONV_HYBRID;
    return tq_check_weight_scales(node, WEIGHTS, 0, error);
}

/* ---- by the matrix kernel ---- */

static void pack_gemm(tq_node *node)
{
    const transpose_conv *s = node->state;
    tq_transpose_conv_gemm_pack(node, &s->gemm);
}

static tq_status eval_gemm(tq_node *node, tq_error *error)
{
    (void)error;
    const transpose_conv *s = node->state;
    tq_transpose_conv_gemm_eval(node, &s->gemm);
    if (s->conv.has_remainder)
        tq_transpose_conv_gather_redo_remainder(node, &s->conv);
    return TQ_OK;
}

/* Whether weights and bias are constant, so that weights can be prepacked, and the matrix kernel has this arithmetic.
 */
static bool suits_gemm(const tq_node *node, const tq_transpose_conv *conv)
{
    const tq_tensor *bias = tq_transpose_conv_bias(node, conv);
    if (!tq_is_constant(node->in[WEIGHTS]) || (bias && !tq_is_constant(bias)) || is_outside(node, conv->input) ||
        conv->form == TQ_TRANSPOSE_CONV_HYBRID || !tq_transpose_conv_gemm_fits(&conv->y, &conv->x))
        return false;
    for (size_t o = 0; conv->multipliers && o < conv->out_channels; o++)
        if (!(multiplier_of(node, o) < 1e9))
            return false;
    return true;
}

static tq_status prepare_store(tq_node *node, const transpose_conv *s, tq_gemm_store *store, tq_error *error)
{
    const tq_transpose_conv *conv = &s->conv;
    void *memory;
    if (!conv->multipliers) {
        *store = (tq_gemm_store){.out = TQ_f32, .floor = conv->low, .ceiling = conv->high};
        return TQ_OK;
    }
    int32_t type = node->out[0]->type;
    *store = (tq_gemm_store){.out = type == TQ_TensorType_INT16  ? TQ_i16
                                    : type == TQ_TensorType_INT8 ? TQ_i8
                                                                 : TQ_u8,
                             .rule = s->rule,
                             .remainder = s->double_channels,
                             .zero_point = conv->zero_point,
                             .low = conv->low_q,
                             .high = conv->high_q};
    TQ_TRY(tq_node_memory(node, tq_gemm_store_bytes(conv->out_channels), 1, &memory, error));
    tq_gemm_store_make(store, conv->out_channels, multiplier_of, node, memory);
    return TQ_OK;
}

static tq_status prepare_gemm(tq_node *node, transpose_conv *s, tq_error *error)
{
    tq_transpose_conv *conv = &s->conv;
    const tq_tensor *input = node->in[conv->input], *bias = tq_transpose_conv_bias(node, conv);
    const bool u8 = input->type == TQ_TensorType_UINT8, hybrid = conv->form == TQ_TRANSPOSE_CONV_HYBRID_FUSED;
    const bool floats = input->type == TQ_TensorType_FLOAT32 && !hybrid;
    tq_transpose_conv_gemm *t = &s->gemm;
    *t = (tq_transpose_conv_gemm){.input = conv->input,
                                  .bias = conv->bias,
                                  .y = &conv->y,
                                  .x = &conv->x,
                                  .batches = conv->batches,
                                  .channels = conv->channels,
                                  .out_channels = conv->out_channels,
                                  .flags = conv->wide ? TQ_GEMM_WIDE : 0};
    t->flags |= conv->form == TQ_TRANSPOSE_CONV_FUSED ? TQ_GEMM_FUSED : 0;
    t->rule = hybrid ? tq_hybrid_rule_of(node, true) : NULL;
    t->in = floats ? TQ_f32 : u8 ? TQ_u8 : hybrid || input->type == TQ_TensorType_INT8 ? TQ_i8 : TQ_i16;
    t->weights =
        (tq_gemm_weights){.type = floats ? TQ_f32
                                  : u8   ? TQ_u8
                                         : TQ_i8,
                          .zero_point = conv->weights_zero_point,
                          .row_zero_point = floats || hybrid ? 0 : tq_transpose_conv_zero_point(node, conv->input),
                          .bias_type = floats ? TQ_f32 : TQ_i32};
    if (bias && bias->type == TQ_TensorType_INT64)
        t->weights.bias_type = TQ_GEMM_BIAS_I64;
    TQ_TRY(prepare_store(node, s, &t->store, error));
    uint64_t total = 0;
    TQ_TRY(tq_transpose_conv_gemm_prepare(node, t, &total, pack_gemm, error));
    node->eval = eval_gemm;
    return tq_node_scratch(node, total, error);
}

/* ---- by vectors of pixels ---- */

static void pack_pixels(tq_node *node)
{
    const transpose_conv *s = node->state;
    tq_transpose_conv_pixels_pack(node, &s->pixels);
}

static tq_status eval_pixels(tq_node *node, tq_error *error)
{
    (void)error;
    const transpose_conv *s = node->state;
    tq_transpose_conv_pixels_eval(node, &s->pixels);
    return TQ_OK;
}

static bool suits_pixels(const tq_node *node, transpose_conv *s)
{
    return s->conv.form == TQ_TRANSPOSE_CONV_HYBRID && tq_is_constant(node->in[WEIGHTS]) &&
           tq_transpose_conv_pixels_suit(&s->pixels, &s->conv);
}

static tq_status prepare_pixels(tq_node *node, transpose_conv *s, tq_error *error)
{
    node->eval = eval_pixels;
    return tq_transpose_conv_pixels_prepare(node, &s->pixels, pack_pixels, error);
}

/* ---- prepare ---- */

tq_status tq_prepare_transpose_conv(tq_node *node, tq_error *error)
{
    TQ_TRY(check_types(node, error));
    TQ_TRY(check_shapes(node, error));
    transpose_conv *s;
    TQ_TRY(new_state(node, INPUT, BIAS, &s, error));
    int64_t activation = tq_get_int(&node->options.table, TQ_TransposeConvOptions_fused_activation_function);
    TQ_TRY(choose_form(node, s, activation, error));
    TQ_TRY(tq_shape_from_values(node, 1u << SHAPE, fit, error));
    const bool is_sized = tq_is_constant(node->in[SHAPE]);
    if (is_sized && suits_gemm(node, &s->conv))
        return prepare_gemm(node, s, error);
    if (is_sized && suits_pixels(node, s))
        return prepare_pixels(node, s, error);
    return tq_transpose_conv_gather_prepare(node, &s->conv, error);
}

tq_status tq_transpose_conv_prepare_fused(tq_node *node, int input, int bias, const tq_window *y, const tq_window *x,
                                          tq_error *error)
{
    transpose_conv *s;
    TQ_TRY(new_state(node, input, bias, &s, error));
    tq_transpose_conv *conv = &s->conv;
    conv->form = TQ_TRANSPOSE_CONV_FUSED;
    conv->y = *y;
    conv->x = *x;
    conv->low = -INFINITY;
    conv->high = INFINITY;
    return suits_gemm(node, conv) ? prepare_gemm(node, s, error) : tq_transpose_conv_gather_prepare(node, conv, error);
}
