/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/fake_quant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/round.h"
#include "base/threads.h"

#define BYTES_A_THREAD 131072 /* with fewer, another thread costs more than it saves */
#define GRAIN 1024            /* elements: no thread gets less */

tq_status tq_fake_quant_nudge(float min, float max, int bits, bool narrow, tq_nudged *nudged, tq_error *error)
{
    if (min == 0 && max == 0) {
        *nudged = (tq_nudged){0, 0, 0, 0, 0, 0};
        return TQ_OK;
    }
    if (!isfinite(min) || !isfinite(max) || !(min < max))
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                       "min is %g and max is %g; both must be finite and min less than max, or both 0", (double)min,
                       (double)max);
    float qmin = narrow, qmax = (float)((1 << bits) - 1);
    float scale = (max - min) / (qmax - qmin), inverse = 1.0f / scale, steps = (qmax - qmin) / (max - min);
    if (!isfinite(scale) || !isfinite(inverse) || !isfinite(steps))
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                       "min %g to max %g is too %s: its scale %g or the reciprocal is not a finite float32",
                       (double)min, (double)max, scale > 1 ? "wide" : "narrow", (double)scale);
    float zero_point = qmin - min / scale;
    zero_point = zero_point < qmin ? qmin : zero_point > qmax ? qmax : tq_round_f32(zero_point);
    float low = (qmin - zero_point) * scale, high = (qmax - zero_point) * scale;
    *nudged = (tq_nudged){low, high, scale, inverse, floorf(-low * inverse + 0.5f), steps};
    return TQ_OK;
}

/* The nearest integer, ties to even, for |x| < 2^22: the sum's last bit is worth 1, so it is rounded there,
   and the difference is exact.  NaN stays NaN.  Compilers vectorize this as they cannot a call. */
static inline float round_even(float x)
{
    const float shifter = 12582912.0f; /* 1.5 * 2^23 */
    return (x + shifter) - shifter;
}

/* away(x) for 0 <= x < 2^22: ties to even differs where it rounded a tie down.  x - r is exact. */
static inline float round_away(float x)
{
    float r = round_even(x);
    return r + (x - r >= 0.5f ? 1.0f : 0.0f);
}

static inline float round_down(float x)
{
    float r = round_even(x);
    return r + (r > x ? -1.0f : 0.0f);
}

/* NaN fails both comparisons and stays. */
static inline float clamp(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

static inline float tflite_one(float x, const tq_nudged *n)
{
    float shifted = clamp(x, n->low, n->high) - n->low;
    return round_away(shifted * n->inverse) * n->scale + n->low;
}

static inline float tensorflow_one(float x, const tq_nudged *n)
{
    float shifted = clamp(x, n->low, n->high) - n->low;
    return round_down(shifted / n->scale - n->zero + 0.5f) * n->scale;
}

static inline float tensorflow_channel_one(float x, const tq_nudged *n)
{
    float shifted = clamp(x, n->low, n->high) - n->low;
    return round_down(shifted * n->steps - n->zero + 0.5f) * n->scale;
}

/* One run of a channel; a loop for each rule, so that each is vectorized. */
#define DEFINE_RUN(name, one)                                             \
    static void name(tq_nudged n, const float *x, float *y, size_t count) \
    {                                                                     \
        for (size_t i = 0; i < count; i++)                                \
            y[i] = one(x[i], &n);                                         \
    }

DEFINE_RUN(tflite_run, tflite_one)
DEFINE_RUN(tensorflow_run, tensorflow_one)
DEFINE_RUN(tensorflow_channel_run, tensorflow_channel_one)

typedef struct quantizing {
    void (*run)(tq_nudged n, const float *x, float *y, size_t count);
    const tq_nudged *nudged;
    tq_axis_view view;
    const float *x;
    float *y;
} quantizing;

static void quantize_part(void *context, size_t begin, size_t end)
{
    const quantizing *q = context;
    for (tq_axis_run r = tq_axis_run_first(q->view, begin, end); r.count; tq_axis_run_next(&r, q->view, end)) {
        const tq_nudged *n = &q->nudged[r.channel];
        if (n->scale == 0)
            memset(q->y + r.at, 0, r.count * sizeof *q->y);
        else
            q->run(*n, q->x + r.at, q->y + r.at, r.count);
    }
}

void tq_fake_quant(tq_fake_quant_rule rule, bool per_channel, const tq_nudged *nudged, tq_axis_view view,
                   const float *x, int threads, float *y)
{
    quantizing q = {tflite_run, nudged, view, x, y};
    if (rule == TQ_FAKE_QUANT_TENSORFLOW)
        q.run = per_channel ? tensorflow_channel_run : tensorflow_run;
    size_t size = tq_axis_view_size(view);
    tq_parallel_for(size, GRAIN, tq_threads_for(threads, size * 8, BYTES_A_THREAD), quantize_part, &q);
}

/* ---- gradient ---- */

/* Sums of chunks, added in the order of chunks: they do not depend on threads. */
#define CHUNK ((size_t)1 << 16)
#define CHUNK_CHANNELS 256 /* elements for each channel's sums at least, which bounds their memory */

typedef struct end_sums {
    double below, above;
} end_sums;

typedef struct deriving {
    const tq_nudged *nudged;
    tq_axis_view view;
    size_t size, chunk;
    const float *dy, *x;
    float *dx;
    end_sums *table; /* [chunks][channels] */
} deriving;

static void derive_run(const tq_nudged *nudged, const float *dy, const float *x, float *dx, size_t count,
                       end_sums *sums)
{
    const tq_nudged n = *nudged; /* a copy that writes to dx cannot alias */
    bool pass = n.scale == 0;
    double below = 0, above = 0;
    for (size_t i = 0; i < count; i++) {
        float d = dy[i], v = x[i];
        dx[i] = pass || (v >= n.low && v <= n.high) ? d : 0;
        below += !pass && v < n.low ? d : 0;
        above += !pass && v > n.high ? d : 0;
    }
    sums->below += below;
    sums->above += above;
}

static void derive_chunks(void *context, size_t begin, size_t end)
{
    const deriving *d = context;
    for (size_t c = begin; c < end; c++) {
        size_t last = d->size - c * d->chunk < d->chunk ? d->size : (c + 1) * d->chunk;
        end_sums *sums = d->table + c * d->view.channels;
        for (tq_axis_run r = tq_axis_run_first(d->view, c * d->chunk, last); r.count;
             tq_axis_run_next(&r, d->view, last))
            derive_run(&d->nudged[r.channel], d->dy + r.at, d->x + r.at, d->dx + r.at, r.count, &sums[r.channel]);
    }
}

tq_status tq_fake_quant_gradient(const tq_nudged *nudged, tq_axis_view view, const float *dy, const float *x,
                                 int threads, float *dx, double *dmin, double *dmax, tq_error *error)
{
    deriving d = {nudged, view, tq_axis_view_size(view), CHUNK, dy, x, dx, NULL};
    if (view.channels > CHUNK / CHUNK_CHANNELS)
        d.chunk = view.channels < SIZE_MAX / CHUNK_CHANNELS ? view.channels * CHUNK_CHANNELS : SIZE_MAX;
    size_t chunks = d.size / d.chunk + (d.size % d.chunk != 0);
    for (size_t c = 0; c < view.channels; c++)
        dmin[c] = dmax[c] = 0;
    if (chunks == 0)
        return TQ_OK;
    d.table = calloc(chunks, view.channels * sizeof *d.table);
    if (!d.table)
        return tq_fail(error, TQ_NO_MEMORY, TQ_NO_OFFSET, "no memory for %zu sums", view.channels);
    tq_parallel_for(chunks, 1, tq_threads_for(threads, d.size * 12, BYTES_A_THREAD), derive_chunks, &d);
    for (size_t i = 0; i < chunks * view.channels; i++) {
        dmin[i % view.channels] += d.table[i].below;
        dmax[i % view.channels] += d.table[i].above;
    }
    free(d.table);
    return TQ_OK;
}
