/* SPDX-License-Identifier: Apache-2.0
 *
 * Histograms whose result does not depend on how the data were split, ordered or merged.
 *
 * Bin i of 2N holds the values with floor(x / 2^e) = i - N: widths are powers of two and edges their
 * multiples, so that doubling the width merges bins in pairs, exactly: floor(floor(x / w) / 2) =
 * floor(x / 2w).  The exponent e is the least for which every value so far fits, which only the least
 * and greatest value determine.  So the state is a function of the multiset of values.
 * Between N / 2 and N bins hold the side with the greater |x|.
 */
#ifndef TQ_QUANT_HISTOGRAM_H
#define TQ_QUANT_HISTOGRAM_H

#include "base/status.h"
#include "quant/observe.h"
#include "quant/params.h"

/* With a power of two, the exponent follows from the values' exponents. */
#define TQ_HISTOGRAM_LEAST_BINS 16
#define TQ_HISTOGRAM_MOST_BINS (1 << 20)

/* Where a histogram of nothing, or of zeros, starts: the exponent of the least double. */
#define TQ_HISTOGRAM_LEAST_EXPONENT (-1074)

/* The least exponent at which `bins` bins hold min and max (both finite), or the one above. */
int tq_histogram_exponent(double min, double max, uint32_t bins);

/* Merges bins so that counts made for exponent `from` become those for `to` >= from. */
void tq_histogram_fold(uint64_t *counts, uint32_t bins, int from, int to);

/* 2^-e as two factors, since 2^1074 is no double.  A value times both is exact, but where the quotient is far below 1,
   and there only its sign matters. */
typedef struct tq_histogram_unit {
    double first, second;
} tq_histogram_unit;

/* Adds every finite value; one that does not fit counts in the end bin.  counts is [channels, bins];
   units are scratch, one a channel.  threads: at most; 0: as many as pay. */
void tq_histogram_add(const tq_reals *x, uint32_t bins, const int32_t *exponents, tq_histogram_unit *units, int threads,
                      uint64_t *counts);

typedef enum tq_histogram_method {
#define HISTOGRAM_METHOD(symbol, name, text) TQ_HISTOGRAM_##symbol,
#include "quant/histogram.def"
#undef HISTOGRAM_METHOD
    TQ_HISTOGRAM_METHODS
} tq_histogram_method;

/* One channel's counts, with the exact range of what was counted (min <= max). */
typedef struct tq_histogram {
    const uint64_t *counts;
    uint32_t bins;
    int exponent;
    double min, max;
} tq_histogram;

/* The range to quantize.  percentile is over 0 and at most 100, and read by that method alone.
   Allocates a few arrays of `bins` entries; fails if that fails, or if tq_params_choose does. */
tq_status tq_histogram_range(const tq_histogram *histogram, tq_histogram_method method, double percentile,
                             const tq_params_target *target, double *low, double *high, tq_error *error);

#endif
