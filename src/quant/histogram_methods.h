/* SPDX-License-Identifier: Apache-2.0
 *
 * What the methods of quant/histogram.def share.  Bins are counted from zero here: bin i, -N <= i < N,
 * spans [i * 2^e, (i + 1) * 2^e).
 */
#ifndef TQ_QUANT_HISTOGRAM_METHODS_H
#define TQ_QUANT_HISTOGRAM_METHODS_H

#include <math.h>

#include "quant/histogram.h"

static inline int32_t tq_histogram_half(const tq_histogram *h)
{
    return (int32_t)(h->bins / 2);
}

static inline uint64_t tq_histogram_count(const tq_histogram *h, int32_t bin)
{
    return h->counts[tq_histogram_half(h) + bin];
}

static inline double tq_histogram_edge(const tq_histogram *h, int32_t bin)
{
    return ldexp(bin, h->exponent);
}

/* The searches.  Each writes *low and *high on success alone. */
tq_status tq_histogram_mse(const tq_histogram *histogram, const tq_params_target *target, double *low, double *high,
                           tq_error *error);
tq_status tq_histogram_entropy(const tq_histogram *histogram, const tq_params_target *target, double *low, double *high,
                               tq_error *error);

#endif
