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

static tq_histogram_unit unit_of(int exponent)
{
    int half = -exponent / 2;
    return (tq_histogram_unit){ldexp(1, half), ldexp(1, -exponent - half)};
}

static int32_t bin_of(double x, tq_histogram_unit u, double half)
{
    double quotient = x * u.first * u.second;
    quotient = quotient < -half ? -half : quotient > half - 1 ? half - 1 : quotient;
    int32_t whole = (int32_t)quotient; /* toward zero */
    return whole - (x < 0 && (whole == 0 || whole > quotient));
}

static void add_floats(const float *x, size_t n, tq_histogram_unit u, uint64_t *zero, double half)
{
    for (size_t i = 0; i < n; i++) {
        float value = x[i];
        if (isfinite(value))
            zero[bin_of(value, u, half)]++;
    }
}

static void add_doubles(const double *x, size_t n, tq_histogram_unit u, uint64_t *zero, double half)
{
    for (size_t i = 0; i < n; i++) {
        double value = x[i];
        if (isfinite(value))
            zero[bin_of(value, u, half)]++;
    }
}

void tq_histogram_add(const tq_reals *x, uint32_t bins, const int32_t *exponents, tq_histogram_unit *units,
                      uint64_t *counts)
{
    tq_axis_view l = x->view;
    size_t at = 0;
    for (size_t c = 0; c < l.channels; c++)
        units[c] = unit_of(exponents[c]);
    for (size_t o = 0; o < l.outer; o++)
        for (size_t c = 0; c < l.channels; c++, at += l.inner) {
            uint64_t *zero = counts + c * bins + bins / 2;
            if (x->is_double)
                add_doubles((const double *)x->data + at, l.inner, units[c], zero, bins / 2);
            else
                add_floats((const float *)x->data + at, l.inner, units[c], zero, bins / 2);
        }
}
