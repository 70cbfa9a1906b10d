/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic that quantized operators share: ranges of quantized values, fused activations, multipliers.
 * Sources: LiteRT f6745779, tflite/kernels/kernel_util.cc.
 */
#ifndef TQ_OPS_QUANTIZED_H
#define TQ_OPS_QUANTIZED_H

#include "ops/op.h"
#include "quant/rounding.h"

/* The least and greatest quantized value of INT8, UINT8, INT16, INT4, INT32 ...; INT32's for every other type. */
void tq_quantized_range(int32_t type, int32_t *low, int32_t *high);

/* The quantized values of output 0 that a fused activation lets pass.  TANH and SIGN_BIT let all pass, as in the
   runtime. The bounds are Q(f) = zero_point + away(f32(f / scale)), clamped to the type; XNNPACK's even(f32(f32(f /
   scale) + zero_point)). */
void tq_activation_range(const tq_node *node, int64_t activation, int32_t *low, int32_t *high);

/* The same for float operators.  Without an activation the bounds are the least and greatest finite float, so that
   infinities become finite, as in the reference; with XNNPACK there are none. */
void tq_activation_range_f32(const tq_node *node, int64_t activation, float *low, float *high);

/* log2 of a scale, and whether it is a power of two, as near as the runtime asks (CheckedLog2). */
bool tq_power_of_two(float scale, int *log2_scale);

/* A fixed-point multiplier: real = fixed * 2^(shift - 31). */
typedef struct tq_fixed {
    int32_t multiplier;
    int32_t shift;
} tq_fixed;

static inline tq_fixed tq_fixed_of(double real)
{
    tq_fixed fixed = {0, 0};
    int shift = 0;
    tq_quantize_multiplier(real, &fixed.multiplier, &shift);
    fixed.shift = shift;
    return fixed;
}

/* The same for a product or ratio of scales, which overflows where scales are absurd: TQ_BAD_OPERATOR then. */
tq_status tq_fixed_find(const tq_node *node, double real, tq_fixed *out, tq_error *error);

/* XNNPACK's multiplier of sums of products, for the rule FLOAT32_EVEN. */
static inline float tq_even_multiplier(float first, float second, float out)
{
    return first * second / out;
}

/* XNNPACK's multiplier of differences q - zero_point, in units of 1 / 256.  XNNPACK takes multipliers below 2^7 alone.
 */
static inline int32_t tq_parts_of_256(float by)
{
    return tq_value_of_rounded(rintf(by * 256), 0, -32768, 32768);
}

static inline int32_t tq_multiply_fixed(int32_t x, tq_fixed by)
{
    return tq_multiply_double(x, by.multiplier, by.shift);
}

#endif
