/* SPDX-License-Identifier: Apache-2.0
 *
 * Histograms that do not depend on the order, the split or the merging of data.
 *
 * Bin i of 2N counts the values with floor(x / 2^e) = i - N.  Widths are powers of two and edges their multiples, so
 * that doubling the width merges bins in pairs exactly: floor(floor(x / w) / 2) = floor(x / 2w).  The exponent e is the
 * least at which all values fit; the least and the greatest value determine it.  So the histogram is a function of the
 * multiset of values.  The side with the greater |x| takes between N / 2 and N bins.
 */
#ifndef TQ_QUANT_HISTOGRAM_H
#define TQ_QUANT_HISTOGRAM_H

#include "base/status.h"
#include "quant/observe.h"
#include "quant/params.h"

/* Bins: a power of two, so that the exponent follows from the exponents of values. */
#define TQ_HISTOGRAM_LEAST_BINS 16
#define TQ_HISTOGRAM_MOST_BINS (1 << 20)

/* The exponent of an empty histogram, and of zeros: that of the least float64. */
#define TQ_HISTOGRAM_LEAST_EXPONENT (-1074)

/* The least exponent at which `bins` bins hold min and max, both finite, or the next. */
int tq_histogram_exponent(double min, double max, uint32_t bins);

/* Merges bins: counts for exponent `from` become counts for exponent `to` >= from. */
void tq_histogram_fold(uint64_t *counts, uint32_t bins, int from, int to);

/* 2^-e as two factors, since 2^1074 exceeds float64.  The product of a value and both is exact, except far below 1,
   where only its sign matters. */
typedef struct tq_histogram_unit {
    double first, second;
} tq_histogram_unit;

/* Counts every finite value of x; a value outside the bins counts in an end bin.  exponents: [channels]; units:
   [channels], scratch; counts: [channels][bins].  threads: at most; 0: as many as pay. */
void tq_histogram_add(const tq_reals *x, uint32_t bins, const int32_t *exponents, tq_histogram_unit *units, int threads,
                      uint64_t *counts);

typedef enum tq_histogram_method {
#define HISTOGRAM_METHOD(symbol, name, text) TQ_HISTOGRAM_##symbol,
#include "quant/histogram.def"
#undef HISTOGRAM_METHOD
    TQ_HISTOGRAM_METHODS
} tq_histogram_method;

/* The counts of one channel, and the exact range of the counted values: min <= max, finite. */
typedef struct tq_histogram {
    const uint64_t *counts;
    uint32_t bins;
    int exponent;
    double min, max;
} tq_histogram;

/* The range to quantize, *low <= *high.  percentile: over 0, at most 100; read by that method alone.  Allocates a few
   arrays of `bins` entries.  TQ_NO_MEMORY; TQ_BAD_ARGUMENT for percentile; the errors of tq_params_choose. */
tq_status tq_histogram_range(const tq_histogram *histogram, tq_histogram_method method, double percentile,
                             const tq_params_target *target, double *low, double *high, tq_error *error);

#endif
