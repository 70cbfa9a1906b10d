/* SPDX-License-Identifier: Apache-2.0
 *
 * TQ_LANES rows are rounded side by side; blocks of BLOCK columns take over errors of other blocks by products of
 * matrices.
 */
#include "kernels/rounding/round_rows.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/stop.h"
#include "base/threads.h"
#include "kernels/half.h"
#include "kernels/rounding/tiles.h"

#define BLOCK ((size_t)32)

/* TQ_LANES rows; arrays are [K][TQ_LANES], in H's order. */
typedef struct lanes {
    const tq_rounding *r;
    tq_tiles tiles;
    double *w;        /* weights */
    double *v;        /* rounded weights */
    double *g;        /* H (w - v); gptq: w - v, as far as it is known */
    double *hw;       /* H w */
    double *change;   /* of v, in a block */
    double *block;    /* H's block on the diagonal, [BLOCK][BLOCK] */
    float *s;         /* [K / block][TQ_LANES] */
    double e[TQ_LANES];
} lanes;

static const float *scales_of(const lanes *x, size_t k)
{
    return x->s + (size_t)x->r->order[k] / x->r->block * TQ_LANES;
}

/* The multiple of s nearest to t, within the range. */
static inline double nearest(const tq_rounding *r, double t, double s)
{
    const double q = rint(t / s);
    return (q > r->least ? q < r->most ? q : r->most : r->least) * s;
}

/* ---- gptq ---- */

static void round_gptq(lanes *x)
{
    const tq_rounding *r = x->r;
    const size_t n = r->columns;
    memset(x->e, 0, sizeof x->e);
    for (size_t end = n; end > 0; end = (end - 1) / BLOCK * BLOCK) {
        const size_t begin = (end - 1) / BLOCK * BLOCK;
        double taken[BLOCK * TQ_LANES] = {0};
        x->tiles.lanes(r->square + begin * n + end, n, 1, end - begin, x->g + end * TQ_LANES, n - end, taken);
        for (size_t i = end; i-- > begin;) {
            const double *row = r->square + i * n, pivot = row[i];
            double *sum = taken + (i - begin) * TQ_LANES;
            for (size_t j = i + 1; j < end; j++)
                for (size_t l = 0; l < TQ_LANES; l++)
                    sum[l] += row[j] * x->g[j * TQ_LANES + l];
            const float *s = scales_of(x, i);
            for (size_t l = 0; l < TQ_LANES; l++) {
                const size_t at = i * TQ_LANES + l;
                const double t = x->w[at] + sum[l] / pivot, v = nearest(r, t, (double)s[l]);
                x->v[at] = v;
                x->g[at] = x->w[at] - v;
                x->e[l] += pivot * pivot * (t - v) * (t - v);
            }
        }
        if (tq_stop_after((end - begin) * (n - begin) * TQ_LANES))
            return;
    }
}

/* ---- comq ---- */

/* Fills x->block with H's rows and columns [begin, end). */
static void take_block(const lanes *x, size_t begin, size_t end)
{
    const tq_rounding *r = x->r;
    for (size_t i = begin; i < end; i++) {
        double *row = x->block + (i - begin) * BLOCK;
        for (size_t j = begin; j < i; j++)
            row[j - begin] = x->block[(j - begin) * BLOCK + i - begin] = r->square[i * r->columns + j];
        row[i - begin] = r->diagonal[i];
    }
}

/* out = H in.  What is right of the block on the diagonal stands below it, turned. */
static void multiply(const lanes *x, const double *in, double *out)
{
    const size_t n = x->r->columns;
    const double *square = x->r->square;
    memset(out, 0, n * TQ_LANES * sizeof *out);
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t rows = n - i < BLOCK ? n - i : BLOCK, end = i + rows;
        double *to = out + i * TQ_LANES;
        take_block(x, i, end);
        x->tiles.lanes(square + i * n, n, 1, rows, in, i, to);
        x->tiles.lanes(x->block, BLOCK, 1, rows, in + i * TQ_LANES, rows, to);
        x->tiles.lanes(square + end * n + i, 1, n, rows, in + end * TQ_LANES, n - end, to);
        if (tq_stop_after(rows * n * TQ_LANES))
            return;
    }
}

/* g = H (w - v), with `change` as room. */
static void find_gradient(lanes *x)
{
    double *difference = x->change;
    for (size_t i = 0; i < x->r->columns * TQ_LANES; i++)
        difference[i] = x->w[i] - x->v[i];
    multiply(x, difference, x->g);
}

/* One weight after another, from large H_kk to small ones. */
static void sweep(lanes *x)
{
    const tq_rounding *r = x->r;
    const size_t n = r->columns;
    for (size_t end = n; end > 0; end = (end - 1) / BLOCK * BLOCK) {
        const size_t begin = (end - 1) / BLOCK * BLOCK;
        take_block(x, begin, end);
        for (size_t k = end; k-- > begin;) {
            const double *row = x->block + (k - begin) * BLOCK;
            const float *s = scales_of(x, k);
            double *change = x->change + (k - begin) * TQ_LANES;
            for (size_t l = 0; l < TQ_LANES; l++) {
                double *v = x->v + k * TQ_LANES + l;
                const double new = nearest(r, *v + x->g[k * TQ_LANES + l] / row[k - begin], (double)s[l]);
                change[l] = *v - new;
                *v = new;
            }
            for (size_t j = begin; j < end; j++)
                for (size_t l = 0; l < TQ_LANES; l++)
                    x->g[j * TQ_LANES + l] += row[j - begin] * change[l];
        }
        x->tiles.lanes(r->square + begin * n, 1, n, begin, x->change, end - begin, x->g);
        x->tiles.lanes(r->square + end * n + begin, n, 1, n - end, x->change, end - begin, x->g + end * TQ_LANES);
        if (tq_stop_after((end - begin) * n * TQ_LANES))
            return;
    }
}

/* The best scale of each row for its integers. */
static void refit(lanes *x)
{
    const size_t n = x->r->columns;
    double over[TQ_LANES] = {0}, under[TQ_LANES] = {0}, factor[TQ_LANES];
    for (size_t k = 0; k < n; k++)
        for (size_t l = 0; l < TQ_LANES; l++) {
            const size_t at = k * TQ_LANES + l;
            over[l] += x->v[at] * x->hw[at];
            under[l] += x->v[at] * (x->hw[at] - x->g[at]);
        }
    for (size_t l = 0; l < TQ_LANES; l++) {
        const float old = x->s[l], new = under[l] > 0 ? (float)((double)old * (over[l] / under[l])) : old;
        const bool fits = isnormal(new) && new > 0;
        factor[l] = fits ? (double)new / (double)old : 1;
        x->s[l] = fits ? new : old;
    }
    for (size_t k = 0; k < n; k++)
        for (size_t l = 0; l < TQ_LANES; l++) {
            const size_t at = k * TQ_LANES + l;
            x->g[at] = x->hw[at] - factor[l] * (x->hw[at] - x->g[at]);
            x->v[at] *= factor[l];
        }
}

static void find_errors(lanes *x)
{
    memset(x->e, 0, sizeof x->e);
    for (size_t k = 0; k < x->r->columns; k++)
        for (size_t l = 0; l < TQ_LANES; l++)
            x->e[l] += (x->w[k * TQ_LANES + l] - x->v[k * TQ_LANES + l]) * x->g[k * TQ_LANES + l];
}

/* ---- all ---- */

/* The first rounding with a set of scales. */
static void round_once(lanes *x)
{
    if (x->r->method == TQ_ROUNDING_GPTQ) {
        round_gptq(x);
        return;
    }
    memcpy(x->v, x->w, x->r->columns * TQ_LANES * sizeof *x->v);
    memset(x->g, 0, x->r->columns * TQ_LANES * sizeof *x->g);
    sweep(x);
    find_errors(x);
}

/* Sweeps over rounded weights. */
static void improve(lanes *x, int sweeps)
{
    find_gradient(x);
    if (x->r->refit)
        multiply(x, x->w, x->hw);
    for (int i = 0; i < sweeps && !tq_stop_now(); i++) {
        if (x->r->refit)
            refit(x);
        sweep(x);
    }
    find_errors(x);
}

typedef struct job {
    const tq_rounding *r;
    int8_t *quantized;
    float *scales;
    double *errors;
    atomic_bool no_memory;
} job;

/* The scales of the rows from `first` on, times a factor; 1 for lanes without a row. */
static void set_scales(lanes *x, size_t first, double factor)
{
    const tq_rounding *r = x->r;
    for (size_t b = 0; b < r->columns / r->block; b++)
        for (size_t l = 0; l < TQ_LANES; l++) {
            const float base = first + l < r->rows ? r->scales[b * r->rows + first + l] : 1;
            float s = (float)((double)base * factor);
            s = r->halves ? tq_half_to_float(tq_float_to_half(s)) : s;
            x->s[b * TQ_LANES + l] = isnormal(s) ? s : base;
        }
}

static void keep(const lanes *x, const job *w, size_t first, size_t l)
{
    const tq_rounding *r = x->r;
    for (size_t k = 0; k < r->columns; k++)
        w->quantized[(first + l) * r->columns + (size_t)r->order[k]] =
            (int8_t)rint(x->v[k * TQ_LANES + l] / (double)scales_of(x, k)[l]);
    for (size_t b = 0; b < r->columns / r->block; b++)
        w->scales[b * r->rows + first + l] = x->s[b * TQ_LANES + l];
    w->errors[first + l] = x->e[l];
}

/* The weights and scales that were kept. */
static void take(lanes *x, const job *w, size_t first)
{
    const tq_rounding *r = x->r;
    set_scales(x, first, 1);
    for (size_t l = 0; l < TQ_LANES && first + l < r->rows; l++) {
        for (size_t b = 0; b < r->columns / r->block; b++)
            x->s[b * TQ_LANES + l] = w->scales[b * r->rows + first + l];
        for (size_t k = 0; k < r->columns; k++)
            x->v[k * TQ_LANES + l] =
                w->quantized[(first + l) * r->columns + (size_t)r->order[k]] * (double)scales_of(x, k)[l];
    }
}

/* Rounds the rows from `first` on, with one factor after the other, and sweeps over the best. */
static void round_some(lanes *x, const job *w, size_t first)
{
    const tq_rounding *r = w->r;
    for (size_t k = 0; k < r->columns; k++)
        for (size_t l = 0; l < TQ_LANES; l++)
            x->w[k * TQ_LANES + l] =
                first + l < r->rows ? r->weights[(first + l) * r->columns + (size_t)r->order[k]] : 0;
    for (size_t f = 0; f < r->factor_count; f++) {
        set_scales(x, first, r->factors[f]);
        round_once(x);
        if (tq_stop_now())
            return;
        for (size_t l = 0; l < TQ_LANES && first + l < r->rows; l++)
            if (f == 0 || x->e[l] < w->errors[first + l])
                keep(x, w, first, l);
    }
    const int sweeps = r->method == TQ_ROUNDING_COMQ ? r->sweeps - 1 : r->sweeps;
    if (sweeps <= 0)
        return;
    memset(x->v, 0, r->columns * TQ_LANES * sizeof *x->v);
    take(x, w, first);
    improve(x, sweeps);
    for (size_t l = 0; l < TQ_LANES && first + l < r->rows && !tq_stop_now(); l++)
        if (x->e[l] < w->errors[first + l])
            keep(x, w, first, l);
}

static void round_range(void *context, size_t begin, size_t end)
{
    job *w = context;
    const tq_rounding *r = w->r;
    const size_t size = r->columns * TQ_LANES, scale_size = r->columns / r->block * TQ_LANES;
    double *room;
    tq_error error;
    if (tq_allocate(&tq_default_allocator, 5 * size + scale_size + BLOCK * (TQ_LANES + BLOCK), sizeof *room, &room,
                    &error)) {
        atomic_store(&w->no_memory, true);
        return;
    }
    lanes x = {.r = r, .tiles = tq_tiles_here(), .w = room, .v = room + size, .g = room + 2 * size};
    x.hw = room + 3 * size;
    x.change = room + 4 * size;
    x.block = room + 5 * size + BLOCK * TQ_LANES;
    x.s = (float *)(x.block + BLOCK * BLOCK);
    for (size_t at = begin; at < end && !tq_stop_now(); at++)
        round_some(&x, w, at * TQ_LANES);
    tq_release(&tq_default_allocator, room);
}

tq_status tq_round_rows(const tq_rounding *rounding, int8_t *quantized, float *scales, double *errors, int threads,
                        tq_error *error)
{
    job w = {.r = rounding, .quantized = quantized, .scales = scales, .errors = errors};
    const double square = (double)rounding->columns * (double)rounding->columns;
    const double terms = square * (double)rounding->rows * (double)rounding->factor_count * 2;
    if (rounding->rows && rounding->columns)
        tq_parallel_for((rounding->rows + TQ_LANES - 1) / TQ_LANES, 1, tq_tile_threads(threads, terms), round_range,
                        &w);
    return atomic_load(&w.no_memory) ? tq_fail(error, TQ_NO_MEMORY, TQ_NO_OFFSET, "no memory") : TQ_OK;
}
