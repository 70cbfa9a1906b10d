/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounding to integers: base/round.h, and the C library's functions, on which results depend too; fmaf, which rounds
 * once.
 */
#include <math.h>
#include <stdint.h>

#include "base/round.h"
#include "check.h"

typedef enum rule { AWAY, EVEN, TRUNCATE, FLOOR, CEILING, RULES } rule;

/* By pointers, so that the C library's functions are called. */
static float (*const volatile of_float[RULES])(float) = {tq_round_f32, rintf, truncf, floorf, ceilf};
static double (*const volatile of_double[RULES])(double) = {tq_round_f64, rint, trunc, floor, ceil};

static double expected(rule r, double x)
{
    if (!(fabs(x) < 0x1p52))
        return x;
    const int64_t whole = (int64_t)x;
    const double rest = x - (double)whole;
    int64_t step = 0;
    if (r == AWAY)
        step = (rest >= 0.5) - (rest <= -0.5);
    else if (r == EVEN)
        step = (rest > 0.5 || (rest == 0.5 && whole % 2)) - (rest < -0.5 || (rest == -0.5 && whole % 2));
    else if (r != TRUNCATE)
        step = r == FLOOR ? -(rest < 0) : rest > 0;
    return copysign((double)(whole + step), x);
}

static unsigned wrong;

static void try_float(float x)
{
    for (rule r = AWAY; r < RULES; r++) {
        const float y = of_float[r](x), z = (float)expected(r, x);
        wrong += x != x ? y == y : memcmp(&y, &z, sizeof y) != 0;
    }
}

static void try_double(double x)
{
    for (rule r = AWAY; r < RULES; r++) {
        const double y = of_double[r](x), z = expected(r, x);
        wrong += x != x ? y == y : memcmp(&y, &z, sizeof y) != 0;
    }
}

/* Whole numbers, ties and their neighbours, in every binade. */
static void try_around(double x)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        const float f = (float)(sign * x);
        const double d = sign * x;
        try_float(f), try_float(nextafterf(f, 0)), try_float(nextafterf(f, sign * INFINITY));
        try_double(d), try_double(nextafter(d, 0)), try_double(nextafter(d, sign * (double)INFINITY));
    }
}

/* x * y + z, chosen so that the sum lies beside a tie of floats by less than float64 shows. */
static void test_fused(void)
{
    float (*const volatile fused)(float, float, float) = fmaf;
    const float near = 1 + 0x1p-12f, tie = 1 + 0x1p-11f;
    CHECK(fused(near, near, 0x1p-80f) == tie + 0x1p-23f);
    CHECK(fused(near, near, -0x1p-80f) == tie);
    CHECK(fused(-near, near, -0x1p-80f) == -tie - 0x1p-23f);
    CHECK(fused(near, near, 0) == tie);
    CHECK(fused(0x1p-75f, 0x1p-75f, 0x1.8p-148f) == 0x1p-147f && fused(0x1p-100f, 0x1p-100f, 0x1p-149f) == 0x1p-149f);
    CHECK(fused(0x1.8p-75f, 0x1p-75f, 0x1p-149f) == 0x1p-148f && fused(0x1p-75f, 0x1p-75f, 0) == 0);
    CHECK(fused(0x1p100f, 0x1p100f, -INFINITY) == -INFINITY && isnan(fused(INFINITY, 0, 1)) && fused(2, 3, -6) == 0);
    CHECK(signbit(fused(-1, 0, -0.0f)) && !signbit(fused(1, 1, -1)));
}

void test_rounding(void)
{
    test_fused();
    wrong = 0;
    for (int e = -2; e < 64; e++)
        for (double more = 0; more < 4; more += 0.25)
            try_around(ldexp(1, e) + more);
    try_around(0), try_around(0x1p-149), try_around(0x1p-1074), try_around(INFINITY), try_around(NAN);
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 8191) {
        const uint32_t word = (uint32_t)bits;
        float x;
        memcpy(&x, &word, sizeof x);
        try_float(x);
    }
    CHECK(wrong == 0);
    CHECK(tq_round_f32(0x1.fffffep-2f) == 0 && tq_round_f64(0x1.fffffffffffffp-2) == 0);
    CHECK(tq_round_f32(2.5f) == 3 && tq_round_f64(-2.5) == -3);
}
