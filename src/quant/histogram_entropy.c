/* SPDX-License-Identifier: Apache-2.0
 *
 * The range whose histogram loses least when its bins are merged into levels.  Sums over all bins before
 * each bin make every candidate cost one logarithm a level.
 */
#include "quant/histogram_methods.h"

#include <stdlib.h>

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
    s->half = tq_histogram_half(h);
    s->count = calloc(n, sizeof *s->count);
    s->filled = calloc(n, sizeof *s->filled);
    s->c_log_c = calloc(n, sizeof *s->c_log_c);
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
    uint64_t first = tq_histogram_count(h, from), last = tq_histogram_count(h, to - 1);
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

/* Divergences this near, in nats, are equal: rounding parts them.  An average of logarithms below 64, each right
   to 2^-52, from running sums, errs by far less. */
#define SAME 1e-9

static void entropy_search(const tq_histogram *h, const sums *s, const tq_params_target *target, double *low,
                           double *high)
{
    tq_value_range q = tq_value_range_of(target->type, target->narrow);
    int64_t half = tq_integer_centre_of(target->type).half;
    int64_t levels = target->symmetric ? 2 * half + 1 : (int64_t)q.high - q.low + 1;
    int32_t first = -s->half, last = s->half - 1, from, to;
    while (first < 0 && !tq_histogram_count(h, first))
        first++;
    while (last >= 0 && !tq_histogram_count(h, last))
        last--;
    int32_t widest = -first > last + 1 ? -first : last + 1, best = widest;
    double least = INFINITY;
    for (int32_t reach = widest; reach >= 1; reach--) {
        window_of(reach, first, last, target->symmetric, &from, &to);
        if (to - from < levels || !between(s, from, to))
            break;
        double lost = divergence(h, s, from, to, (int32_t)levels);
        if (lost < least - SAME) {
            least = lost;
            best = reach;
        }
    }
    if (best == widest)
        return;
    window_of(best, first, last, target->symmetric, &from, &to);
    *low = fmax(*low, tq_histogram_edge(h, from));
    *high = fmin(*high, tq_histogram_edge(h, to));
}

tq_status tq_histogram_entropy(const tq_histogram *h, const tq_params_target *target, double *low, double *high,
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
