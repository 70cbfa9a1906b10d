/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/histogram.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/threads.h"

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
    /* From zero outwards: a bin moves inwards, among bins that have moved already. */
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

typedef struct adding {
    const tq_reals *x;
    uint32_t bins;
    const tq_histogram_unit *units;
    uint64_t *counts;
    size_t parts; /* of a single channel's elements, each with its own counts */
} adding;

static void add_run(const adding *a, size_t at, size_t n, size_t channel, uint64_t *counts)
{
    if (a->x->is_double)
        add_doubles((const double *)a->x->data + at, n, a->units[channel], counts + a->bins / 2, a->bins / 2);
    else
        add_floats((const float *)a->x->data + at, n, a->units[channel], counts + a->bins / 2, a->bins / 2);
}

/* The channels from begin to end. */
static void add_channels(void *context, size_t begin, size_t end)
{
    const adding *a = context;
    tq_axis_view l = a->x->view;
    for (size_t o = 0; o < l.outer; o++)
        for (size_t c = begin; c < end; c++)
            add_run(a, (o * l.channels + c) * l.inner, l.inner, c, a->counts + c * a->bins);
}

static void add_parts(void *context, size_t begin, size_t end)
{
    const adding *a = context;
    size_t total = tq_axis_view_size(a->x->view), each = total / a->parts;
    for (size_t i = begin; i < end; i++)
        add_run(a, i * each, i + 1 == a->parts ? total - i * each : each, 0, a->counts + i * a->bins);
}

/* Counts a single channel in parts.  false, with nothing counted: parts do not pay, or there is no memory for their
   counts. */
static bool add_apart(const adding *whole, int threads)
{
    adding a = *whole;
    a.parts = tq_axis_view_size(a.x->view) / a.bins / 4;
    a.parts = a.parts < (size_t)threads ? a.parts : (size_t)threads;
    a.counts = a.parts > 1 ? calloc(a.parts, a.bins * sizeof *a.counts) : NULL;
    if (!a.counts)
        return false;
    tq_parallel_for(a.parts, 1, threads, add_parts, &a);
    for (size_t i = 0; i < a.parts; i++)
        for (uint32_t b = 0; b < a.bins; b++)
            whole->counts[b] += a.counts[i * a.bins + b];
    free(a.counts);
    return true;
}

void tq_histogram_add(const tq_reals *x, uint32_t bins, const int32_t *exponents, tq_histogram_unit *units, int threads,
                      uint64_t *counts)
{
    adding a = {x, bins, units, counts, 1};
    threads = tq_observe_threads(x, threads);
    for (size_t c = 0; c < x->view.channels; c++)
        units[c] = unit_of(exponents[c]);
    if (x->view.channels == 1 && add_apart(&a, threads))
        return;
    tq_parallel_for(x->view.channels, 1, threads, add_channels, &a);
}
