/* SPDX-License-Identifier: Apache-2.0
 *
 * Work is cut into ranges of elements, one a thread.  Where neighbours belong to different channels, a range begins
 * with channel 0.
 */
#include "kernels/arrays/quantize_weights.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "kernels/arrays/observe.h"
#include "kernels/arrays/weight_loops.h"
#include "quant/rounding.h"

enum {
    BYTES_A_THREAD = 1 << 19, /* of weights; with fewer, waking a thread costs more than it saves */
    LEAST_CHANNEL_RUN = 64, /* elements of a channel; with fewer a thread, bounds a thread cost more than they save */
    GRAIN = 1024, /* elements; a multiple of what a byte packs */
    PIECE = 4096, /* elements that are packed at a time */
};

/* A layout as one array: blocks along an axis that is not the last are regions, each with channels of its own. */
typedef struct walk {
    const float *w;
    tq_axis_view view;
    size_t regions;
} walk;

static walk walk_of(const float *w, const tq_weight_layout *l)
{
    return (walk){w, l->region, l->regions};
}

/* Ranges begin at multiples of so many elements. */
static size_t unit_of(const walk *k)
{
    return k->regions > 1 ? tq_axis_view_size(k->view) : k->view.inner == 1 ? k->view.channels : 1;
}

static size_t size_of(const walk *k)
{
    return k->regions * tq_axis_view_size(k->view);
}

static int threads_of(const walk *k, int wanted)
{
    return tq_threads_for(wanted, size_of(k) * sizeof(float), BYTES_A_THREAD);
}

/* ---- bounds ---- */

typedef struct bounds_job {
    walk walk;
    size_t parts, each; /* units of a part */
    float *bounds; /* [parts][channels] */
} bounds_job;

static void bounds_parts(void *context, size_t begin, size_t end)
{
    const bounds_job *job = context;
    const walk *k = &job->walk;
    size_t units = size_of(k) / unit_of(k);
    for (size_t i = begin; i < end; i++) {
        size_t last = i + 1 == job->parts ? units : (i + 1) * job->each;
        tq_weight_loops_chosen()->bounds(k->w, k->view, i * job->each * unit_of(k), last * unit_of(k),
                                         job->bounds + i * k->view.channels);
    }
}

/* Each thread finds its own bounds.  false: there is no memory for them. */
static bool bounds_apart(const walk *k, size_t threads, float *bounds)
{
    size_t channels = k->view.channels, units = size_of(k) / unit_of(k);
    bounds_job job = {*k, threads, units / threads, calloc(threads * channels, sizeof *bounds)};
    if (!job.bounds)
        return false;
    tq_parallel_for(threads, 1, (int)threads, bounds_parts, &job);
    for (size_t i = 0; i < threads; i++)
        tq_weight_loops_chosen()->bounds(job.bounds + i * channels, (tq_axis_view){1, channels, 1}, 0, channels,
                                         bounds);
    free(job.bounds);
    return true;
}

void tq_weight_bounds(const float *w, const tq_weight_layout *l, int threads, float *bounds)
{
    const walk k = walk_of(w, l);
    const size_t channels = k.view.channels, size = size_of(&k), one = tq_axis_view_size(k.view);
    for (size_t i = 0; i < tq_weight_scale_count(l); i++)
        bounds[i] = 0;
    if (!size)
        return;
    size_t wanted = (size_t)threads_of(&k, threads), most = size / LEAST_CHANNEL_RUN / channels;
    wanted = wanted < most ? wanted : most;
    if (wanted > 1 && k.regions == 1 && bounds_apart(&k, wanted, bounds))
        return;
    for (size_t r = 0; r < k.regions; r++)
        tq_weight_loops_chosen()->bounds(w + r * one, k.view, 0, one, bounds + r * channels);
}

/* ---- values ---- */

static tq_weight_quantizer quantizer_of(const tq_weight_target *target)
{
    tq_integer_centre centre = tq_integer_centre_of(target->type);
    tq_weight_quantizer k = {target->rule == TQ_WEIGHTS_AI_EDGE, false, -centre.half, centre.half};
    if (k.divides && tq_integer_bits(target->type) < 8)
        k.low = tq_value_range_of(target->type, false).low;
    return k;
}

static int32_t value_of(float w, float factor, const tq_weight_quantizer *k)
{
    return tq_value_of_rounded(k->divides ? rintf(w / factor) : tq_round_f32(w * factor), 0, k->low, k->high);
}

typedef struct quantize_job {
    walk walk;
    tq_weight_quantizer quantizer;
    const float *factors;
    int bits; /* of packed values; 0: they are not packed */
    int8_t *q8;
    int16_t *q16;
    uint8_t *packed;
} quantize_job;

static void wide_values(const quantize_job *job, const float *w, const float *factors, size_t begin, size_t end,
                        int16_t *q)
{
    for (tq_axis_run r = tq_axis_run_first(job->walk.view, begin, end); r.count;
         tq_axis_run_next(&r, job->walk.view, end))
        for (size_t i = r.at; i < r.at + r.count; i++)
            q[i] = (int16_t)value_of(w[i], factors[r.channel], &job->quantizer);
}

/* Elements of all regions, from begin to end. */
static void bytes_from(const quantize_job *job, size_t begin, size_t end, int8_t *q)
{
    const walk *k = &job->walk;
    const size_t one = tq_axis_view_size(k->view);
    for (size_t at = begin, n; at < end; at += n) {
        size_t region = at / one, from = at % one;
        n = one - from < end - at ? one - from : end - at;
        tq_weight_loops_chosen()->bytes(job->quantizer, k->w + region * one, k->view, from, from + n,
                                        job->factors + region * k->view.channels, q + (at - begin));
    }
}

static void packed_from(const quantize_job *job, size_t begin, size_t end)
{
    int8_t values[PIECE];
    for (size_t at = begin; at < end; at += PIECE) {
        size_t n = end - at < PIECE ? end - at : PIECE;
        bytes_from(job, at, at + n, values);
        tq_weight_loops_chosen()->pack((const uint8_t *)values, n, job->bits, job->packed + at * (size_t)job->bits / 8);
    }
}

static void quantize_range(void *context, size_t begin, size_t end)
{
    const quantize_job *job = context;
    const size_t one = tq_axis_view_size(job->walk.view);
    if (job->packed)
        packed_from(job, begin, end);
    else if (job->q8)
        bytes_from(job, begin, end, job->q8 + begin);
    else
        for (size_t at = begin, n; at < end; at += n) {
            size_t region = at / one, from = at % one;
            n = one - from < end - at ? one - from : end - at;
            wide_values(job, job->walk.w + region * one, job->factors + region * job->walk.view.channels, from,
                        from + n, job->q16 + region * one);
        }
}

static void run_quantize(quantize_job *job, int threads)
{
    size_t size = size_of(&job->walk);
    if (size)
        tq_parallel_for(size, GRAIN, threads_of(&job->walk, threads), quantize_range, job);
}

void tq_quantize_weights(const tq_weight_target *target, const float *w, const tq_weight_layout *l,
                         const float *factors, int threads, int8_t *q8, int16_t *q16)
{
    quantize_job job = {walk_of(w, l), quantizer_of(target), factors, 0, q8, q16, NULL};
    run_quantize(&job, threads);
}

void tq_quantize_weights_packed(const tq_weight_target *target, const float *w, const tq_weight_layout *l,
                                const float *factors, int threads, uint8_t *packed)
{
    quantize_job job = {walk_of(w, l), quantizer_of(target), factors, tq_integer_bits(target->type), NULL, NULL,
                        packed};
    run_quantize(&job, threads);
}

/* ---- bounds, scales and values in one walk ---- */

typedef struct walk_job {
    quantize_job quantize;
    const tq_weight_target *target;
    float *factors, *scales;
    atomic_bool failed;
} walk_job;

/* Channels [begin, end), few enough to stay in the first-level cache. */
static bool walk_some(const walk_job *job, quantize_job *quantize, size_t begin, size_t end)
{
    const tq_axis_view view = quantize->walk.view;
    float *factors = job->factors + begin;
    memset(factors, 0, (end - begin) * sizeof *factors);
    tq_weight_loops_chosen()->bounds(quantize->walk.w, view, begin * view.inner, end * view.inner, job->factors);
    if (tq_weight_scales(job->target, factors, end - begin, job->scales + begin, NULL) != TQ_OK)
        return false;
    quantize->quantizer.stays_in_range = !job->target->blocks;
    for (size_t c = 0; c < end - begin; c++)
        quantize->quantizer.stays_in_range &= tq_weight_stays_in_range(factors[c]);
    quantize_range(quantize, begin * view.inner, end * view.inner);
    return true;
}

static void walk_channels(void *context, size_t begin, size_t end)
{
    walk_job *job = context;
    quantize_job quantize = job->quantize;
    const size_t some = GRAIN / quantize.walk.view.inner + 1;
    for (size_t at = begin, n; at < end; at += n) {
        n = end - at < some ? end - at : some;
        if (!walk_some(job, &quantize, at, at + n)) {
            atomic_store_explicit(&job->failed, true, memory_order_relaxed);
            return;
        }
    }
}

bool tq_weight_walk(const tq_weight_target *target, const float *w, const tq_weight_layout *l, int threads,
                    float *factors, float *scales, int8_t *q8, uint8_t *packed)
{
    const tq_axis_view view = l->region;
    const int bits = tq_integer_bits(target->type);
    const size_t most = 1 << 17; /* elements of a channel that stays in the cache until its values are computed */
    if (l->regions != 1 || view.outer != 1 || view.inner < 2 || view.inner > most ||
        (packed && view.inner * (size_t)bits % 8))
        return false;
    walk_job job = {
        {walk_of(w, l), quantizer_of(target), factors, bits, q8, NULL, packed}, target, factors, scales, false};
    const size_t grain = GRAIN / view.inner + 1; /* channels */
    tq_parallel_for(view.channels, grain, threads_of(&job.quantize.walk, threads), walk_channels, &job);
    return !atomic_load(&job.failed);
}

/* ---- rule TOCO ---- */

tq_status tq_weight_range(const float *w, size_t n, double *min, double *max, tq_error *error)
{
    tq_reals reals = {w, false, {1, 1, n}};
    tq_observed observed;
    tq_observe(&reals, 1, &observed);
    if (observed.nan || observed.infinite)
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "w holds %s; weights must be finite",
                       observed.nan ? "nan" : "inf");
    *min = fmin(observed.min, 0); /* n = 0: min is infinity */
    *max = fmax(observed.max, 0);
    if (*min == *max)
        *max = 1;
    return TQ_OK;
}
