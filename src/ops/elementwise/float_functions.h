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
