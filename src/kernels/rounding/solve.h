/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of weights times square matrices and their inverses.
 */
#ifndef TQ_KERNELS_ROUNDING_SOLVE_H
#define TQ_KERNELS_ROUNDING_SOLVE_H

#include "base/status.h"

/* out[rows][n] = a[rows][n] M, with `turned`, the transpose of M, row-major [n][n]; out may be a.
   triangle: R in the upper triangle of [n][n] with H = R^T R (cholesky.h): then the result is multiplied by the inverse
   of H; NULL: it is not.  threads: at most; the result does not depend on it.  TQ_NO_MEMORY.  On stop (base/stop.h)
   the result is unspecified. */
tq_status tq_multiply_rows(const double *a, const double *turned, const double *triangle, size_t rows, size_t n,
                           double *out, int threads, tq_error *error);

#endif
