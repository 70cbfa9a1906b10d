/* SPDX-License-Identifier: Apache-2.0
 *
 * Logistic function and hyperbolic tangent of 16-bit fixed-point numbers: what integer LSTM cells are made of.
 *
 * A number in "Qk" is an int16 whose value is raw / 2^(15 - k).  The algorithms are those of quant/fixed_math.h
 * with constants of 16 bits, and one sum that saturates.
 * Source: gemmlowp fixedpoint/fixedpoint.h, as LiteRT f6745779 uses it in
 * tflite/kernels/internal/reference/portable_tensor_utils.cc.
 */
#ifndef TQ_QUANT_FIXED_MATH_16_H
#define TQ_QUANT_FIXED_MATH_16_H

#include "quant/rounding.h"

static inline int16_t tq_q16_wrap(int32_t x)
{
    uint16_t low = (uint16_t)x;
    return low < 0x8000 ? (int16_t)low : (int16_t)(low - 0x10000);
}

static inline int16_t tq_q16_saturate(int32_t x)
{
    return (int16_t)(x < INT16_MIN ? INT16_MIN : x > INT16_MAX ? INT16_MAX : x);
}

/* a * b / 2^15, ties up. */
static inline int16_t tq_q16_mul(int16_t a, int16_t b)
{
    return tq_q16_saturate(((int32_t)a * b + (1 << 14)) >> 15);
}

static inline int16_t tq_q16_shift_left(int16_t x, int bits)
{
    return tq_q16_saturate((int32_t)x * (1 << bits));
}

/* e^a for a in [-1/4, 0), Q0 to Q0. */
static inline int16_t tq_q16_exp_small(int16_t a)
{
    const int16_t at = 28918, third = 10923; /* e^-1/8 and 1/3 */
    int16_t x = tq_q16_wrap(a + (1 << 12));
    int16_t x2 = tq_q16_mul(x, x), x3 = tq_q16_mul(x2, x), x4 = tq_q16_mul(x2, x2);
    int16_t quarter = (int16_t)tq_rounding_divide_by_pot(x4, 2);
    int16_t higher = tq_q16_wrap(tq_q16_mul(tq_q16_wrap(quarter + x3), third) + x2);
    int16_t sum = tq_q16_wrap(x + tq_rounding_divide_by_pot(higher, 1));
    return tq_q16_saturate(at + tq_q16_mul(at, sum));
}

/* e^a for a <= 0 in Qk, 0 <= k <= 7, in Q0. */
static inline int16_t tq_q16_exp_negative(int16_t a, int k)
{
    static const int16_t factor[] = {25520, 19875, 12055, 4435, 600, 11, 0}; /* e^-2^E, E = -2 ... 4 */
    const int fraction = 15 - k;
    const int32_t quarter = 1 << (fraction - 2);
    if (a == 0)
        return INT16_MAX;
    int32_t rest = ((int32_t)a & (quarter - 1)) - quarter;
    int16_t result = tq_q16_exp_small(tq_q16_shift_left((int16_t)rest, k));
    uint32_t quarters = (uint16_t)(rest - a);
    for (int e = -2; e <= 4 && e < k; e++)
        if (quarters >> (fraction + e) & 1)
            result = tq_q16_mul(result, factor[e + 2]);
    return k > 5 && a < -(1 << (fraction + 5)) ? 0 : result;
}

/* 2 / (1 + a) in Q2, for a in [0, 1) in Q0, by Newton-Raphson. */
static inline int16_t tq_q16_newton(int16_t a)
{
    int32_t sum = (int32_t)a + INT16_MAX;
    int16_t half = (int16_t)((sum + (sum >= 0 ? 1 : -1)) / 2);
    int16_t x = tq_q16_wrap(23130 + tq_q16_mul(half, -15420)); /* 48/17 - 32/17 half */
    for (int i = 0; i < 3; i++) {
        int16_t error = tq_q16_wrap((1 << 13) - tq_q16_mul(half, x));
        x = tq_q16_wrap(x + tq_q16_shift_left(tq_q16_mul(x, error), 2));
    }
    return x;
}

/* 1 / (1 + e^-a), Q3 to Q0. */
static inline int16_t tq_q16_logistic(int16_t a)
{
    if (a == 0)
        return 1 << 14;
    int16_t negative = a < 0 ? a : (int16_t)-a;
    int16_t positive = tq_q16_shift_left(tq_q16_newton(tq_q16_exp_negative(negative, 3)), 1);
    return a > 0 ? positive : tq_q16_wrap(INT16_MAX - positive);
}

/* tanh(a), Qk to Q0, 0 <= k <= 6. */
static inline int16_t tq_q16_tanh(int16_t a, int k)
{
    if (a == 0)
        return 0;
    int16_t negative = a < 0 ? a : (int16_t)-a;
    int16_t x = tq_q16_newton(tq_q16_exp_negative(negative, k + 1));
    int16_t t = tq_q16_shift_left(tq_q16_wrap(x - (1 << 13)), 2);
    return a < 0 ? tq_q16_wrap(-t) : t;
}

#endif
