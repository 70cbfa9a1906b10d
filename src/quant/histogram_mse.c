/* SPDX-License-Identifier: Apache-2.0
 *
 * The range with the least squared error, by descent along its two ends.
 */
#include "quant/histogram_methods.h"

#include <stdlib.h>

#include "quant/rounding.h"

typedef struct mass {
    double centre, count;
} mass;

/* The filled bins; a centre never lies beyond the exact range. */
static size_t masses_of(const tq_histogram *h, mass *masses)
{
    size_t n = 0;
    for (int32_t i = -tq_histogram_half(h); i < tq_histogram_half(h); i++)
        if (tq_histogram_count(h, i)) {
            double centre = ldexp(i + 0.5, h->exponent);
            masses[n++] = (mass){fmin(fmax(centre, h->min), h->max), (double)tq_histogram_count(h, i)};
        }
    return n;
}

typedef struct search {
    const tq_params_target *target;
    const mass *masses;
    size_t n;
    double min, max; /* what factor 1 stands for */
    int low, high;   /* the factors, in 1 / STEPS */
    double error;
} search;

enum { STEPS = 128 };

static double end_of(double end, int factor)
{
    return end * ((double)factor / STEPS); /* the quotient is exact, and no greater than 1 */
}

static tq_status error_of(const search *s, int low, int high, double *sum, tq_error *error)
{
    tq_params p;
    tq_status status = tq_params_choose(s->target, end_of(s->min, low), end_of(s->max, high), &p, error);
    if (status)
        return status;
    tq_value_range q = tq_value_range_of(s->target->type, s->target->narrow);
    *sum = 0;
    for (size_t i = 0; i < s->n; i++) {
        double x = s->masses[i].centre, scale = p.scale;
        const double whole = tq_round_f64(x / scale);
        int32_t q_value = scale > 0 ? tq_value_of_rounded(whole, p.zero_point, q.low, q.high) : p.zero_point;
        double off = ((double)q_value - p.zero_point) * scale - x;
        *sum += s->masses[i].count * off * off;
    }
    return TQ_OK;
}

/* Tries every factor for the ends whose flag is set (both together, or one), the widest first. */
static tq_status descend(search *s, bool move_low, bool move_high, bool *better, tq_error *error)
{
    int best = 0;
    for (int factor = STEPS; factor >= 1; factor--) {
        double sum;
        tq_status status = error_of(s, move_low ? factor : s->low, move_high ? factor : s->high, &sum, error);
        if (status)
            return status;
        if (sum < s->error) {
            s->error = sum;
            best = factor;
        }
    }
    if (best) {
        *better = true;
        s->low = move_low ? best : s->low;
        s->high = move_high ? best : s->high;
    }
    return TQ_OK;
}

static tq_status mse_search(search *s, tq_error *error)
{
    tq_status status = error_of(s, STEPS, STEPS, &s->error, error);
    for (bool better = true; better && !status;) {
        better = false;
        if (s->target->symmetric) {
            status = descend(s, true, true, &better, error);
            break; /* one dimension: the first scan saw everything */
        }
        if (s->min < 0)
            status = descend(s, true, false, &better, error);
        if (s->max > 0 && !status)
            status = descend(s, false, true, &better, error);
    }
    return status;
}

tq_status tq_histogram_mse(const tq_histogram *h, const tq_params_target *target, double *low, double *high,
                           tq_error *error)
{
    mass *masses = malloc(h->bins * sizeof *masses);
    if (!masses)
        return tq_fail(error, TQ_NO_MEMORY, TQ_NO_OFFSET, "no memory for %u bins", (unsigned)h->bins);
    double bound = fmax(-h->min, h->max);
    search s = {.target = target, .masses = masses, .low = STEPS, .high = STEPS};
    s.n = masses_of(h, masses);
    s.min = target->symmetric ? -bound : fmin(h->min, 0);
    s.max = target->symmetric ? bound : fmax(h->max, 0);
    tq_status status = mse_search(&s, error);
    if (!status) {
        *low = end_of(s.min, s.low);
        *high = end_of(s.max, s.high);
    }
    free(masses);
    return status;
}
