/* SPDX-License-Identifier: Apache-2.0
 *
 * tanh and the logistic function as TFLite's float recurrent kernels compute them, by Eigen: approximations within some
 * units in the last place.  Their bits matter where hybrid kernels quantize a state again.
 *
 * Formulas and coefficients: Eigen's packet functions ptanh_float and scalar_logistic_op<float>, without fused
 * multiply-adds, as LiteRT's x86 builds have them; checked bit for bit against release 2.3.0.
 */
#ifndef TQ_OPS_ELEMENTWISE_EIGEN_FUNCTIONS_H
#define TQ_OPS_ELEMENTWISE_EIGEN_FUNCTIONS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An odd polynomial of x over an even one.  x is clamped to the range in which the ratio is below 1. */
static inline float tq_eigen_tanh(float x)
{
    const float most = 7.90738964080810547f;
    x = x < -most ? -most : x > most ? most : x;
    float square = x * x;
    float p = ((1.394553628e-8f * square + 2.102733560e-5f) * square + 3.520756727e-3f) * square + 1.340216100e-1f;
    float q = ((8.015776984e-7f * square + 3.326951409e-4f) * square + 2.597254514e-2f) * square + 4.673548340e-1f;
    return (square * x * p + x) / (q * square + 1.0f);
}

/* e / (1 + e), e = (2^m * exp(r))^2, x / 2 = m ln 2 + r, ln 2 in two parts.  From 16.6 on the result is 1, below
   -104 it is 0; NaN gives NaN.  |m| is at most 76, so that 2^m is a float and the product with it exact.  No branch and
   no call, so that loops become vectors. */
static inline float tq_eigen_logistic(float x)
{
    float known = x == x ? x : 0.0f;
    float half = 0.5f * (known > 16.6355324f ? 16.6355324f : known < -104.0f ? -104.0f : known);
    float scaled = half * 1.44269504088896341f + 0.5f;
    int32_t whole = (int32_t)scaled;
    whole -= scaled < (float)whole; /* floor */
    float m = (float)whole, power;
    float r = m * 2.12194440e-4f + (m * -0.693359375f + half);
    float square = r * r;
    float even = square * 4.1898667812347412109375e-2f + 0.49999141693115234375f;
    float odd = square * 8.33471305668354034423828125e-3f + 0.16666877269744873046875f;
    float e = square * (r * odd + even) + (r + 1.0f);
    uint32_t bits = (uint32_t)(whole + 127) << 23;
    memcpy(&power, &bits, sizeof power);
    e *= power;
    e *= e;
    float y = e / (1.0f + e);
    y = x < -104.0f ? 0.0f : y;
    return x == x ? y : x;
}

/* The scalar version, with the C library's expf. */
static inline float tq_eigen_logistic_scalar(float x)
{
    float e = expf(x > 16.6355324f ? 16.6355324f : x);
    return e / (1.0f + e);
}

/* In place, values[0 .. n), which TFLite stores `offset` elements behind an address aligned to 4 floats: Eigen computes
   aligned groups of four as a vector, and each value before and after them by the scalar version. */
static inline void tq_eigen_logistic_row(float *values, size_t n, size_t offset)
{
    size_t first = (4 - offset % 4) % 4, end;
    first = first < n ? first : n;
    end = first + (n - first) / 4 * 4;
    for (size_t i = 0; i < first; i++)
        values[i] = tq_eigen_logistic_scalar(values[i]);
    for (size_t i = first; i < end; i++)
        values[i] = tq_eigen_logistic(values[i]);
    for (size_t i = end; i < n; i++)
        values[i] = tq_eigen_logistic_scalar(values[i]);
}

#endif
