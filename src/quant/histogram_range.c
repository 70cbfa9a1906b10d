/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/histogram_methods.h"

static uint64_t total_of(const tq_histogram *h)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < h->bins; i++)
        total += h->counts[i];
    return total;
}

static void percentile_range(const tq_histogram *h, double percentile, double *low, double *high)
{
    double cut = (double)total_of(h) * ((100 - percentile) / 200);
    int32_t first = -tq_histogram_half(h), last = tq_histogram_half(h) - 1;
    uint64_t below = tq_histogram_count(h, first), above = tq_histogram_count(h, last);
    while (first < tq_histogram_half(h) - 1 && !((double)below > cut))
        below += tq_histogram_count(h, ++first);
    while (last > -tq_histogram_half(h) && !((double)above > cut))
        above += tq_histogram_count(h, --last);
    *low = fmax(h->min, tq_histogram_edge(h, first));
    *high = fmin(h->max, tq_histogram_edge(h, last + 1));
}

static void percentile_symmetric(const tq_histogram *h, double percentile, double *low, double *high)
{
    double needed = (double)total_of(h) * (percentile / 100);
    uint64_t inside = 0;
    int32_t reach = 0;
    while (reach < tq_histogram_half(h) && (reach == 0 || (double)inside < needed)) {
        inside += tq_histogram_count(h, reach) + tq_histogram_count(h, -reach - 1);
        reach++;
    }
    *high = fmin(fmax(-h->min, h->max), tq_histogram_edge(h, reach));
    *low = -*high;
}

tq_status tq_histogram_range(const tq_histogram *h, tq_histogram_method method, double percentile,
                             const tq_params_target *target, double *low, double *high, tq_error *error)
{
    switch (method) {
    case TQ_HISTOGRAM_PERCENTILE:
        if (!(percentile > 0 && percentile <= 100))
            return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "percentile is %g; it must be over 0 and at most 100",
                           percentile);
        (target->symmetric ? percentile_symmetric : percentile_range)(h, percentile, low, high);
        return TQ_OK;
    case TQ_HISTOGRAM_MSE: return tq_histogram_mse(h, target, low, high, error);
    case TQ_HISTOGRAM_ENTROPY: return tq_histogram_entropy(h, target, low, high, error);
    case TQ_HISTOGRAM_MINMAX:
    case TQ_HISTOGRAM_METHODS: break;
    }
    *low = h->min;
    *high = h->max;
    return TQ_OK;
}
