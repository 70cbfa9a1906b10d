/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/arrays/observe.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/threads.h"
#include "kernels/isa.h"

enum { LANES = 64, BLOCK = 1024 };

#define NAME run_float
#define TYPE float
#define ABSOLUTE fabsf
#define GREATEST FLT_MAX
#include "kernels/arrays/observe_run.h"

#define NAME run_double
#define TYPE double
#define ABSOLUTE fabs
#define GREATEST DBL_MAX
#include "kernels/arrays/observe_run.h"

#define RUN(isa, target)                                                           \
    target static void run_float_##isa(const float *x, size_t n, tq_observed *o)   \
    {                                                                              \
        run_float_body(x, n, o);                                                   \
    }                                                                              \
    target static void run_double_##isa(const double *x, size_t n, tq_observed *o) \
    {                                                                              \
        run_double_body(x, n, o);                                                  \
    }
TQ_EVERY_ISA(RUN)

typedef void (*run_float_fn)(const float *x, size_t n, tq_observed *o);
typedef void (*run_double_fn)(const double *x, size_t n, tq_observed *o);
static const run_float_fn run_floats[TQ_ISAS] = TQ_ISA_FUNCTIONS(run_float);
static const run_double_fn run_doubles[TQ_ISAS] = TQ_ISA_FUNCTIONS(run_double);

#define LEAST_CHANNEL_RUN                                                                        \
    64  /* elements of a channel; with fewer a thread, records a thread cost more than they save \
         */

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

/* Each thread has its own records; without memory for them one thread observes everything. */
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
