/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/arrays/observe.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/threads.h"
#include "kernels/isa.h"

enum { LANES = 64, BLOCK = 1024 };

/* One run of one type, a block at a time.  A minimum over floats may not be reordered by the compiler,
   so a block is cut into lanes by hand, four vectors of the widest, and these it does vectorize.  v - v is 0 for finite v
   and NaN for others, so a sum of them says whether the block is clean; one that is not is done again, value by
   value.  A NaN fails every comparison, and a block holding an infinity discards its bounds. */
#define DEFINE_RUN(name, type, absolute, greatest)                                                       \
    TQ_BODY void name##_one(type v, tq_observed *o)                                                      \
    {                                                                                                    \
        if (absolute(v) <= greatest) {                                                                   \
            o->min = v < o->min ? v : o->min;                                                            \
            o->max = v > o->max ? v : o->max;                                                            \
            o->finite++;                                                                                 \
        } else if (v != v)                                                                               \
            o->nan++;                                                                                    \
        else                                                                                             \
            o->infinite++;                                                                               \
    }                                                                                                    \
                                                                                                         \
    TQ_BODY bool name##_clean(const type *x, size_t n, tq_observed *o)                                   \
    {                                                                                                    \
        type low[LANES], high[LANES], zero[LANES];                                                       \
        for (int k = 0; k < LANES; k++) {                                                                \
            low[k] = high[k] = x[k];                                                                     \
            zero[k] = 0;                                                                                 \
        }                                                                                                \
        for (size_t i = 0; i < n; i += LANES)                                                            \
            for (int k = 0; k < LANES; k++) {                                                            \
                type v = x[i + k];                                                                       \
                low[k] = v < low[k] ? v : low[k];                                                        \
                high[k] = v > high[k] ? v : high[k];                                                     \
                zero[k] += v - v;                                                                        \
            }                                                                                            \
        for (int k = 1; k < LANES; k++) {                                                                \
            low[0] = low[k] < low[0] ? low[k] : low[0];                                                  \
            high[0] = high[k] > high[0] ? high[k] : high[0];                                             \
            zero[0] += zero[k];                                                                          \
        }                                                                                                \
        if (zero[0] != 0) /* NaN */                                                                      \
            return false;                                                                                \
        o->min = low[0] < o->min ? low[0] : o->min;                                                      \
        o->max = high[0] > o->max ? high[0] : o->max;                                                    \
        o->finite += n;                                                                                  \
        return true;                                                                                     \
    }                                                                                                    \
                                                                                                         \
    TQ_BODY void name##_body(const type *x, size_t n, tq_observed *o)                                    \
    {                                                                                                    \
        while (n) {                                                                                      \
            size_t block = n >= BLOCK ? BLOCK : n >= LANES ? n - n % LANES : n;                          \
            if (block < LANES || !name##_clean(x, block, o))                                             \
                for (size_t i = 0; i < block; i++)                                                       \
                    name##_one(x[i], o);                                                                 \
            x += block;                                                                                  \
            n -= block;                                                                                  \
        }                                                                                                \
    }

DEFINE_RUN(run_float, float, fabsf, FLT_MAX)
DEFINE_RUN(run_double, double, fabs, DBL_MAX)

#define RUN(isa, target)                                                                  \
    target static void run_float_##isa(const float *x, size_t n, tq_observed *o)          \
    {                                                                                     \
        run_float_body(x, n, o);                                                          \
    }                                                                                     \
    target static void run_double_##isa(const double *x, size_t n, tq_observed *o)        \
    {                                                                                     \
        run_double_body(x, n, o);                                                         \
    }
TQ_EVERY_ISA(RUN)

typedef void (*run_float_fn)(const float *x, size_t n, tq_observed *o);
typedef void (*run_double_fn)(const double *x, size_t n, tq_observed *o);
static const run_float_fn run_floats[TQ_ISAS] = TQ_ISA_FUNCTIONS(run_float);
static const run_double_fn run_doubles[TQ_ISAS] = TQ_ISA_FUNCTIONS(run_double);

#define LEAST_CHANNEL_RUN 64  /* elements of each channel that a thread must have for records of its own to be worth it */

static void clear(tq_observed *observed, size_t channels)
{
    for (size_t c = 0; c < channels; c++)
        observed[c] = (tq_observed){INFINITY, -INFINITY, 0, 0, 0};
}

/* The elements from begin to end. */
static void observe_part(const tq_reals *x, size_t begin, size_t end, tq_observed *observed)
{
    for (tq_axis_run r = tq_axis_run_first(x->view, begin, end); r.count; tq_axis_run_next(&r, x->view, end))
        if (x->is_double)
            run_doubles[tq_isa()]((const double *)x->data + r.at, r.count, &observed[r.channel]);
        else
            run_floats[tq_isa()]((const float *)x->data + r.at, r.count, &observed[r.channel]);
}

typedef struct parts {
    const tq_reals *x;
    size_t count, each; /* elements of a part */
    tq_observed *records;
} parts;

static void observe_parts(void *context, size_t begin, size_t end)
{
    const parts *p = context;
    size_t total = tq_axis_view_size(p->x->view);
    for (size_t i = begin; i < end; i++) {
        size_t from = i * p->each, to = i + 1 == p->count ? total : from + p->each;
        observe_part(p->x, from, to, p->records + i * p->x->view.channels);
    }
}

static void merge(tq_observed *to, const tq_observed *from)
{
    to->min = from->min < to->min ? from->min : to->min;
    to->max = from->max > to->max ? from->max : to->max;
    to->finite += from->finite;
    to->nan += from->nan;
    to->infinite += from->infinite;
}

/* Each thread has records of its own; without memory for them one thread does it all. */
static void observe_apart(const tq_reals *x, size_t threads, tq_observed *observed)
{
    size_t channels = x->view.channels, total = tq_axis_view_size(x->view);
    parts p = {x, threads, total / threads, malloc(threads * channels * sizeof *observed)};
    if (!p.records) {
        observe_part(x, 0, total, observed);
        return;
    }
    clear(p.records, threads * channels);
    tq_parallel_for(threads, 1, (int)threads, observe_parts, &p);
    for (size_t i = 0; i < threads * channels; i++)
        merge(&observed[i % channels], &p.records[i]);
    free(p.records);
}

void tq_observe(const tq_reals *x, int threads, tq_observed *observed)
{
    size_t channels = x->view.channels, total = tq_axis_view_size(x->view);
    size_t wanted = (size_t)tq_observe_threads(x, threads);
    clear(observed, channels);
    if (total == 0)
        return;
    size_t most = total / LEAST_CHANNEL_RUN / channels; /* channels is not 0 where total is not */
    wanted = wanted < most ? wanted : most;
    if (wanted > 1)
        observe_apart(x, wanted, observed);
    else
        observe_part(x, 0, total, observed);
    for (size_t c = 0; c < channels; c++) {
        observed[c].min += 0.0; /* -0 + 0 is +0 */
        observed[c].max += 0.0;
    }
}
