/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/measure.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/threads.h"
#include "quant/real_values.h"

#define LANES 8
#define BUFFER 512             /* elements read at a time: two buffers of 4 KiB */
#define CHUNK ((size_t)1 << 16) /* elements summed before sums are added to others */
#define CHUNK_CHANNELS 256     /* elements for each channel's sums at least, which bounds their memory */
#define BYTES_A_THREAD 524288  /* below it, another thread costs more than it brings */

/* What a kind adds up: MSE d^2; SQNR_DB d^2, x^2; COSINE xy, x^2, y^2; MAX_ERROR the greatest |d|. */
typedef struct sums {
    double a, b, c;
} sums;

typedef struct wide_sums {
    long double a, b, c;
} wide_sums;

/* Adds n elements to the one set of sums, or, `apart`, each to its own. */
typedef void (*adder)(const double *x, const double *y, size_t n, bool apart, void *sums);

/* ---- adding doubles, in lanes ---- */

static double sum_of_lanes(const double *lane)
{
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

#define MSE_TERMS(x, y, A, B, C) (A) += ((x) - (y)) * ((x) - (y))
#define SQNR_TERMS(x, y, A, B, C) (A) += ((x) - (y)) * ((x) - (y)), (B) += (x) * (x)
#define COSINE_TERMS(x, y, A, B, C) (A) += (x) * (y), (B) += (x) * (x), (C) += (y) * (y)

#define DEFINE_ADDER(name, TERMS)                                                                 \
    static void name(const double *x, const double *y, size_t n, bool apart, void *memory)        \
    {                                                                                             \
        sums *s = memory;                                                                         \
        double a[LANES] = {0}, b[LANES] = {0}, c[LANES] = {0};                                    \
        size_t i = 0;                                                                             \
        for (; apart && i < n; i++)                                                               \
            TERMS(x[i], y[i], s[i].a, s[i].b, s[i].c);                                            \
        for (; i + LANES <= n; i += LANES)                                                        \
            for (int k = 0; k < LANES; k++)                                                       \
                TERMS(x[i + k], y[i + k], a[k], b[k], c[k]);                                      \
        for (int k = 0; i < n; i++, k++)                                                          \
            TERMS(x[i], y[i], a[k], b[k], c[k]);                                                  \
        if (apart)                                                                                \
            return;                                                                               \
        s->a += sum_of_lanes(a);                                                                  \
        s->b += sum_of_lanes(b);                                                                  \
        s->c += sum_of_lanes(c);                                                                  \
    }                                                                                             \
    static void wide_##name(const double *x, const double *y, size_t n, bool apart, void *memory) \
    {                                                                                             \
        for (size_t i = 0; i < n; i++) {                                                          \
            wide_sums *s = (wide_sums *)memory + (apart ? i : 0);                                 \
            const long double u = x[i], v = y[i];                                                 \
            TERMS(u, v, s->a, s->b, s->c);                                                        \
        }                                                                                         \
    }

DEFINE_ADDER(add_mse, MSE_TERMS)
DEFINE_ADDER(add_sqnr, SQNR_TERMS)
DEFINE_ADDER(add_cosine, COSINE_TERMS)

/* NaN, once come, stays. */
static inline double greater(double greatest, double d)
{
    return d <= greatest || greatest != greatest ? greatest : d;
}

/* The greatest |d| of n; NaN if there is one.  d != d is added up beside, as comparisons pass over it. */
static double greatest_of(const double *x, const double *y, size_t n)
{
    double most[LANES] = {0}, nan[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            double d = fabs(x[i + k] - y[i + k]);
            most[k] = d > most[k] ? d : most[k];
            nan[k] += d != d;
        }
    for (int k = 0; i < n; i++, k++)
        most[k] = greater(most[k], fabs(x[i] - y[i]));
    for (int k = 1; k < LANES; k++)
        most[0] = greater(most[0], most[k]);
    return sum_of_lanes(nan) > 0 ? NAN : most[0];
}

static void add_max(const double *x, const double *y, size_t n, bool apart, void *memory)
{
    sums *s = memory;
    for (size_t i = 0; apart && i < n; i++)
        s[i].a = greater(s[i].a, fabs(x[i] - y[i]));
    if (!apart)
        s->a = greater(s->a, greatest_of(x, y, n));
}

/* ---- the walk ---- */

typedef struct dimension {
    size_t n;
    ptrdiff_t x, y;
    bool is_axis;
} dimension;

typedef struct walk {
    const char *x, *y;
    tq_real_loader load_x, load_y;
    dimension dims[TQ_MEASURE_MAX_RANK + 1]; /* the last is walked by loads */
    int rank;                                /* at least 1 */
    size_t size, channels, chunk;
    adder add;
    size_t sums_size;
    char *table; /* [chunks][channels] sums */
} walk;

static ptrdiff_t reach(const dimension *d)
{
    return (d->x < 0 ? -d->x : d->x) + (d->y < 0 ? -d->y : d->y);
}

static bool join(const dimension *outer, const dimension *inner)
{
    return !outer->is_axis && !inner->is_axis && outer->x == inner->x * (ptrdiff_t)inner->n &&
           outer->y == inner->y * (ptrdiff_t)inner->n;
}

/* The dimensions in the order of memory, neighbours joined where they are one. */
static void find_dimensions(walk *w, const tq_measure_shape *shape, const tq_measured *x, const tq_measured *y)
{
    dimension sorted[TQ_MEASURE_MAX_RANK];
    int count = 0;
    for (int i = 0; i < shape->rank; i++) {
        dimension d = {shape->dims[i], x->strides[i], y->strides[i], i == shape->axis};
        int at = count;
        if (d.n == 1)
            continue;
        for (; at > 0 && reach(&sorted[at - 1]) < reach(&d); at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = d;
        count++;
    }
    w->rank = 0;
    for (int i = 0; i < count; i++) {
        dimension *last = w->rank ? &w->dims[w->rank - 1] : NULL;
        if (last && join(last, &sorted[i]))
            *last = (dimension){last->n * sorted[i].n, sorted[i].x, sorted[i].y, false};
        else
            w->dims[w->rank++] = sorted[i];
    }
    if (w->rank == 0)
        w->dims[w->rank++] = (dimension){1, 0, 0, false};
}

/* Where a row begins. */
typedef struct position {
    const char *x, *y;
    size_t channel;
} position;

static position position_of(const walk *w, size_t row)
{
    position p = {w->x, w->y, 0};
    for (int i = w->rank - 2; i >= 0; i--) {
        const dimension *d = &w->dims[i];
        size_t at = row % d->n;
        row /= d->n;
        p.x += (ptrdiff_t)at * d->x;
        p.y += (ptrdiff_t)at * d->y;
        p.channel += d->is_axis ? at : 0;
    }
    return p;
}

/* n elements of a row from the offset on. */
static void add_run(const walk *w, const position *p, size_t offset, size_t n, char *table)
{
    const dimension *d = &w->dims[w->rank - 1];
    double x[BUFFER], y[BUFFER];
    for (size_t end = offset + n; offset < end; offset += BUFFER) {
        size_t part = end - offset < BUFFER ? end - offset : BUFFER;
        w->load_x(p->x + (ptrdiff_t)offset * d->x, d->x, part, x);
        w->load_y(p->y + (ptrdiff_t)offset * d->y, d->y, part, y);
        w->add(x, y, part, d->is_axis, table + (p->channel + (d->is_axis ? offset : 0)) * w->sums_size);
    }
}

static void walk_chunks(void *context, size_t begin, size_t end)
{
    const walk *w = context;
    size_t length = w->dims[w->rank - 1].n;
    for (size_t c = begin; c < end; c++) {
        char *table = w->table + c * w->channels * w->sums_size;
        size_t last = w->size - c * w->chunk < w->chunk ? w->size : (c + 1) * w->chunk;
        for (size_t at = c * w->chunk; at < last;) {
            size_t offset = at % length, left = length - offset, n = left < last - at ? left : last - at;
            position p = position_of(w, at / length);
            add_run(w, &p, offset, n, table);
            at += n;
        }
    }
}

/* ---- from sums to measures ---- */

static double measure_of(tq_measure_kind kind, const wide_sums *s, size_t n)
{
    switch (kind) {
    case TQ_MEASURE_MSE: return (double)(s->a / (long double)n); /* 0 / 0 is NaN */
    case TQ_MEASURE_MAX_ERROR: return (double)s->a;
    case TQ_MEASURE_SQNR_DB:
        if (n == 0)
            return NAN;
        return s->a == 0 ? (double)INFINITY : (double)(10 * log10l(s->b / s->a));
    case TQ_MEASURE_COSINE: {
        double cosine = (double)(s->a / (sqrtl(s->b) * sqrtl(s->c)));
        return cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
    }
    case TQ_MEASURES: break;
    }
    return NAN;
}

/* Whether a sum of squares may have left double's range, or lost what is below it. */
static bool is_non_finite(const wide_sums *s, tq_measure_kind kind)
{
    const long double low = 1e-270L, high = 1e300L;
    bool a = !(s->a >= low && s->a <= high), b = !(s->b >= low && s->b <= high), c = !(s->c >= low && s->c <= high);
    switch (kind) {
    case TQ_MEASURE_MSE: return a;
    case TQ_MEASURE_SQNR_DB: return a || b;
    case TQ_MEASURE_COSINE: return b || c;
    default: return false;
    }
}

static size_t count_chunks(const walk *w)
{
    return w->size / w->chunk + (w->size % w->chunk != 0);
}

static wide_sums total_of(const walk *w, tq_measure_kind kind, size_t channel)
{
    wide_sums total = {0, 0, 0};
    double greatest = 0;
    for (size_t c = 0; c < count_chunks(w); c++) {
        const char *at = w->table + (c * w->channels + channel) * w->sums_size;
        wide_sums one;
        sums narrow;
        if (w->sums_size == sizeof one)
            memcpy(&one, at, sizeof one);
        else {
            memcpy(&narrow, at, sizeof narrow);
            one = (wide_sums){narrow.a, narrow.b, narrow.c};
            greatest = greater(greatest, narrow.a);
        }
        total = (wide_sums){total.a + one.a, total.b + one.b, total.c + one.c};
    }
    if (kind == TQ_MEASURE_MAX_ERROR)
        total.a = greatest;
    return total;
}

static tq_status sum_up(walk *w, adder add, size_t sums_size, int threads, tq_error *error)
{
    uint64_t bytes;
    w->add = add;
    w->sums_size = sums_size;
    bool fits = tq_mul_u64(count_chunks(w), w->channels, &bytes) && tq_mul_u64(bytes, sums_size, &bytes);
    w->table = fits && bytes <= SIZE_MAX - 1 ? calloc(1, (size_t)bytes + 1) : NULL;
    if (!w->table)
        return tq_fail(error, TQ_NO_MEMORY, TQ_NO_OFFSET, "no memory for %zu sums", w->channels);
    tq_parallel_for(count_chunks(w), 1, threads, walk_chunks, w);
    return TQ_OK;
}

/* Writes every measure; true if a second pass in long doubles may tell more. */
static bool finish(walk *w, tq_measure_kind kind, double *out)
{
    bool non_finite = false;
    for (size_t i = 0; i < w->channels; i++) {
        wide_sums total = total_of(w, kind, i);
        non_finite |= is_non_finite(&total, kind);
        out[i] = measure_of(kind, &total, w->size / w->channels);
    }
    free(w->table);
    w->table = NULL;
    return non_finite;
}

tq_status tq_measure(tq_measure_kind kind, const tq_measure_shape *shape, const tq_measured *x, const tq_measured *y,
                     int threads, double *out, tq_error *error)
{
    static const adder adders[TQ_MEASURES] = {[TQ_MEASURE_SQNR_DB] = add_sqnr,
                                              [TQ_MEASURE_MSE] = add_mse,
                                              [TQ_MEASURE_MAX_ERROR] = add_max,
                                              [TQ_MEASURE_COSINE] = add_cosine};
    static const adder wide[TQ_MEASURES] = {
        [TQ_MEASURE_SQNR_DB] = wide_add_sqnr, [TQ_MEASURE_MSE] = wide_add_mse, [TQ_MEASURE_COSINE] = wide_add_cosine};
    walk w = {.x = x->data,
              .y = y->data,
              .load_x = tq_real_loader_of(x->type),
              .load_y = tq_real_loader_of(y->type),
              .size = 1,
              .channels = 1,
              .chunk = CHUNK};
    find_dimensions(&w, shape, x, y);
    for (int i = 0; i < shape->rank; i++)
        w.size *= shape->dims[i];
    if (shape->axis >= 0)
        w.channels = shape->dims[shape->axis];
    if (w.channels == 0)
        return TQ_OK;
    if (w.channels > CHUNK / CHUNK_CHANNELS)
        w.chunk = w.channels < SIZE_MAX / CHUNK_CHANNELS ? w.channels * CHUNK_CHANNELS : SIZE_MAX;
    threads = tq_threads_for(threads, 8 * w.size, BYTES_A_THREAD); /* two operands of, say, 4 bytes */
    tq_status status = sum_up(&w, adders[kind], sizeof(sums), threads, error);
    if (status)
        return status;
    bool is_wide = x->type == TQ_REAL_F64 || y->type == TQ_REAL_F64;
    if (finish(&w, kind, out) && is_wide) {
        status = sum_up(&w, wide[kind], sizeof(wide_sums), threads, error);
        if (!status)
            finish(&w, kind, out);
    }
    return status;
}
