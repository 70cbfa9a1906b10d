/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of float32 that tensors of numbers and tables of codes share, in the runtime's order of
 * operations.
 * Source: LiteRT f6745779, tflite/kernels/internal/reference/{elu,gelu,logistic,round}.h.
 */
#ifndef TQ_OPS_REAL_H
#define TQ_OPS_REAL_H

#include <math.h>

static inline float elu(float x)
{
    return x < 0.0f ? expm1f(x) : x;
}

static inline float gelu_by_erfc(float x)
{
    return 0.5f * x * erfcf(x * -0.70710678118654752440f);
}

static inline float gelu_by_tanh(float x)
{
    return 0.5f * x * (1.0f + tanhf(0.797884560802865f * (x + 0.044715f * x * x * x)));
}

/* Of tensors of numbers: 1 from where it rounds to it, and e^x below -9. */
static inline float logistic(float x)
{
    if (x > 16.619047164916992188f)
        return 1.0f;
    return x < -9.0f ? expf(x) : 1.0f / (1.0f + expf(-x));
}

/* Of codes. */
static inline float plain_logistic(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* Ties to even.  A value in (-0.5, 0) gives +0. */
static inline float round_to_even(float x)
{
    float below = floorf(x), rest = x - below;
    if (rest < 0.5f || (rest == 0.5f && fmodf(below, 2.0f) == 0.0f))
        return below;
    return rest == rest ? below + 1.0f : x;
}

#endif
