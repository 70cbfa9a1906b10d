/* SPDX-License-Identifier: Apache-2.0
 *
 * Fixed-point functions against those of real numbers, over their ranges, and at arguments outside these for the
 * sanitizers' sake.
 */
#include "quant/fixed_math.h"

#include "check.h"

static double worst(double a, double b)
{
    return fabs(b) > a ? fabs(b) : a;
}

static void test_bits(void)
{
    CHECK(tq_leading_zeros_u32(0) == 32 && tq_leading_zeros_u32(1) == 31 && tq_leading_zeros_u32(UINT32_MAX) == 0);
    CHECK(tq_leading_zeros_u64(0) == 64 && tq_leading_zeros_u64(UINT64_C(1) << 32) == 31);
    CHECK(tq_leading_sign_bits(0) == 31 && tq_leading_sign_bits(-1) == 31 && tq_leading_sign_bits(1) == 30);
    CHECK(tq_leading_sign_bits(INT32_MIN) == 0 && tq_leading_sign_bits(-2) == 30);
    CHECK(tq_q_half_sum(3, 4) == 4 && tq_q_half_sum(-3, -4) == -4 && tq_q_half_sum(INT32_MAX, INT32_MAX) == INT32_MAX);
}

/* The polynomial leaves out x^5 / 120, for |x| <= 1/8. */
static void test_exponential(void)
{
    for (int k = 0; k <= 6; k++) {
        double unit = ldexp(1, k - 31), error = 0;
        for (int64_t a = 0; a >= INT32_MIN; a -= 1000003)
            error = worst(error, ldexp(tq_q_exp_negative((int32_t)a, k), -31) - exp((double)a * unit));
        CHECK(error < 0x1p-15 / 120);
    }
    CHECK(tq_q_exp_negative(0, 5) == INT32_MAX && tq_q_exp_negative(1, 5) == INT32_MAX);
    CHECK(tq_q_exp_negative(INT32_MIN, 6) == 0);
}

static void test_reciprocal(void)
{
    double error = 0;
    for (uint64_t x = 1; x < UINT64_C(1) << 62; x = x * 5 / 3 + 1) {
        int over;
        int32_t scale = tq_reciprocal(x, 31, &over);
        error = worst(error, ldexp(scale, -31 - over) * (double)x - 1);
        CHECK(scale > 0);
    }
    CHECK(error < 4e-9);
}

/* Five steps from 1 for an argument down to 1/4. */
static void test_inverse_sqrt(void)
{
    double error = 0;
    for (uint64_t x = 1; x < UINT64_C(1) << 60; x = x * 7 / 5 + 1) {
        int32_t multiplier;
        int shift;
        tq_inverse_sqrt(x, &multiplier, &shift);
        error = worst(error, ldexp(multiplier, shift - 31) * sqrt((double)x) - 1);
    }
    CHECK(error < 1.3e-6);
}

static void test_log(void)
{
    double error = 0;
    for (int64_t x = 1 << 19; x <= INT32_MAX; x += 999983)
        error = worst(error, ldexp(tq_q_log((int32_t)x), -26) - log(ldexp((double)x, -19)));
    CHECK(error < 1e-7);
}

/* Results mean nothing here; nothing may overflow. */
static void test_unusual_arguments(void)
{
    static const int32_t odd[] = {INT32_MIN, INT32_MIN + 1, -(1 << 30), -1, 0, 1, 1 << 30, INT32_MAX};
    int32_t sum = 0;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        int over, shift;
        int32_t multiplier;
        sum |= tq_q_exp_small(odd[i]) | tq_q_inverse_of_one_plus(odd[i]) | tq_q_log(odd[i]);
        sum |= tq_q_rescale(odd[i], 40) | tq_q_rescale(odd[i], -40);
        tq_inverse_sqrt((uint64_t)(int64_t)odd[i], &multiplier, &shift);
        sum |= tq_reciprocal((uint64_t)(int64_t)odd[i], 12, &over) | multiplier;
    }
    CHECK(sum != 0);
}

void test_fixed_math(void)
{
    test_bits();
    test_exponential();
    test_reciprocal();
    test_inverse_sqrt();
    test_log();
    test_unusual_arguments();
}
