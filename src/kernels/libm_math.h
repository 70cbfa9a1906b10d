/* SPDX-License-Identifier: Apache-2.0
 *
 * logf, sinf and cosf in a form that compilers vectorize, with the bits of glibc on a processor with fused
 * multiply-adds, in float64: for the usual arguments that the functions named _takes tell.  Other arguments give any
 * value.  Only for functions whose target has fused multiply-adds: elsewhere fma is a call.
 * Source: ARM optimized routines, math/{logf,logf_data,sinf,cosf,sincosf_data}.c and sincosf.h, as in glibc.
 */
#ifndef TQ_KERNELS_LIBM_MATH_H
#define TQ_KERNELS_LIBM_MATH_H

#include <math.h>
#include <string.h>

#include "kernels/isa.h"

#define TQ_LOG_LEAST 0x00800000   /* the bits of the least normal number */
#define TQ_LOG_NORMALS 0x7f000000 /* positive numbers that are normal and finite */
TQ_BODY int tq_logarithm_is_normal(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits - TQ_LOG_LEAST < TQ_LOG_NORMALS;
}
/* The logarithm of negative numbers is NaN. */
TQ_BODY int tq_logarithm_takes(float x)
{
    return tq_logarithm_is_normal(x) | (x < 0);
}

/* 1 / c and log(c) of c near the middle of each sixteenth of [0.7, 1.4). */
static const double tq_log_inverse[16] = {
    0x1.661ec79f8f3bep+0, 0x1.571ed4aaf883dp+0, 0x1.49539f0f010bp+0,  0x1.3c995b0b80385p+0, 0x1.30d190c8864a5p+0,
    0x1.25e227b0b8eap+0,  0x1.1bb4a4a1a343fp+0, 0x1.12358f08ae5bap+0, 0x1.0953f419900a7p+0, 0x1p+0,
    0x1.e608cfd9a47acp-1, 0x1.ca4b31f026aap-1,  0x1.b2036576afce6p-1, 0x1.9c2d163a1aa2dp-1, 0x1.886e6037841edp-1,
    0x1.767dcf5534862p-1,
};
static const double tq_log_table[16] = {
    -0x1.57bf7808caadep-2, -0x1.2bef0a7c06ddbp-2, -0x1.01eae7f513a67p-2, -0x1.b31d8a68224e9p-3, -0x1.6574f0ac07758p-3,
    -0x1.1aa2bc79c81p-3,   -0x1.a4e76ce8c0e5ep-4, -0x1.1973c5a611cccp-4, -0x1.252f438e10c1ep-5, 0x0p+0,
    0x1.aa5aa5df25984p-5,  0x1.c5e53aa362eb4p-4,  0x1.526e57720db08p-3,  0x1.bc2860d22477p-3,   0x1.1058bc8a07ee1p-2,
    0x1.4043057b6ee09p-2,
};

#define TQ_LOG_START 0x3f330000    /* the bits of about 0.7 */
#define TQ_LOG_EXPONENT 0xff800000 /* and the sign */
#define TQ_LOG_LN2 0x1.62e42fefa39efp-1
#define TQ_LOG_A (-0x1.00ea348b88334p-2)
#define TQ_LOG_B 0x1.5575b0be00b6ap-2
#define TQ_LOG_C (-0x1.ffffef20a4123p-2)

/* x's distance from 0.7, as bits: the exponent k of x = 2^k z with z in [0.7, 1.4), and then z's sixteenth. */
TQ_BODY uint32_t tq_logarithm_above(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits - TQ_LOG_START;
}
TQ_BODY uint32_t tq_logarithm_index(float x)
{
    return tq_logarithm_above(x) >> 19 & 15;
}

/* k ln 2 + log(c) + log(1 + r), with r = z / c - 1; inverse, log_c: of tq_logarithm_index(x) in the tables. */
TQ_BODY float tq_logarithm_by(float x, double inverse, double log_c)
{
    const uint32_t above = tq_logarithm_above(x), whole = above + TQ_LOG_START - (above & TQ_LOG_EXPONENT);
    const double k = (int32_t)above >> 23;
    float z;
    memcpy(&z, &whole, sizeof z);
    const double r = fma(z, inverse, -1), square = r * r, y0 = fma(k, TQ_LOG_LN2, log_c);
    const double y = fma(TQ_LOG_A, square, fma(TQ_LOG_B, r, TQ_LOG_C));
    const float log = (float)fma(y, square, y0 + r);
    return tq_logarithm_is_normal(x) ? log : NAN;
}

TQ_BODY int tq_sine_takes(float x)
{
    return fabsf(x) < 120.0f;
}
#define tq_cosine_takes tq_sine_takes

/* sin(x + quarters pi / 2): x = n pi / 2 + r with |r| <= pi / 4; an odd or an even polynomial in r, by the parity of n.
   Both have the form start + c p + p r^2 (b + a r^2): one of them is computed, from chosen coefficients.  The nearest
   n is the lowest bits of a sum with 1.5 * 2^52. */
#define TQ_SINE_PER_QUARTER 0x1.45F306DC9C883p-1
#define TQ_SINE_QUARTER 0x1.921FB54442D18p0
#define TQ_SINE_START (-0x1.ffffffd0c621cp-2) /* of the even polynomial: 1 + this times r^2 */
/* Of the even and of the odd polynomial. */
#define TQ_SINE_A 0x1.99343027bf8c3p-16, -0x1.994eb3774cf24p-13
#define TQ_SINE_B -0x1.6c087e89a359dp-10, 0x1.1107605230bc4p-7
#define TQ_SINE_C 0x1.55553e1068f19p-5, -0x1.555545995a603p-3

TQ_BODY double tq_sine_choose(int is_even, double even, double odd)
{
    return is_even ? even : odd;
}

TQ_BODY float tq_sine_of(float x, uint64_t quarters)
{
    const double round = 0x1.8p52, shifted = fma((double)x, TQ_SINE_PER_QUARTER, round);
    const double r = fma(round - shifted, TQ_SINE_QUARTER, (double)x), square = r * r;
    uint64_t turn, bits;
    memcpy(&turn, &shifted, sizeof turn);
    turn += quarters;
    const int is_even = turn & 1;
    const double start = is_even ? fma(square, TQ_SINE_START, 1) : r, p = (is_even ? square : r) * square;
    const double a = tq_sine_choose(is_even, TQ_SINE_A), b = tq_sine_choose(is_even, TQ_SINE_B);
    const double c = tq_sine_choose(is_even, TQ_SINE_C);
    double y = fma(p * square, fma(square, a, b), fma(p, c, start));
    memcpy(&bits, &y, sizeof bits);
    bits ^= turn << 62 & (uint64_t)1 << 63; /* the other half of a turn */
    memcpy(&y, &bits, sizeof y);
    return (float)y;
}
/* Smaller numbers are their own sines: -0 stays. */
#define TQ_SINE_KEPT 0x1p-12f

TQ_BODY float tq_sine(float x)
{
    return fabsf(x) < TQ_SINE_KEPT ? x : tq_sine_of(x, 0);
}
TQ_BODY float tq_cosine(float x)
{
    return tq_sine_of(x, 1);
}

#endif
