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

/* A fixed-point multiplier: real = fixed * 2^(shift - 31). */
typedef struct tq_fixed {
    int32_t multiplier;
    int32_t shift;
} tq_fixed;

/* A finite real value as a multiplier (tq_quantize_multiplier). */
static inline tq_fixed tq_fixed_of(double real)
{
    tq_fixed fixed = {0, 0};
    int shift = 0;
    tq_quantize_multiplier(real, &fixed.multiplier, &shift);
    fixed.shift = shift;
    return fixed;
}

/* The same for a product or ratio of scales; TQ_BAD_OPERATOR where it is infinite or NaN. */
tq_status tq_fixed_find(const tq_node *node, double real, tq_fixed *out, tq_error *error);

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

/* x * by, rounded twice as TFLite does (tq_multiply_double). */
static inline int32_t tq_multiply_fixed(int32_t x, tq_fixed by)
{
    return tq_multiply_double(x, by.multiplier, by.shift);
}

#endif
