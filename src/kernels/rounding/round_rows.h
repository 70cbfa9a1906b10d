/* SPDX-License-Identifier: Apache-2.0
 *
 * Second-order rounding: weights are rounded for the inputs that they are multiplied with.
 *
 * A row of weights w of length K becomes v = s q with integers q, so that
 *
 *     e = (w - v) H (w - v)
 *
 * is small, H[K][K] symmetric and positive definite: the second moments of the layer's inputs, damped.
 *
 * GPTQ (Frantar et al. 2022) rounds one weight after another; the weights that are yet to be rounded compensate
 * for the error of each.  With H = R^T R, R upper triangular, and rounding from the last column to the first, that
 * is the nearest-plane algorithm of Babai: with d = w - v, e = sum over i of (R_ii d_i + sum over j > i of R_ij d_j)^2,
 * so that weight i is best at
 *
 *     q_i = round((w_i + sum over j > i of R_ij d_j / R_ii) / s)
 *
 * which needs no inverse.  Columns of large H_ii stand last, and are rounded first.
 *
 * COMQ (Zhang et al. 2024) sweeps over the weights: each becomes the best integer while the others stay.
 *
 *     q_k = round((v_k + (H (w - v))_k / H_kk) / s)
 *
 * It begins at v = w.  Before each sweep but the first the row's scale becomes the best for its integers:
 * s (v H w) / (v H v).  The same sweeps may follow GPTQ.
 *
 * round(): to the nearest, ties to even, within [least, most].  Arithmetic is float64.
 */
#ifndef TQ_KERNELS_ROUNDING_ROUND_ROWS_H
#define TQ_KERNELS_ROUNDING_ROUND_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef enum tq_rounding_method { TQ_ROUNDING_GPTQ, TQ_ROUNDING_COMQ, TQ_ROUNDING_METHODS } tq_rounding_method;

typedef struct tq_rounding {
    tq_rounding_method method;
    size_t rows, columns;    /* of weights; columns: K */
    const double *weights;   /* [rows][K], finite */
    const int64_t *order;    /* [K]: the column of the weights that H's column stands for; a permutation */
    const double *square;    /* [K][K], in that order: below the diagonal H; gptq: above and on it R */
    const double *diagonal;  /* [K]: H's */
    const float *scales;     /* [K / block][rows], above 0 */
    size_t block;            /* columns with one scale, by their place in weights; divides K */
    bool halves;             /* scales are float16 values */
    const double *factors; /* the scales to try, as multiples of `scales`; of each row the one of
                                least e, by GPTQ or COMQ's first sweep, is taken */
    size_t factor_count; /* at least 1 */
    int sweeps; /* comq: at least 1; gptq: after the rounding */
    bool refit; /* whether scales change after sweeps; not where there are blocks */
    int least, most; /* within int8 */
} tq_rounding;

/* quantized: [rows][K], in the order of weights; scales: as the argument's; errors: e [rows].  threads: at most; the
   results do not depend on it.  TQ_NO_MEMORY.  On stop (base/stop.h) results are unspecified. */
tq_status tq_round_rows(const tq_rounding *rounding, int8_t *quantized, float *scales, double *errors, int threads,
                        tq_error *error);

#endif
