/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/histogram.h"

#include <math.h>

static int exponent_of(double x, bool is_max, int half_log2)
{
    int e;
    double mantissa = frexp(fabs(x), &e);
    if (x == 0)
        return TQ_HISTOGRAM_LEAST_EXPONENT;
    /* |x| < 2^e.  Bins reach from -N * width, which is in, to N * width, which is not. */
    bool is_lower_edge = !is_max && mantissa == 0.5;
    e = (is_lower_edge ? e - 1 : e) - half_log2;
    return e > TQ_HISTOGRAM_LEAST_EXPONENT ? e : TQ_HISTOGRAM_LEAST_EXPONENT;
}

int tq_histogram_exponent(double min, double max, uint32_t bins)
{
    int half_log2 = 0;
    while ((uint32_t)2 << (half_log2 + 1) <= bins)
        half_log2++;
    int low = exponent_of(min, min > 0, half_log2), high = exponent_of(max, max > 0, half_log2);
    return low > high ? low : high;
}

void tq_histogram_fold(uint64_t *counts, uint32_t bins, int from, int to)
{
    int shift = to - from < 31 ? to - from : 31;
    int32_t half = (int32_t)(bins / 2);
    if (shift <= 0)
        return;
    /* From zero outwards: a bin's new place lies no further out, where all is already moved. */
    for (int32_t i = 0; i < half; i++) {
        uint64_t count = counts[half + i];
        counts[half + i] = 0;
        counts[half + (i >> shift)] += count;
    }
    for (int32_t i = -1; i >= -half; i--) {
        uint64_t count = counts[half + i];
        counts[half + i] = 0;
        counts[half + (i >> shift)] += count;
    }
}

/* 2^-e in two factors, as 2^1074 is no double.  The products are exact, except where a quotient is
   far below 1, and there only its sign matters. */
typedef struct unit {
    double first, second;
} unit;

static unit unit_of(int exponent)
{
    int half = -exponent / 2;
    return (unit){ldexp(1, half), ldexp(1, -exponent - half)};
}

static int32_t bin_of(double x, unit u, double half)
{
    double quotient = x * u.first * u.second;
    quotient = quotient < -half ? -half : quotient > half - 1 ? half - 1 : quotient;
    int32_t whole = (int32_t)quotient; /* toward zero */
    return whole - (x < 0 && (whole == 0 || whole > quotient));
}

static void add_floats(const float *x, size_t n, unit u, uint64_t *zero, double half)
{
    for (size_t i = 0; i < n; i++) {
        float value = x[i];
        if (isfinite(value))
            zero[bin_of(value, u, half)]++;
    }
}

static void add_doubles(const double *x, size_t n, unit u, uint64_t *zero, double half)
{
    for (size_t i = 0; i < n; i++) {
        double value = x[i];
        if (isfinite(value))
            zero[bin_of(value, u, half)]++;
    }
}

void tq_histogram_add(const tq_reals *x, uint32_t bins, const int32_t *exponents, uint64_t *counts)
{
    tq_axis_view l = x->view;
    for (size_t run = 0; run < l.outer * l.channels; run++) {
        size_t c = run % l.channels;
        uint64_t *zero = counts + c * bins + bins / 2;
        if (x->is_double)
            add_doubles((const double *)x->data + run * l.inner, l.inner, unit_of(exponents[c]), zero, bins / 2);
        else
            add_floats((const float *)x->data + run * l.inner, l.inner, unit_of(exponents[c]), zero, bins / 2);
    }
}
