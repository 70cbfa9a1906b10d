/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of float32 to the bit as XNNPACK computes them on x86 with AVX2 and FMA.  With AVX-512 it computes tanh alike,
 * the others by other steps: there they differ by some units in the last place.  NaN stays NaN.
 *
 * Source: XNNPACK 75db3c09, src/f32-vtanh/rational-9-8.c.in, src/f32-vsigmoid/avx2-rr1-p5.c.in,
 * src/f32-raddstoreexpminusmax/avx2-rr2-p5.c.in.
 */
#ifndef TQ_OPS_XNNPACK_REAL_H
#define TQ_OPS_XNNPACK_REAL_H

#include <math.h>
#include <string.h>

#include "kernels/isa.h"

/* An odd polynomial over an even one, of x within the bounds from which on they give 1. */
TQ_BODY float xnnpack_tanh(float x)
{
    const float bound = 7.9807181358e+00f;
    float low = x > bound ? bound : x, y = low < -bound ? -bound : low;
    float x2 = y * y;
    float p = fmaf(x2, 1.4248920266e-08f, 2.1235626264e-05f);
    p = fmaf(x2, p, 3.5330520477e-03f);
    p = fmaf(x2, p, 1.3412411511e-01f);
    p = fmaf(x2, p, 1.0f);
    float q = fmaf(x2, 8.1365948290e-07f, 3.3472978976e-04f);
    q = fmaf(x2, q, 2.6018999517e-02f);
    q = fmaf(x2, q, 4.6745735407e-01f);
    q = fmaf(x2, q, 1.0f);
    return y * p / q;
}

/* e^x for x <= 0, 0 from where it has no normal number: 2^n e^t with n the nearest whole number to x / ln 2, and a
   polynomial of degree 5 in t = x - n ln 2, ln 2 in two parts. */
TQ_BODY float xnnpack_exp(float x, float ln2_high, float ln2_low)
{
    const float round = 0x1.8000FEp23f; /* n + 127 is in the lowest bits of what it is added to */
    float shifted = fmaf(x, 0x1.715476p0f, round), scale;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits <<= 23;
    memcpy(&scale, &bits, sizeof scale);
    const float n = shifted - round;
    float t = fmaf(n, -ln2_high, x);
    t = fmaf(n, -ln2_low, t); /* where that is 0 it changes nothing */
    float p = fmaf(0x1.0F9F9Cp-7f, t, 0x1.573A1Ap-5f);
    p = fmaf(p, t, 0x1.555A80p-3f);
    p = fmaf(p, t, 0x1.FFFDC6p-2f);
    p = fmaf(p, t, 0x1.FFFFF6p-1f);
    const float e = fmaf(t * scale, p, scale);
    return x < -0x1.5D589Ep6f ? 0 : e;
}

/* e / (1 + e) of e = e^-|x|, or for x >= 0 1 less that. */
TQ_BODY float xnnpack_logistic(float x)
{
    const float e = xnnpack_exp(-fabsf(x), 0x1.62E430p-1f, 0), below = e / (e + 1), above = 1 - below;
    return signbit(x) ? below : above;
}

#define XNNPACK_LANES 8

/* y = e^(x - max), and their sum: in two times eight lanes over blocks of 32, of which the first and the third eight are
   the first's; then their lanes' sums; then the other eights, and the rest, on these; then halves, quarters, a pair. */
TQ_BODY float xnnpack_exp_row(const float *x, float max, float *y, size_t n)
{
    float even[XNNPACK_LANES] = {0}, odd[XNNPACK_LANES] = {0};
    size_t i = 0;
    for (size_t k = 0; k < n; k++)
        y[k] = xnnpack_exp(x[k] - max, 0x1.62E400p-1f, 0x1.7F7D1Cp-20f);
    for (; i + 32 <= n; i += 32)
        for (size_t k = 0; k < XNNPACK_LANES; k++) {
            even[k] = even[k] + y[i + k] + y[i + 16 + k];
            odd[k] = odd[k] + y[i + 8 + k] + y[i + 24 + k];
        }
    for (size_t k = 0; k < XNNPACK_LANES; k++)
        even[k] += odd[k];
    for (; i + XNNPACK_LANES <= n; i += XNNPACK_LANES)
        for (size_t k = 0; k < XNNPACK_LANES; k++)
            even[k] += y[i + k];
    for (size_t k = 0; i + k < n; k++)
        even[k] += y[i + k];
    for (size_t half = XNNPACK_LANES / 2; half; half /= 2)
        for (size_t k = 0; k < half; k++)
            even[k] += even[k + half];
    return even[0];
}

#endif
