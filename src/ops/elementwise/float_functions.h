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

/* ELU for tables of quantized values: by libm's expm1f; tq_elu of float_math.h for real tensors. */
static inline float tq_elu_libm(float x)
{
    return x < 0.0f ? expm1f(x) : x;
}

/* GELU by the complementary error function for tables of quantized values: by libm's erfcf. */
static inline float tq_gelu_libm(float x)
{
    return 0.5f * x * erfcf(x * -TQ_SQRT_HALF);
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

/* The logistic function for tables of quantized values: by libm's expf; tq_logistic of float_math.h for real
   tensors. */
static inline float tq_logistic_libm(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* x rounded to a whole number, ties to even.  A value in [-0.5, 0) gives +0. */
TQ_BODY float tq_round_to_even(float x)
{
    const float whole = rintf(x);
    return whole == 0 && x < 0 ? 0.0f : whole;
}

#endif
