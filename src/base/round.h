/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounding to the nearest integer, ties away from zero: C's round and roundf, which some C libraries get wrong
 * (mingw-w64's rounds the float below 1/2 to 1).  rint, trunc, floor and ceil are right in every C library that tq is
 * tested with (tests/c/test_rounding.c).
 *
 * Truncates x + h, h the float below 1/2 with x's sign.  From 2^23 on (float; 2^52 for double) the sum is x.  A tie
 * plus h lies just below an integer and rounds up to it; a value nearer to 0 than the tie stays below, by at least its
 * own unit.  NaN, infinities and -0 are returned unchanged.
 */
#ifndef TQ_BASE_ROUND_H
#define TQ_BASE_ROUND_H

#include <math.h>

#include "base/machine.h"

static inline float tq_round_f32(float x)
{
    return truncf(x + copysignf(0x1.fffffep-2f, x));
}

static inline double tq_round_f64(double x)
{
    return trunc(x + copysign(0x1.fffffffffffffp-2, x));
}

#endif
