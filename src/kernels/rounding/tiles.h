/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of matrices of float64, in tiles of 8 x 8 and of 4 x 16: the inner loops of hessian.c, cholesky.c and
 * round_rows.c.
 *
 * Each element of a result is one sum, added up in the order of the index that is summed over, without fused
 * operations: it has the same bits under every instruction set and for any number of threads.
 *
 * A panel holds 8 columns of a matrix of `depth` rows: element (p, i) at panel[8 * p + i].
 */
#ifndef TQ_KERNELS_ROUNDING_TILES_H
#define TQ_KERNELS_ROUNDING_TILES_H

#include <stdbool.h>
#include <stddef.h>

#define TQ_PANEL 8 /* columns */
#define TQ_LANES 16 /* rows of weights that are rounded side by side */

/* out[8 i + j] = sum over p of a[8 p + i] * b[8 p + j]; a, b: panels. */
typedef void (*tq_panel_product_fn)(const double *a, const double *b, size_t depth, double *out);

/* out[16 i + l] += sum over p of a[i * stride + p * step] * b[16 p + l], for i below `rows`. */
typedef void (*tq_lane_product_fn)(const double *a, size_t stride, size_t step, size_t rows, const double *b,
                                   size_t depth, double *out);

/* The functions for this machine. */
typedef struct tq_tiles {
    tq_panel_product_fn panels;
    tq_lane_product_fn lanes;
} tq_tiles;
tq_tiles tq_tiles_here(void);

/* Copies columns [0, columns) of a row-major matrix of `depth` rows into panels, one after the other: the last is
   filled up with zeros.  stride: of the matrix's rows. */
void tq_panels_of(const double *matrix, size_t stride, size_t depth, size_t columns, double *panels);

static inline size_t tq_panel_count(size_t columns)
{
    return (columns + TQ_PANEL - 1) / TQ_PANEL;
}

/* Threads for `terms` products and sums, at most `wanted`: fewer would wait for each other longer than they work. */
int tq_tile_threads(int wanted, double terms);

/* Pairs (i, j) of panels, i <= j < count, are divided into squares of several panels a side, each a task of its own. */
size_t tq_square_count(size_t count);

/* Calls tile(context, i, j) for the pairs in squares [begin, end), end <= tq_square_count(count).  depth: of the
   panels, which tells how soon Ctrl-C is looked for. */
void tq_each_pair(size_t count, size_t depth, size_t begin, size_t end, void (*tile)(void *context, size_t i, size_t j),
                  void *context);

#endif
