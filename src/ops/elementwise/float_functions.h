/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of float32 in the runtime's order of operations, for real tensors and for tables of quantized values.  They
 * take any float; NaN gives NaN.
 * Source: LiteRT f6745779, tflite/kernels/internal/reference/{elu,gelu,logistic,round}.h.
 */
#ifndef TQ_OPS_ELEMENTWISE_FLOAT_FUNCTIONS_H
#define TQ_OPS_ELEMENTWISE_FLOAT_FUNCTIONS_H

#include <math.h>

#include "kernels/float_math.h"

/* x for x >= 0, else e^x - 1: for real tensors.  A sum of two parts, one of which is a zero; they are chosen by the
   sign's bits, since compilers split a loop by a comparison that chooses twice. */
TQ_BODY float tq_elu(float x)
{
    uint32_t bits, above_bits, below_bits;
    float above, below;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t negative = 0u - (bits >> 31); /* all ones, or 0 */
    above_bits = (bits & ~negative) | (negative & 0x80000000u);
    below_bits = bits & negative;
    memcpy(&above, &above_bits, sizeof above);
    memcpy(&below, &below_bits, sizeof below);
    return above + tq_expm1f_below_zero(below);
}

/* The same for tables of quantized values: by libm's expm1f. */
static inline float tq_elu_libm(float x)
{
    return x < 0.0f ? expm1f(x) : x;
}

/* GELU by the complementary error function: for real tensors. */
TQ_BODY float tq_gelu_by_erfc(float x)
{
    return 0.5f * x * tq_erfcf(x * -0.70710678118654752440f);
}

/* The same for tables of quantized values: by libm's erfcf. */
static inline float tq_gelu_libm(float x)
{
    return 0.5f * x * erfcf(x * -0.70710678118654752440f);
}

/* GELU's approximation by tanh. */
static inline float tq_gelu_by_tanh(float x)
{
    return 0.5f * x * (1.0f + tanhf(0.797884560802865f * (x + 0.044715f * x * x * x)));
}

/* tanh as a ratio of polynomials of degrees 9 and 8, to a few units in the last place; constant beyond +-7.9, where
   tanh rounds to +-1.  The runtime's GELU uses it, and shows the difference where 1 + tanh cancels. Coefficients:
   Eigen's ptanh_float (Eigen/src/Core/arch/Default/GenericPacketMathFunctions.h), without FMA. */
TQ_BODY float tq_rational_tanh(float x)
{
    const float limit = 7.90738964080810547f;
    x = x > limit ? limit : x < -limit ? -limit : x;
    float x2 = x * x, x3 = x2 * x;
    float p = ((1.394553628e-8f * x2 + 2.102733560e-5f) * x2 + 3.520756727e-3f) * x2 + 1.340216100e-1f;
    float q = (((8.015776984e-7f * x2 + 3.326951409e-4f) * x2 + 2.597254514e-2f) * x2 + 4.673548340e-1f) * x2 + 1.0f;
    return (x3 * p + x) / q;
}

/* GELU's approximation by tq_rational_tanh. */
TQ_BODY float tq_gelu_by_ratio(float x)
{
    return 0.5f * x * (1.0f + tq_rational_tanh(0.797884560802865f * (x + 0.044715f * (x * x * x))));
}

/* The logistic function for real tensors: 1 from 16.6 on, where the quotient rounds to 1, and e^x below -9.
   power: e^tq_logistic_exponent(x) */
TQ_BODY float tq_logistic_exponent(float x)
{
    return x < -9.0f ? x : -x;
}
TQ_BODY float tq_logistic_of(float x, float power)
{
    float y = x < -9.0f ? power : 1.0f / (1.0f + power);
    return x > 16.619047164916992188f ? 1.0f : y;
}
TQ_BODY float tq_logistic(float x)
{
    return tq_logistic_of(x, tq_expf(tq_logistic_exponent(x)));
}

/* The logistic function for tables of quantized values: by libm's expf. */
static inline float tq_logistic_libm(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* x rounded to a whole number, ties to even.  A value in (-0.5, 0) gives +0. */
static inline float tq_round_to_even(float x)
{
    float below = floorf(x), rest = x - below;
    if (rest < 0.5f || (rest == 0.5f && fmodf(below, 2.0f) == 0.0f))
        return below;
    return rest == rest ? below + 1.0f : x;
}

#endif
