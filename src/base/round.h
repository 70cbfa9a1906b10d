/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounding to the nearest whole number, ties away from zero: C's round and roundf, which not every C library computes
 * (that of mingw-w64 rounds the float below 1/2 to 1).  C's rint, trunc, floor and ceil are right in all that tq is
 * tested with: tests/c/test_rounding.c.
 *
 * Truncates x + h, where h is the number below 1/2, with x's sign.  From 2^23 on (float; 2^52 for double) the sum is x
 * again.  A tie plus h lies just below a whole number and rounds to it; what is nearer to 0 than the tie stays below,
 * by no less than its own unit.  NaN, the infinities and -0 come back.
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
