/* SPDX-License-Identifier: Apache-2.0
 *
 * TQ_LANES rows side by side, as [n][TQ_LANES].
 */
#include "kernels/rounding/solve.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/stop.h"
#include "base/threads.h"
#include "kernels/rounding/tiles.h"

typedef struct job {
    const double *a, *turned, *triangle;
    size_t rows, n;
    double *out;
    tq_tiles tiles;
    atomic_bool no_memory;
} job;

/* x = y R^-1, in place. */
static void solve_forward(const job *w, double *x)
{
    for (size_t i = 0; i < w->n && !tq_stop_after(w->n * TQ_LANES); i++) {
        const double *row = w->triangle + i * w->n;
        double *at = x + i * TQ_LANES;
        for (size_t l = 0; l < TQ_LANES; l++)
            at[l] /= row[i];
        for (size_t j = i + 1; j < w->n; j++)
            for (size_t l = 0; l < TQ_LANES; l++)
                x[j * TQ_LANES + l] -= row[j] * at[l];
    }
}

/* x = y R^-T, in place. */
static void solve_backward(const job *w, double *x)
{
    for (size_t i = w->n; i-- > 0 && !tq_stop_after(w->n * TQ_LANES);) {
        const double *row = w->triangle + i * w->n;
        double sum[TQ_LANES] = {0}, *at = x + i * TQ_LANES;
        w->tiles.lanes(row + i + 1, w->n, 1, 1, x + (i + 1) * TQ_LANES, w->n - i - 1, sum);
        for (size_t l = 0; l < TQ_LANES; l++)
            at[l] = (at[l] - sum[l]) / row[i];
    }
}

static void multiply_some(const job *w, size_t first, double *in, double *x)
{
    const size_t n = w->n, count = w->rows - first < TQ_LANES ? w->rows - first : TQ_LANES;
    memset(in, 0, n * TQ_LANES * sizeof *in);
    memset(x, 0, n * TQ_LANES * sizeof *x);
    for (size_t l = 0; l < count; l++)
        for (size_t k = 0; k < n; k++)
            in[k * TQ_LANES + l] = w->a[(first + l) * n + k];
    for (size_t i = 0; i < n && !tq_stop_after(n * TQ_LANES); i++)
        w->tiles.lanes(w->turned + i * n, n, 1, 1, in, n, x + i * TQ_LANES);
    if (w->triangle) {
        solve_forward(w, x);
        solve_backward(w, x);
    }
    for (size_t l = 0; l < count; l++)
        for (size_t k = 0; k < n; k++)
            w->out[(first + l) * n + k] = x[k * TQ_LANES + l];
}

static void multiply_range(void *context, size_t begin, size_t end)
{
    job *w = context;
    double *room;
    tq_error error;
    if (tq_allocate(&tq_default_allocator, 2 * w->n, TQ_LANES * sizeof *room, &room, &error)) {
        atomic_store(&w->no_memory, true);
        return;
    }
    for (size_t at = begin; at < end && !tq_stop_now(); at++)
        multiply_some(w, at * TQ_LANES, room, room + w->n * TQ_LANES);
    tq_release(&tq_default_allocator, room);
}

tq_status tq_multiply_rows(const double *a, const double *turned, const double *triangle, size_t rows, size_t n,
                           double *out, int threads, tq_error *error)
{
    job w = {.a = a, .turned = turned, .triangle = triangle, .rows = rows, .n = n, .out = out};
    w.tiles = tq_tiles_here();
    const double terms = (double)rows * (double)n * (double)n;
    if (rows && n)
        tq_parallel_for((rows + TQ_LANES - 1) / TQ_LANES, 1, tq_tile_threads(threads, terms), multiply_range, &w);
    return atomic_load(&w.no_memory) ? tq_fail(error, TQ_NO_MEMORY, TQ_NO_OFFSET, "no memory") : TQ_OK;
}
