/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic that quantized operators share: ranges of quantized values, fused activations, multipliers.
 * Sources: LiteRT f6745779, tflite/kernels/kernel_util.cc.
 */
#ifndef TQ_OPS_QUANTIZED_H
#define TQ_OPS_QUANTIZED_H

#include "ops/op.h"
#include "quant/rounding.h"

/* The least and the greatest quantized value of an integer type of up to 32 bits; INT32's for every other type. */
void tq_quantized_range(int32_t type, int32_t *low, int32_t *high);

/* The bounds of output 0's quantized values after a fused activation, TQ_ActivationFunctionType_x; the type's bounds
   for TANH, SIGN_BIT and unknown activations, as in TFLite.  A real bound f becomes zero_point + away(f32(f / scale)),
   with XNNPACK even(f32(f32(f / scale) + zero_point)), clamped to the type.  Output 0 has one valid scale. */
void tq_activation_range(const tq_node *node, int64_t activation, int32_t *low, int32_t *high);

/* The bounds of a float32 output after a fused activation.  Without one they are the least and the greatest finite
   float, so that infinities become finite, as in the reference; with XNNPACK they are infinite. */
void tq_activation_range_f32(const tq_node *node, int64_t activation, float *low, float *high);

/* *log2_scale: log2 of a scale > 0, rounded; returns whether the rounding changed it by less than 0.001, TFLite's test
   for a power of two (CheckedLog2). */
bool tq_power_of_two(float scale, int *log2_scale);

/* A fixed-point multiplier: real = multiplier * 2^(shift - 31). */
typedef struct tq_fixed {
    int32_t multiplier;
    int32_t shift;
    bool single; /* products are rounded once, as with TFLITE_SINGLE_ROUNDING */
} tq_fixed;

/* Whether the node follows reference kernels that were built with TFLITE_SINGLE_ROUNDING. */
static inline bool tq_rounds_once(const tq_node *node)
{
    return node->numerics == TQ_NUMERICS_SINGLE;
}

/* Whether the node follows reference kernels, however they round. */
static inline bool tq_is_reference(const tq_node *node)
{
    return node->numerics == TQ_NUMERICS_REFERENCE || tq_rounds_once(node);
}

/* A finite real value as a multiplier of the node's kernels (tq_quantize_multiplier, or its single form). */
static inline tq_fixed tq_fixed_of(const tq_node *node, double real)
{
    const bool single = tq_rounds_once(node);
    tq_fixed fixed = {.single = single};
    int shift = 0;
    (single ? tq_quantize_multiplier_single : tq_quantize_multiplier)(real, &fixed.multiplier, &shift);
    fixed.shift = shift;
    return fixed;
}

/* The same for a product or ratio of scales; TQ_BAD_OPERATOR where it is infinite or NaN. */
tq_status tq_fixed_find(const tq_node *node, double real, tq_fixed *out, tq_error *error);

/* `value` in the bits of a type: UINT8, INT16, else INT8. */
int32_t tq_value_cut(int32_t type, int32_t value);

/* tq_activation_range as the matrix library of the optimized kernels has them: each bound, and the zero point, is cut
   to the bits of the output's type. */
void tq_activation_range_cut(const tq_node *node, int64_t activation, int32_t *low, int32_t *high);

/* A tensor's zero point, cut to the bits of its type. */
int32_t tq_zero_point_cut(const tq_tensor *tensor);

/* The scale and zero point that an operator's kernel reads of a tensor: of several the first in some kernels (ABS, LOG,
   RSQRT, SQRT, SVDF), else 0 (tq_scale_of). */
float tq_kernel_scale(const tq_node *node, const tq_tensor *tensor);
int32_t tq_kernel_zero_point(const tq_node *node, const tq_tensor *tensor);

/* XNNPACK's multiplier of sums of products, for the rule FLOAT32_EVEN, from the scales of factors and output. */
static inline float tq_even_multiplier(float first, float second, float out)
{
    return first * second / out;
}

/* XNNPACK's multiplier of differences q - zero_point, in units of 1 / 256, rounded to even.  XNNPACK accepts only
   multipliers below 2^7, whose result fits int16. */
static inline int32_t tq_multiplier_in_256ths(float by)
{
    return tq_value_of_rounded(rintf(by * 256), 0, -32768, 32768);
}

/* x * by, rounded twice as TFLite does (tq_multiply_double), or once where by.single. */
static inline int32_t tq_multiply_fixed(int32_t x, tq_fixed by)
{
    return by.single ? tq_multiply_single(x, by.multiplier, by.shift) : tq_multiply_double(x, by.multiplier, by.shift);
}

/* The rule of integer products by the reference kernels, but of UINT8 DEPTHWISE_CONV_2D, which always rounds twice. */
static inline tq_requantize_rule tq_reference_rule(const tq_node *node)
{
    return tq_rounds_once(node) ? TQ_REQUANTIZE_SINGLE : TQ_REQUANTIZE_DOUBLE;
}

#endif
