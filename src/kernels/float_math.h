/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of float32 that compilers vectorize.
 *
 * tq_expf, in float64: e^x = 2^(k/32) e^r' with k the nearest whole number to 32 x / ln 2; 2^(k/32) comes from a table
 * of 32 entries and the exponent's bits, e^r' from a polynomial of degree 3.  Its error is below 0.502 units in the
 * last place.  Of all 2^32 arguments, 2 differ from glibc 2.36's expf (x86-64 with FMA, which contracts the same
 * steps).
 * Source: ARM optimized routines, math/expf.c and exp2f_data.c, as in glibc.
 */
#ifndef TQ_KERNELS_FLOAT_MATH_H
#define TQ_KERNELS_FLOAT_MATH_H

#include <math.h>
#include <string.h>

#include "kernels/isa.h"

/* The bits of 2^(i/32) less i << 47: for k % 32 == i, adding k << 47 gives the bits of 2^(k/32). */
static const uint64_t tq_exp2_table[32] = {
    0x3ff0000000000000, 0x3fefd9b0d3158574, 0x3fefb5586cf9890f, 0x3fef9301d0125b51, 0x3fef72b83c7d517b,
    0x3fef54873168b9aa, 0x3fef387a6e756238, 0x3fef1e9df51fdee1, 0x3fef06fe0a31b715, 0x3feef1a7373aa9cb,
    0x3feedea64c123422, 0x3feece086061892d, 0x3feebfdad5362a27, 0x3feeb42b569d4f82, 0x3feeab07dd485429,
    0x3feea47eb03a5585, 0x3feea09e667f3bcd, 0x3fee9f75e8ec5f74, 0x3feea11473eb0187, 0x3feea589994cce13,
    0x3feeace5422aa0db, 0x3feeb737b0cdc5e5, 0x3feec49182a3f090, 0x3feed503b23e255d, 0x3feee89f995ad3ad,
    0x3feeff76f2fb5e47, 0x3fef199bdd85529c, 0x3fef3720dcef9069, 0x3fef5818dcfba487, 0x3fef7c97337b9b5f,
    0x3fefa4afa2a490da, 0x3fefd0765b6e4540,
};

#define TQ_EXP_PER_LN2 (0x1.71547652b82fep+0 * 32)
#define TQ_EXP_C0 (0x1.c6af84b912394p-5 / 32 / 32 / 32)
#define TQ_EXP_C1 (0x1.ebfce50fac4f3p-3 / 32 / 32)
#define TQ_EXP_C2 (0x1.62e42ff0c52d6p-1 / 32)
#define TQ_EXP_LN2 (0x1.62e42fefa39efp-1 / 32)

/* e^x for any x: 0 below -105, infinity above 89, NaN for NaN. */
TQ_BODY float tq_expf(float x)
{
    const double round = 0x1.8p52;
    double z = x * TQ_EXP_PER_LN2, shifted = z + round;
    uint64_t k, bits;
    memcpy(&k, &shifted, sizeof k);
    double r = z - (shifted - round);
    bits = tq_exp2_table[k % 32] + (k << 47);
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    double square = r * r;
    double y = (TQ_EXP_C0 * r + TQ_EXP_C1) * square + (TQ_EXP_C2 * r + 1);
    /* Last, so that compilers do not split loops by these cases.  Outside, float32 has only 0 and infinity. */
    float e = (float)(y * scale);
    e = x < -105.0f ? 0.0f : e;
    return x > 89.0f ? INFINITY : e;
}

/* e^x - 1 for |x| < 700, in float64: 2^(k/32) (e^r - 1) + (2^(k/32) - 1), with k as in tq_expf and |r| at most
   ln 2 / 64; e^r - 1 is its Taylor series to r^4, whose next term is below 2^-32 of the sum.  One series for all x:
   compilers do not vectorize a loop that chooses between two. */
TQ_BODY double tq_expm1_unrounded(double x)
{
    const double round = 0x1.8p52;
    double z = x * TQ_EXP_PER_LN2, shifted = z + round, r = (z - (shifted - round)) * TQ_EXP_LN2, scale;
    uint64_t k, bits;
    memcpy(&k, &shifted, sizeof k);
    bits = tq_exp2_table[k % 32] + (k << 47);
    memcpy(&scale, &bits, sizeof scale);
    double grown = r * (1 + r * (1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24))));
    return scale * grown + (scale - 1);
}

/* e^x - 1 for x <= 0; NaN for NaN.  The error is below 0.51 units in the last place. */
TQ_BODY float tq_expm1f_below_zero(float x)
{
    float y = copysignf((float)tq_expm1_unrounded(x), x);
    return x < -18.0f ? -1.0f : y; /* last, as in tq_expf; from -17.33 on, -1 is nearest */
}

/* tanh(x) for any x: (e^2x - 1) / (e^2x + 1) of |x|, in float64.  The error is below 0.51 units in the last place. */
TQ_BODY float tq_tanhf(float x)
{
    float size = fabsf(x);
    double e = tq_expm1_unrounded(2 * (double)size);
    float y = (float)(e / (e + 2));
    y = size > 10.0f ? 1.0f : y; /* last, as in tq_expf; from 9.02 on, 1 is nearest */
    return copysignf(y, x);
}

/* erfc(x) for any x, in float64: of |x| = a it is u p(u) 2^(-a^2 / ln 2) with u = 3 / (a + 3), where p approximates
   erfc(a) e^(a^2) / u within 4e-11, and the power's fraction is a polynomial within 5e-11; both minimize the relative
   error at Chebyshev's points.  From 10.06 on, 0 is nearest.  The error is below 0.51 units in the last place. */
#define TQ_ERFC_PER_SQUARE (-0x1.71547652b82fep+0)
#define TQ_ERFC_SUM                                                                                              \
    -0.027288162524043591, 0.18312268951338459, -0.49140163545380489, 0.66737417102091867, -0.5605090616324786,  \
        0.41450226891038489, -0.061607380523186095, 0.17395626623485555, 0.146846824501322, 0.17898624893210541, \
        0.18795041764177653, 0.1880673533488782
#define TQ_ERFC_POWER                                                                             \
    1.5195571991563793e-05, 0.00015469236471243652, 0.0013333950105822525, 0.0096180274580261547, \
        0.055504103194643717, 0.24022651196252159, 0.69314718073883619, 0.99999999996194355

TQ_BODY float tq_erfcf(float x)
{
    static const double of_sum[] = {TQ_ERFC_SUM}, of_power[] = {TQ_ERFC_POWER};
    const double round = 0x1.8p52, a = fabsf(x) > 10.5f ? 10.5 : (double)fabsf(x), u = 3 / (a + 3);
    const double z = a * a * TQ_ERFC_PER_SQUARE, shifted = z + round, f = z - (shifted - round);
    double sum = of_sum[0], power = of_power[0];
    for (size_t i = 1; i < sizeof of_sum / sizeof *of_sum; i++)
        sum = sum * u + of_sum[i];
    for (size_t i = 1; i < sizeof of_power / sizeof *of_power; i++)
        power = power * f + of_power[i];
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    double whole;
    memcpy(&whole, &bits, sizeof whole);
    const double y = u * sum * (power * whole);
    return (float)(x < 0 ? 2 - y : y);
}

/* GELU: x / 2 times erfc(-x sqrt(1/2)), each step rounded. */
#define TQ_SQRT_HALF 0.70710678118654752440f
TQ_BODY float tq_gelu(float x)
{
    return 0.5f * x * tq_erfcf(x * -TQ_SQRT_HALF);
}

/* tanh as a ratio of polynomials of degrees 9 and 8, to a few units in the last place; constant beyond +-7.9, where
   tanh rounds to +-1.  The runtime's GELU uses it, and shows the difference where 1 + tanh cancels. Coefficients:
   Eigen's ptanh_float (Eigen/src/Core/arch/Default/GenericPacketMathFunctions.h), without FMA. */
#define TQ_TANH_LIMIT 7.90738964080810547f
#define TQ_TANH_P 1.394553628e-8f, 2.102733560e-5f, 3.520756727e-3f, 1.340216100e-1f
#define TQ_TANH_Q 8.015776984e-7f, 3.326951409e-4f, 2.597254514e-2f, 4.673548340e-1f
TQ_BODY float tq_rational_tanh(float x)
{
    const float p[] = {TQ_TANH_P}, q[] = {TQ_TANH_Q}, limit = TQ_TANH_LIMIT;
    x = x > limit ? limit : x < -limit ? -limit : x;
    const float square = x * x, cube = square * x;
    const float above = ((p[0] * square + p[1]) * square + p[2]) * square + p[3];
    const float below = (((q[0] * square + q[1]) * square + q[2]) * square + q[3]) * square + 1.0f;
    return (cube * above + x) / below;
}

/* GELU's approximation by tq_rational_tanh. */
TQ_BODY float tq_gelu_by_ratio(float x)
{
    return 0.5f * x * (1.0f + tq_rational_tanh(0.797884560802865f * (x + 0.044715f * (x * x * x))));
}

/* ELU: x for x >= 0, else e^x - 1.  A sum of two parts, one of which is a zero; they are chosen by the
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

/* The logistic function: 1 from 16.6 on, where the quotient rounds to 1, and e^x below -9. */
#define TQ_LOGISTIC_IS_1 16.619047164916992188f
TQ_BODY float tq_logistic(float x)
{
    float power = tq_expf(x < -9.0f ? x : -x), y = x < -9.0f ? power : 1.0f / (1.0f + power);
    return x > TQ_LOGISTIC_IS_1 ? 1.0f : y;
}

#endif
