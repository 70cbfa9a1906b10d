/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of float32 with the bits of XNNPACK on x86 with AVX2 and FMA.  XNNPACK's AVX-512 kernels compute the same
 * bits, but for logistic and the sum of a row of exponentials, which differ by some units in the last place; ELU has
 * the bits of AVX-512.  Arguments are any floats; results for NaN and infinities are XNNPACK's too: log(infinity) is
 * log(2^128).
 *
 * Source: XNNPACK 75db3c09, src/f32-vtanh/rational-9-8.c.in, src/f32-vsigmoid/avx2-rr1-p5.c.in,
 * src/f32-raddstoreexpminusmax/avx2-rr2-p5.c.in, src/f32-velu/avx512f-rr1-p6.c.in, src/f32-vexp, f32-vlog, f32-vsin,
 * f32-vcos, f32-vgelu, f32-vapproxgelu, f32-vhswish.
 */
#ifndef TQ_OPS_ELEMENTWISE_XNNPACK_FUNCTIONS_H
#define TQ_OPS_ELEMENTWISE_XNNPACK_FUNCTIONS_H

#include <math.h>
#include <string.h>

#include "kernels/isa.h"

/* x between low and high.  `zero`: 0, at best one that the compiler does not know, which it adds before the loop: of
   constant bounds it makes masks where the minimum and maximum of vectors would do, in up to twice the time. */
TQ_BODY float tq_xnnpack_clamped(float x, float low, float high, float zero)
{
    const float most = high + zero, least = low + zero, lowered = x > most ? most : x;
    return lowered < least ? least : lowered;
}

/* tanh: an odd polynomial over an even one, of x clamped to +-7.98, where their quotient is +-1. */
TQ_BODY float tq_xnnpack_tanh(float x, float zero)
{
    const float bound = 7.9807181358e+00f, y = tq_xnnpack_clamped(x, -bound, bound, zero), x2 = y * y;
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

/* e^x for TQ_XNNPACK_EXP_LEAST <= x <= 0, the logarithm of the least normal float: 2^n e^t, where n = even(x / ln 2),
   and a polynomial of degree 5 in t = x - n ln 2, with ln 2 = ln2_high + ln2_low. */
#define TQ_XNNPACK_EXP_LEAST (-0x1.5D589Ep6f)
TQ_BODY float tq_xnnpack_exp_of_normal(float x, float ln2_high, float ln2_low)
{
    const float round = 0x1.8000FEp23f; /* the sum with it has n + 127 in its lowest bits */
    float shifted = fmaf(x, 0x1.715476p0f, round), scale;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits <<= 23;
    memcpy(&scale, &bits, sizeof scale);
    const float n = shifted - round;
    float t = fmaf(n, -ln2_high, x);
    t = fmaf(n, -ln2_low, t); /* ln2_low 0: t stays */
    float p = fmaf(0x1.0F9F9Cp-7f, t, 0x1.573A1Ap-5f);
    p = fmaf(p, t, 0x1.555A80p-3f);
    p = fmaf(p, t, 0x1.FFFDC6p-2f);
    p = fmaf(p, t, 0x1.FFFFF6p-1f);
    return fmaf(t * scale, p, scale);
}

/* The same for any x <= 0; 0 below. */
TQ_BODY float tq_xnnpack_exp(float x, float ln2_high, float ln2_low)
{
    const float e = tq_xnnpack_exp_of_normal(x, ln2_high, ln2_low);
    return x < TQ_XNNPACK_EXP_LEAST ? 0 : e;
}

/* e^x for any x: 2^n 2^r, where n = even(x log2(e)), and a quotient of polynomials in the remainder r.  0 for n <=
   -127, an infinity for n >= 128, as in the released package; between these the package's last two bits differ. */
TQ_BODY float tq_xnnpack_exp_of_any(float x, float zero)
{
    const float round = 12582912.0f, scaled = x * 1.44269504089f;
    float z = tq_xnnpack_clamped(scaled, -127, 128, zero), power;
    const float n = round + z - round, r = z - n, shifted = n + 8388735.0f; /* 2^23 + 127: n + 127 in its lowest bits */
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits <<= 23;
    memcpy(&power, &bits, sizeof power);
    float p = fmaf(r, 5.5380910635e-03f, 7.2068706155e-02f);
    p = fmaf(r, p, 4.1594290733e-01f);
    p = fmaf(r, p, 1.0f);
    float q = fmaf(r, 2.3986088112e-02f, -2.7720427513e-01f);
    q = fmaf(r, q, 1.0f);
    return power * (p / q);
}

/* The logistic function: e / (1 + e) with e = e^-|x|, which is 0 where e is, and 1 less that for x >= 0; of NaN both
   are NaN. */
TQ_BODY float tq_xnnpack_logistic(float x)
{
    const float least = -fabsf(x), e = tq_xnnpack_exp_of_normal(least, 0x1.62E430p-1f, 0), quotient = e / (e + 1);
    const float below = least < TQ_XNNPACK_EXP_LEAST ? 0 : quotient, above = 1 - below;
    return x < 0 ? below : above;
}

/* ELU: x, or e^x - 1 for x < 0.  2^n e^t as above, with a polynomial of degree 6; below the lowest argument the result
   is -1.  The steps of XNNPACK's kernel for AVX-512: the one for AVX2 has a table. */
TQ_BODY float tq_xnnpack_elu(float x, float zero)
{
    const float lowest = -0x1.154246p4f + zero, round = 0x1.8000FEp23f, z = x < lowest ? lowest : x;
    float shifted = fmaf(z, 0x1.715476p0f, round), scale;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits <<= 23;
    memcpy(&scale, &bits, sizeof scale);
    const float t = fmaf(shifted - round, -0x1.62E430p-1f, z), scaled = t * scale;
    float p = fmaf(0x1.6B7338p-10f, t, 0x1.12278Ep-7f);
    p = fmaf(p, t, 0x1.555716p-5f);
    p = fmaf(p, t, 0x1.5554B0p-3f);
    p = fmaf(p, t, 0x1.FFFFFEp-2f);
    const float below = fmaf(p * t, scaled, scaled) + (scale - 1);
    return x < 0 ? below : x * (1 + zero); /* the product makes subnormal numbers 0 where the processor flushes them */
}

/* ---- ratios of polynomials ---- */

/* x min(max(x / 6 + 1/2, 0), 1) */
TQ_BODY float tq_xnnpack_hard_swish(float x, float zero)
{
    const float gate = fmaf(x, 0x1.555556p-3f, 0.5f), one = 1 + zero, raised = gate > zero ? gate : zero;
    return (raised < one ? raised : one) * x;
}

/* The natural logarithm: the exponent of x sqrt(2) (-infinity for 0), and a quotient of polynomials in the remaining
   factor, in [sqrt(1/2), sqrt(2)). */
TQ_BODY float tq_xnnpack_log(float x)
{
    float scaled = x * 1.4142134190f, exponent, fraction;
    int32_t bits, high;
    memcpy(&bits, &scaled, sizeof bits);
    high = scaled == 0 ? INT32_MIN : bits & INT32_C(-0x800000);
    high = (high >> 8) | 0x43800000; /* the exponent's bits as the mantissa of a float in [256, 512) */
    memcpy(&exponent, &high, sizeof exponent);
    bits = (bits & 0x7FFFFF) | 0x3F800000;
    memcpy(&fraction, &bits, sizeof fraction);
    const float y = fraction * 7.0710688829e-01f - 1.0f;
    float p = fmaf(y, 1.824996918440e-01f, 1.0f);
    p = y * fmaf(y, p, 1.0f);
    float q = fmaf(y, 0.049584995955f, 0.599170029163f);
    q = fmaf(y, q, 1.5f);
    q = fmaf(y, q, 1.0f);
    return fmaf(exponent - 383.0f, 0.69314718055994531f, p / q);
}

/* x where `sign` is negative, else y.  Of comparisons in a chain compilers make masks for each of the ways through
   them, in up to twice the time. */
TQ_BODY float tq_xnnpack_chosen(float sign, float x, float y)
{
    int32_t bits, x_bits, y_bits;
    memcpy(&bits, &sign, sizeof bits);
    memcpy(&x_bits, &x, sizeof x_bits);
    memcpy(&y_bits, &y, sizeof y_bits);
    y_bits ^= (x_bits ^ y_bits) & (bits >> 31);
    memcpy(&y, &y_bits, sizeof y);
    return y;
}

/* sin(x) for |x| within one turn, folded into [-pi / 2, pi / 2]. */
TQ_BODY float tq_xnnpack_sin_folded(float x)
{
    const float pi = 3.1415927f;
    float y = pi - x;
    x = tq_xnnpack_chosen(x - y, x, y);
    y = -pi - x;
    x = tq_xnnpack_chosen(y - x, x, y);
    y = pi - x;
    x = tq_xnnpack_chosen(x - y, x, y);
    const float x2 = x * x;
    float p = fmaf(x2, 3.2340581529e-03f, -1.3314664364e-01f);
    p = x * fmaf(x2, p, 1.0f);
    float q = fmaf(x2, 4.8770775902e-04f, 3.3519912511e-02f);
    q = fmaf(x2, q, 1.0f);
    return p / q;
}

/* x less its nearest whole number of turns. */
TQ_BODY float tq_xnnpack_reduce_angle(float x)
{
    const float turns = rintf(x * 0.15915494f);
    return fmaf(-turns, 1.9353072e-3f, fmaf(-turns, 6.28125f, x)); /* 2 pi in two parts */
}

/* The sine. */
TQ_BODY float tq_xnnpack_sin(float x)
{
    return tq_xnnpack_sin_folded(tq_xnnpack_reduce_angle(x));
}

/* The cosine, as the sine of pi / 2 - x. */
TQ_BODY float tq_xnnpack_cos(float x)
{
    return tq_xnnpack_sin_folded((1.5707963705f - tq_xnnpack_reduce_angle(x)) +
                                 -4.3711388e-08f); /* pi / 2 in two parts */
}

/* ((((c0 x + c1) x + c2) x + c3) x + c4) x + c5.  A macro: compilers vectorize no loop that holds another. */
#define TQ_QUINTIC(x, c0, c1, c2, c3, c4, c5) fmaf(x, fmaf(x, fmaf(x, fmaf(x, fmaf(x, c0, c1), c2), c3), c4), c5)

/* GELU: x / 2 (1 + y p / q), with y: x clamped to +-bound, and p, q: quintics in y^2. */
TQ_BODY float tq_xnnpack_gelu_by_erf(float x, float zero)
{
    const float bound = 5.1638283730f, y = tq_xnnpack_clamped(x, -bound, bound, zero), y2 = y * y;
    const float p = TQ_QUINTIC(y2, 4.5835321316e-08f, 1.2609783880e-05f, 3.2973114867e-04f, 9.3065137044e-03f,
                               6.6972173750e-02f, 7.9788452387e-01f);
    const float q = TQ_QUINTIC(y2, 1.1988805682e-06f, 7.2267655923e-05f, 1.8622842617e-03f, 2.8431978077e-02f,
                               2.5060352683e-01f, 1.0f);
    return x * 0.5f * (y * p / q + 1.0f);
}

/* GELU's approximation by tanh. */
TQ_BODY float tq_xnnpack_gelu_by_tanh(float x, float zero)
{
    const float bound = 4.84974098f, y = tq_xnnpack_clamped(x, -bound, bound, zero), y2 = y * y;
    const float p = TQ_QUINTIC(y2, 4.9544411240e-08f, 1.4302649106e-05f, 2.6887017884e-04f, 7.2898347862e-03f,
                               6.0803253204e-02f, 7.9788458347e-01f);
    const float q = TQ_QUINTIC(y2, 1.3433452750e-06f, 7.6477612311e-05f, 1.3060354395e-03f, 2.4381054565e-02f,
                               2.4369759858e-01f, 1.0f);
    return x * 0.5f * (y * p / q + 1.0f);
}

/* ---- rows of exponentials ---- */

#define TQ_XNNPACK_LANES 8

/* y[i] = e^(x[i] - max) for n elements; max: at least every x[i]. */
TQ_BODY void tq_xnnpack_exp_row(const float *x, float max, float *y, size_t n)
{
    for (size_t k = 0; k < n; k++)
        y[k] = tq_xnnpack_exp(x[k] - max, 0x1.62E400p-1f, 0x1.7F7D1Cp-20f);
}

/* The sum of n exponentials in XNNPACK's order: two vectors of 8 lanes over whole blocks of 32, one for the first and
   third 8 elements, one for the second and fourth; then the sum of the two vectors; then the remaining whole 8s, and
   the remaining elements, lane by lane; then halves, quarters, a pair. */
TQ_BODY float tq_xnnpack_sum_row(const float *y, size_t n)
{
    float even[TQ_XNNPACK_LANES] = {0}, odd[TQ_XNNPACK_LANES] = {0};
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (size_t k = 0; k < TQ_XNNPACK_LANES; k++) {
            even[k] = even[k] + y[i + k] + y[i + 16 + k];
            odd[k] = odd[k] + y[i + 8 + k] + y[i + 24 + k];
        }
    for (size_t k = 0; k < TQ_XNNPACK_LANES; k++)
        even[k] += odd[k];
    for (; i + TQ_XNNPACK_LANES <= n; i += TQ_XNNPACK_LANES)
        for (size_t k = 0; k < TQ_XNNPACK_LANES; k++)
            even[k] += y[i + k];
    for (size_t k = 0; i + k < n; k++)
        even[k] += y[i + k];
    for (size_t k = 0; k < TQ_XNNPACK_LANES / 2; k++)
        even[k] += even[k + TQ_XNNPACK_LANES / 2];
    return (even[0] + even[2]) + (even[1] + even[3]);
}

#endif
