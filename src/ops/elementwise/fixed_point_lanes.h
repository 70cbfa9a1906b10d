/* SPDX-License-Identifier: Apache-2.0
 *
 * Fixed-point arithmetic that compilers vectorize in 32-bit lanes: the rule "double" of quant/rounding.h for arguments
 * that cannot overflow 32 bits, which prepare proves; and rounding to even.
 */
#ifndef TQ_OPS_ELEMENTWISE_FIXED_POINT_LANES_H
#define TQ_OPS_ELEMENTWISE_FIXED_POINT_LANES_H

#include <string.h>

#include "kernels/isa.h"
#include "ops/quantized.h"

/* A tq_fixed as lanes take it. */
typedef struct tq_lane_fixed {
    int32_t multiplier; /* 0 to 2^31 - 1 */
    int32_t factor; /* 2^max(shift, 0) */
    int32_t right;  /* max(-shift, 0), at most 31 */
    int32_t half;   /* floor(2^right / 2) */
    int32_t fix;    /* -1 where right > 0, else 0: negative ties round down */
} tq_lane_fixed;

/* Whether tq_lane_multiply(x, tq_lane_fixed_of(by)) equals tq_multiply_fixed(x, by) for all |x| <= most; most: 0 to
   2^30. */
static inline bool tq_lane_fits(tq_fixed by, int64_t most)
{
    return !by.single && by.multiplier >= 0 && by.shift >= -30 && by.shift <= 30 &&
           most * ((int64_t)1 << (by.shift > 0 ? by.shift : 0)) <= INT32_MAX;
}

/* `by` as lanes take it.  Shifts outside of [-31, 30] are clamped; tq_lane_fits is false for them. */
static inline tq_lane_fixed tq_lane_fixed_of(tq_fixed by)
{
    int32_t left = by.shift < 0 ? 0 : by.shift > 30 ? 30 : by.shift;
    int32_t right = by.shift > 0 ? 0 : by.shift < -31 ? 31 : -by.shift;
    tq_lane_fixed lane = {by.multiplier, (int32_t)1 << left, right, right > 0 ? (int32_t)1 << (right - 1) : 0,
                          right > 0 ? -1 : 0};
    return lane;
}

/* MBQM(x, by) for an x within the bound that tq_lane_fits was asked for.  A multiplier is never -2^31, so that the high
   product cannot saturate, and its 32 bits are those of a logical shift.  |high| <= 2^30 where right > 0, and
   half <= 2^29: no overflow. */
TQ_BODY int32_t tq_lane_multiply(int32_t x, tq_lane_fixed by)
{
    int64_t product = (int64_t)(x * by.factor) * by.multiplier;
    int32_t high = (int32_t)((uint64_t)(product + ((int64_t)1 << 30)) >> 31);
    return (high + by.half + ((high >> 31) & by.fix)) >> by.right;
}

/* The quantized value clamp(x, least, most) + zero_point, for any x.  least and most: the bounds of quantized values
   less the zero point, so that the sum cannot overflow. */
TQ_BODY int32_t tq_lane_quantized(int32_t x, int32_t least, int32_t most, int32_t zero_point)
{
    int32_t raised = x < least ? least : x;
    return (raised > most ? most : raised) + zero_point;
}

/* clamp(even(x), least, most), for any x; NaN gives least.  least and most: whole, within +-2^22.  The sum with 3 2^22
   lies in [2^23, 2^24], where floats are whole: the addition rounds, to even, and the sum's low bits are the integer.
 */
TQ_BODY int32_t tq_lane_round_even(float x, float least, float most)
{
    const float shifter = 12582912.0f; /* 3 * 2^22 */
    float raised = x > least ? x : least;
    float bounded = (raised > most ? most : raised) + shifter;
    int32_t bits;
    memcpy(&bits, &bounded, sizeof bits);
    return bits - 0x4B400000; /* the bits of 3 * 2^22 */
}

#endif
