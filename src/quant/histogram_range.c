/* SPDX-License-Identifier: Apache-2.0
 *
 * The methods of quant/histogram.def.  Bins are counted from zero here: bin i, -N <= i < N, spans
 * [i * 2^e, (i + 1) * 2^e).
 */
#include "quant/histogram.h"

#include <math.h>
#include <stdlib.h>

#include "quant/rounding.h"

static const struct {
    const char *name, *text;
} rows[] = {
#define HISTOGRAM_METHOD(symbol, name, text) {name, text},
#include "quant/histogram.def"
#undef HISTOGRAM_METHOD
};

const char *tq_histogram_method_name(tq_histogram_method method)
{
    return rows[method].name;
}

const char *tq_histogram_method_text(tq_histogram_method method)
{
    return rows[method].text;
}

static int32_t half_of(const tq_histogram *h)
{
    return (int32_t)(h->bins / 2);
}

static uint64_t count_of(const tq_histogram *h, int32_t bin)
{
    return h->counts[half_of(h) + bin];
}

static uint64_t total_of(const tq_histogram *h)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < h->bins; i++)
        total += h->counts[i];
    return total;
}

static double edge_of(const tq_histogram *h, int32_t bin)
{
    return ldexp(bin, h->exponent);
}

/* ---- percentile ---- */

static void percentile_range(const tq_histogram *h, double percentile, double *low, double *high)
{
    double cut = (double)total_of(h) * ((100 - percentile) / 200);
    int32_t first = -half_of(h), last = half_of(h) - 1;
    uint64_t below = count_of(h, first), above = count_of(h, last);
    while (first < half_of(h) - 1 && !((double)below > cut))
        below += count_of(h, ++first);
    while (last > -half_of(h) && !((double)above > cut))
        above += count_of(h, --last);
    *low = fmax(h->min, edge_of(h, first));
    *high = fmin(h->max, edge_of(h, last + 1));
}

static void percentile_symmetric(const tq_histogram *h, double percentile, double *low, double *high)
{
    double needed = (double)total_of(h) * (percentile / 100);
    uint64_t inside = 0;
    int32_t reach = 0;
    while (reach < half_of(h) && (reach == 0 || (double)inside < needed)) {
        inside += count_of(h, reach) + count_of(h, -reach - 1);
        reach++;
    }
    *high = fmin(fmax(-h->min, h->max), edge_of(h, reach));
    *low = -*high;
}

/* ---- mean squared error ---- */

typedef struct mass {
    double centre, count;
} mass;

/* The filled bins; a centre never lies beyond the exact range. */
static size_t masses_of(const tq_histogram *h, mass *masses)
{
    size_t n = 0;
    for (int32_t i = -half_of(h); i < half_of(h); i++)
        if (count_of(h, i)) {
            double centre = ldexp(i + 0.5, h->exponent);
            masses[n++] = (mass){fmin(fmax(centre, h->min), h->max), (double)count_of(h, i)};
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
    return end * factor / STEPS;
}

static tq_status error_of(const search *s, int low, int high, double *sum, tq_error *error)
{
    tq_params p;
    tq_status status = tq_params_choose(s->target, end_of(s->min, low), end_of(s->max, high), &p, error);
    if (status)
        return status;
    tq_code_range q = tq_code_range_of(s->target->code, s->target->narrow);
    *sum = 0;
    for (size_t i = 0; i < s->n; i++) {
        double x = s->masses[i].centre, scale = p.scale;
        int32_t code = scale > 0 ? tq_code_of_rounded(round(x / scale), p.zero_point, q.low, q.high) : p.zero_point;
        double off = ((double)code - p.zero_point) * scale - x;
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

static tq_status mse_range(const tq_histogram *h, const tq_params_target *target, double *low, double *high,
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

/* ---- entropy ---- */

/* Sums over bins before each bin, index 0 standing for bin -N: counts, filled bins, and c log c. */
typedef struct sums {
    uint64_t *count;
    uint32_t *filled;
    double *c_log_c;
    int32_t half;
} sums;

static double c_log_c(uint64_t c)
{
    return c ? (double)c * log((double)c) : 0;
}

static bool sums_make(const tq_histogram *h, sums *s)
{
    size_t n = (size_t)h->bins + 1;
    *s = (sums){calloc(n, sizeof *s->count), calloc(n, sizeof *s->filled), calloc(n, sizeof *s->c_log_c), half_of(h)};
    if (!s->count || !s->filled || !s->c_log_c)
        return false;
    for (uint32_t i = 0; i < h->bins; i++) {
        s->count[i + 1] = s->count[i] + h->counts[i];
        s->filled[i + 1] = s->filled[i] + (h->counts[i] != 0);
        s->c_log_c[i + 1] = s->c_log_c[i] + c_log_c(h->counts[i]);
    }
    return true;
}

static void sums_free(sums *s)
{
    free(s->count);
    free(s->filled);
    free(s->c_log_c);
}

static uint64_t between(const sums *s, int32_t from, int32_t to)
{
    return s->count[to + s->half] - s->count[from + s->half];
}

/* KL(P || Q) for the window [from, to).  P: its counts, all that lies outside added to its end bins.
   Q: its counts alone, merged into levels and spread evenly over each level's bins that P fills.
   With T and W the totals of P and Q, a level's mass p in P and c in Q, over f filled bins,
       KL = (sum of P log P - sum over levels of p log(c / f)) / T - log T + log W,
   infinite where P has mass and Q none. */
static double divergence(const tq_histogram *h, const sums *s, int32_t from, int32_t to, int32_t levels)
{
    uint64_t below = between(s, -s->half, from), above = between(s, to, s->half), inside = between(s, from, to);
    uint64_t first = count_of(h, from), last = count_of(h, to - 1);
    double p_log_p = s->c_log_c[to + s->half] - s->c_log_c[from + s->half] - c_log_c(first) - c_log_c(last) +
                     c_log_c(first + below) + c_log_c(last + above);
    double p_log_q = 0;
    int64_t width = to - from;
    for (int32_t level = 0; level < levels; level++) {
        int32_t a = from + (int32_t)(width * level / levels), b = from + (int32_t)(width * (level + 1) / levels);
        uint64_t c = between(s, a, b);
        uint32_t filled = s->filled[b + s->half] - s->filled[a + s->half];
        uint64_t p = c;
        if (a == from) {
            p += below;
            filled += first == 0 && below != 0;
        }
        if (b == to) {
            p += above;
            filled += last == 0 && above != 0;
        }
        if (p && !c)
            return INFINITY;
        if (p)
            p_log_q += (double)p * log((double)c / filled);
    }
    double total = (double)(inside + below + above);
    return (p_log_p - p_log_q) / total - log(total) + log((double)inside);
}

static int32_t least_int(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* The window that reaches `reach` bins either way, within [first, last] unless symmetric. */
static void window_of(int32_t reach, int32_t first, int32_t last, bool symmetric, int32_t *from, int32_t *to)
{
    *from = symmetric || -reach > first ? -reach : first;
    *to = symmetric ? reach : least_int(reach, last + 1);
}

static void entropy_search(const tq_histogram *h, const sums *s, const tq_params_target *target, double *low,
                           double *high)
{
    tq_code_range q = tq_code_range_of(target->code, target->narrow);
    int64_t codes = target->symmetric ? 2 * (int64_t)tq_code_centre_of(target->code).half + 1 : (int64_t)q.high - q.low + 1;
    int32_t first = -s->half, last = s->half - 1, from, to;
    while (first < 0 && !count_of(h, first))
        first++;
    while (last >= 0 && !count_of(h, last))
        last--;
    int32_t widest = -first > last + 1 ? -first : last + 1, best = widest;
    double least = INFINITY;
    for (int32_t reach = widest; reach >= 1; reach--) {
        window_of(reach, first, last, target->symmetric, &from, &to);
        if (to - from < codes || !between(s, from, to))
            break;
        double lost = divergence(h, s, from, to, (int32_t)codes);
        if (lost < least) {
            least = lost;
            best = reach;
        }
    }
    if (best == widest)
        return;
    window_of(best, first, last, target->symmetric, &from, &to);
    *low = fmax(*low, edge_of(h, from));
    *high = fmin(*high, edge_of(h, to));
}

static tq_status entropy_range(const tq_histogram *h, const tq_params_target *target, double *low, double *high,
                               tq_error *error)
{
    sums s;
    double bound = fmax(-h->min, h->max);
    double from = target->symmetric ? -bound : h->min, to = target->symmetric ? bound : h->max;
    bool made = sums_make(h, &s);
    if (made)
        entropy_search(h, &s, target, &from, &to);
    sums_free(&s);
    if (!made)
        return tq_fail(error, TQ_NO_MEMORY, TQ_NO_OFFSET, "no memory for %u bins", (unsigned)h->bins);
    *low = from;
    *high = to;
    return TQ_OK;
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
    case TQ_HISTOGRAM_MSE:
        return mse_range(h, target, low, high, error);
    case TQ_HISTOGRAM_ENTROPY:
        return entropy_range(h, target, low, high, error);
    case TQ_HISTOGRAM_MINMAX:
    case TQ_HISTOGRAM_METHODS: break;
    }
    *low = h->min;
    *high = h->max;
    return TQ_OK;
}
