/* SPDX-License-Identifier: Apache-2.0
 *
 * The Cholesky factor of a symmetric, positive definite matrix of float64.
 */
#ifndef TQ_KERNELS_ROUNDING_CHOLESKY_H
#define TQ_KERNELS_ROUNDING_CHOLESKY_H

#include <stdbool.h>

#include "base/status.h"

/* Replaces the upper triangle of the row-major matrix a[n][n] by R, a = R^T R; the strict lower triangle is not read
   and stays.  threads: at most; R does not depend on it.  *definite: false where a pivot is not above 0 (or is NaN),
   and R is unspecified.  TQ_NO_MEMORY. */
tq_status tq_cholesky(double *a, size_t n, int threads, bool *definite, tq_error *error);

#endif
