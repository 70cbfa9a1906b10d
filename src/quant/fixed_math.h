/* SPDX-License-Identifier: Apache-2.0
 *
 * Exponential, logarithm, reciprocal and inverse square root in 32-bit fixed point.
 *
 * A value in Qk is an int32 of real value raw / 2^(31 - k): k integer bits.  The product of Qa and Qb by
 * tq_saturating_rounding_doubling_high_mul (tq_q_mul below) is in Q(a+b).
 * Source: gemmlowp fixedpoint/fixedpoint.h and LiteRT f6745779, tflite/kernels/internal/common.h.  Results equal theirs
 * wherever theirs are defined; where their int32 sums could overflow, these wrap or saturate.
 */
#ifndef TQ_QUANT_FIXED_MATH_H
#define TQ_QUANT_FIXED_MATH_H

#include "quant/rounding.h"

/* ---- bits ---- */

/* Leading zero bits; 32 for 0. */
static inline int tq_leading_zeros_u32(uint32_t x)
{
    return x == 0 ? 32 : __builtin_clz(x);
}

/* Leading zero bits; 64 for 0. */
static inline int tq_leading_zeros_u64(uint64_t x)
{
    return x >> 32 ? tq_leading_zeros_u32((uint32_t)(x >> 32)) : 32 + tq_leading_zeros_u32((uint32_t)x);
}

/* How many bits after the sign bit equal it; 31 for 0, as in the runtime. */
static inline int tq_leading_sign_bits(int32_t x)
{
    return tq_leading_zeros_u32((uint32_t)(x < 0 ? ~x : x)) - 1;
}

/* ---- arithmetic ---- */

/* Qa * Qb in Q(a+b). */
static inline int32_t tq_q_mul(int32_t a, int32_t b)
{
    return tq_saturating_rounding_doubling_high_mul(a, b);
}

/* Sums and differences; they wrap where the runtime, for other arguments than its own, would overflow. */
static inline int32_t tq_q_add(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static inline int32_t tq_q_sub(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b);
}

/* Qa to Q(a - bits): bits < 0 drop bits, rounding ties away from zero. */
static inline int32_t tq_q_rescale(int32_t x, int bits)
{
    return bits >= 0 ? tq_shift_left_saturating(x, bits) : tq_rounding_divide_by_pot(x, -bits);
}

/* (a + b) / 2, ties away from zero. */
static inline int32_t tq_q_half_sum(int32_t a, int32_t b)
{
    int64_t sum = (int64_t)a + b;
    return (int32_t)((sum + (sum >= 0 ? 1 : -1)) / 2);
}

/* ---- exponential ---- */

/* e^a for a in [-1/4, 0), Q0 to Q0: a Taylor polynomial of degree 4 around -1/8. */
static inline int32_t tq_q_exp_small(int32_t a)
{
    const int32_t at = 1895147668, third = 715827883; /* e^-1/8 and 1/3 */
    int32_t x = tq_q_add(a, 1 << 28);
    int32_t x2 = tq_q_mul(x, x), x3 = tq_q_mul(x2, x), x4 = tq_q_mul(x2, x2);
    int32_t higher = tq_q_add(tq_q_mul(tq_q_add(tq_rounding_divide_by_pot(x4, 2), x3), third), x2);
    return tq_q_add(at, tq_q_mul(at, tq_q_add(x, tq_rounding_divide_by_pot(higher, 1))));
}

/* e^a for a <= 0 in Qk, 0 <= k <= 6, in Q0; a > 0 gives 1.  a modulo 1/4 by the polynomial, and a factor e^-2^E for
   each bit E of the rest. */
static inline int32_t tq_q_exp_negative(int32_t a, int k)
{
    static const int32_t factor[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
    const int fraction = 31 - k;
    const int32_t quarter = (int32_t)1 << (fraction - 2);
    if (a >= 0)
        return INT32_MAX;
    int32_t rest = (a & (quarter - 1)) - quarter;
    int32_t result = tq_q_exp_small(tq_q_rescale(rest, k));
    uint32_t quarters = (uint32_t)rest - (uint32_t)a;
    for (int e = -2; e <= 4 && e < k; e++)
        if (quarters >> (fraction + e) & 1)
            result = tq_q_mul(result, factor[e + 2]);
    return k > 5 && a < -((int32_t)1 << (fraction + 5)) ? 0 : result;
}

/* ---- reciprocal ---- */

/* tq_q_mul of factors that are not both -2^31, which alone saturate; compilers vectorize it. */
static inline int32_t tq_q_mul_fitting(int32_t a, int32_t b)
{
    return (int32_t)((uint64_t)((int64_t)a * b + ((int64_t)1 << 30)) >> 31);
}

/* A step of tq_q_newton_half. */
static inline int32_t tq_q_newton_step(int32_t half, int32_t x)
{
    int32_t error = (int32_t)(((uint32_t)1 << 29) - (uint32_t)tq_q_mul_fitting(half, x));
    return (int32_t)((uint32_t)x + (uint32_t)tq_q_mul_fitting(x, error) * 4);
}

/* 2 / (1 + a) in Q2, a in [0, 1) in Q0: the Newton-Raphson iteration, without a loop, in which compilers find no
   vectors.  `half` is (1 + a) / 2 in Q0, with the rounding of tq_q_half_sum(a, INT32_MAX); the first x is off by less
   than a sixteenth, so that nothing saturates.  Of other a the sums wrap. */
static inline int32_t tq_q_newton_half(int32_t a)
{
    int32_t half = (int32_t)(((uint32_t)a + ((uint32_t)1 << 31)) >> 1);
    int32_t x = 1515870810 + tq_q_mul_fitting(half, -1010580540); /* 48/17 - 32/17 half, in Q2 */
    x = tq_q_newton_step(half, x);
    x = tq_q_newton_step(half, x);
    return tq_q_newton_step(half, x);
}

/* 1 / (1 + a) for a in [0, 1), Q0 to Q0. */
static inline int32_t tq_q_inverse_of_one_plus(int32_t a)
{
    const int32_t x = tq_q_newton_half(a);
    return x < 1 << 30 ? (int32_t)((uint32_t)x * 2) : INT32_MAX;
}

/* a in [0, 1), in Q0, of x = (1 + a) * 2^over for an x > 0 with `digits` integer bits; of an x beyond 32 bits the
   leading 32 are used. */
static inline int32_t tq_mantissa(uint64_t x, int digits, int *over)
{
    int zeros = tq_leading_zeros_u64(x) - 32;
    uint32_t leading = (uint32_t)(zeros >= 0 ? x << zeros : x >> -zeros);
    *over = digits - zeros;
    return (int32_t)(leading - ((uint32_t)1 << 31));
}

/* 1 / x for such an x: the result is scale * 2^-over, scale in Q0, in (1/2, 1]. */
static inline int32_t tq_reciprocal(uint64_t x, int digits, int *over)
{
    return tq_q_inverse_of_one_plus(tq_mantissa(x, digits, over));
}

/* ---- inverse square root ---- */

/* 1 / sqrt(x) as multiplier * 2^(shift - 31); x = 0 counts as 1. */
static inline void tq_inverse_sqrt(uint64_t x, int32_t *multiplier, int *shift)
{
    if (x <= 1) {
        *multiplier = INT32_MAX;
        *shift = 0;
        return;
    }
    int right = 11;
    for (; x >= 1u << 29; x /= 4)
        right++;
    int pairs = (tq_leading_zeros_u32((uint32_t)x) - 1) / 2 - 1;
    right -= pairs;
    int32_t input = (int32_t)((uint32_t)x << 2 * pairs) >> 1; /* in Q3, from [1/4, 1) */
    int32_t half = tq_rounding_divide_by_pot(input, 1);
    int32_t y = 1 << 28; /* 1.0 in Q3 */
    for (int i = 0; i < 5; i++) {
        int32_t cube = tq_shift_left_saturating(tq_q_mul(tq_q_mul(y, y), y), 6);
        int32_t three_halves_y = tq_q_mul((1 << 28) + (1 << 27), y);
        y = tq_shift_left_saturating(tq_q_sub(three_halves_y, tq_q_mul(half, cube)), 3);
    }
    y = tq_q_mul(y, 1518500250); /* sqrt(1/2) */
    *multiplier = right < 0 ? tq_shift_left_saturating(y, -right) : y;
    *shift = right < 0 ? 0 : -right;
}

/* ---- logarithm ---- */

/* ln(x) in Q5 for x > 0 in Q12; x <= 0 counts as the least positive value.  Of two choices of the power of two, a
   quarter apart, the larger makes the argument of the rational function near 1. */
static inline int32_t tq_q_log(int32_t x)
{
    const int32_t sqrt_half = 1518500250, root = 1805811301; /* 2^-1/2 and 2^-1/4 */
    const int32_t quarter = 1 << 23; /* in Q6 */
    x = x > 1 ? x : 1;
    int zeros = tq_leading_zeros_u32((uint32_t)x);
    int32_t first = tq_shift_left_saturating(tq_q_mul(tq_shift_left_saturating(x, zeros - 1), sqrt_half), 1);
    int32_t first_power = tq_saturate_i32((int64_t)tq_shift_left_saturating(12 - zeros, 25) + quarter);
    int second_zeros = tq_leading_zeros_u32((uint32_t)tq_q_mul(x, sqrt_half)) - 1;
    int32_t second = tq_shift_left_saturating(x, second_zeros);
    int32_t second_power = tq_saturate_i32((int64_t)tq_shift_left_saturating(12 - second_zeros, 25) - quarter);

    int32_t r = first < second ? first : second;
    int32_t power = first_power > second_power ? first_power : second_power;
    int32_t p = tq_q_half_sum(r, root);
    int32_t q = tq_q_sub(r, root);
    q = tq_q_add(q, q);
    int32_t square = tq_q_mul(q, q);
    int32_t numerator = tq_q_add(tq_q_mul(q, r), tq_q_mul(tq_q_mul(q, square), 117049297));
    int32_t inner = tq_q_add(tq_q_add(1057819769, q), tq_q_mul(127690142, square));
    int32_t denominator = tq_q_add(tq_q_mul(p, inner), tq_q_mul(638450708, q));
    int32_t log_power = tq_q_mul(power, 1488522236); /* ln 2 */
    int32_t fraction = tq_q_mul(tq_q_rescale(numerator, -6), tq_q_inverse_of_one_plus(denominator));
    return tq_shift_left_saturating(tq_q_add(log_power, fraction), 1);
}

#endif
