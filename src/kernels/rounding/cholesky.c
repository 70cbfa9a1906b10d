/* SPDX-License-Identifier: Apache-2.0
 *
 * Right-looking, in blocks of BLOCK rows: the block's rows of R, then the tiles of the rest less their products.
 */
#include "kernels/rounding/cholesky.h"

#include <math.h>

#include "base/alloc.h"
#include "base/stop.h"
#include "base/threads.h"
#include "kernels/rounding/tiles.h"

#define BLOCK ((size_t)64)
#define STRIP ((size_t)64) /* columns of a task */

typedef struct job {
    double *a;
    size_t n, first, depth; /* the block's rows: [first, first + depth) */
    double *panels;         /* of the block's rows, from column first + depth on */
    tq_tiles tiles;
} job;

/* The diagonal block; false: it is not positive definite. */
static bool factor(double *a, size_t n, size_t depth)
{
    for (size_t i = 0; i < depth; i++) {
        double pivot = a[i * n + i];
        if (!(pivot > 0) || !isfinite(pivot))
            return false;
        pivot = sqrt(pivot);
        for (size_t j = i; j < depth; j++)
            a[i * n + j] /= pivot;
        for (size_t k = i + 1; k < depth; k++)
            for (size_t j = k; j < depth; j++)
                a[k * n + j] -= a[i * n + k] * a[i * n + j];
    }
    return true;
}

/* The block's rows of R in strips [begin, end) of columns. */
static void solve(void *context, size_t begin, size_t end)
{
    job *w = context;
    const size_t behind = w->first + w->depth;
    for (size_t strip = begin; strip < end; strip++) {
        const size_t from = behind + strip * STRIP, to = from + STRIP < w->n ? from + STRIP : w->n;
        for (size_t i = 0; i < w->depth; i++) {
            double *row = w->a + (w->first + i) * w->n;
            for (size_t k = 0; k < i; k++) {
                const double *above = w->a + (w->first + k) * w->n, factor_k = above[w->first + i];
                for (size_t j = from; j < to; j++)
                    row[j] -= factor_k * above[j];
            }
            const double pivot = row[w->first + i];
            for (size_t j = from; j < to; j++)
                row[j] /= pivot;
        }
        const size_t offset = strip * STRIP;
        tq_panels_of(w->a + w->first * w->n + from, w->n, w->depth, to - from, w->panels + offset * w->depth);
        if (tq_stop_after(w->depth * w->depth * STRIP / 2))
            return;
    }
}

static void subtract_tile(void *context, size_t i, size_t j)
{
    const job *w = context;
    double tile[TQ_PANEL * TQ_PANEL];
    const size_t behind = w->first + w->depth, rest = w->n - behind;
    double *to = w->a + (behind + i * TQ_PANEL) * w->n + behind + j * TQ_PANEL;
    w->tiles.panels(w->panels + i * TQ_PANEL * w->depth, w->panels + j * TQ_PANEL * w->depth, w->depth, tile);
    for (size_t r = 0; r < TQ_PANEL && i * TQ_PANEL + r < rest; r++)
        for (size_t c = i == j ? r : 0; c < TQ_PANEL && j * TQ_PANEL + c < rest; c++)
            to[r * w->n + c] -= tile[TQ_PANEL * r + c];
}

static void subtract(void *context, size_t begin, size_t end)
{
    const job *w = context;
    tq_each_pair(tq_panel_count(w->n - w->first - w->depth), w->depth, begin, end, subtract_tile, context);
}

tq_status tq_cholesky(double *a, size_t n, int threads, bool *definite, tq_error *error)
{
    job w = {.a = a, .n = n, .tiles = tq_tiles_here()};
    *definite = true;
    tq_status status = tq_allocate(&tq_default_allocator, n + TQ_PANEL, BLOCK * sizeof(double), &w.panels, error);
    if (status)
        return status;
    for (; w.first < n && *definite && !tq_stop_now(); w.first += BLOCK) {
        w.depth = n - w.first < BLOCK ? n - w.first : BLOCK;
        *definite = factor(a + w.first * (n + 1), n, w.depth);
        const size_t rest = n - w.first - w.depth;
        if (*definite && rest) {
            const int some = tq_tile_threads(threads, (double)rest * (double)rest * (double)w.depth / 2);
            tq_parallel_for((rest + STRIP - 1) / STRIP, 1, some, solve, &w);
            tq_parallel_for(tq_square_count(tq_panel_count(rest)), 1, some, subtract, &w);
        }
    }
    tq_release(&tq_default_allocator, w.panels);
    return TQ_OK;
}
