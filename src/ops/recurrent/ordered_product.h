/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of float rows with matrices in the order in which the runtime's float recurrent kernels add: Eigen's on
 * x86-64 without AVX, from one of two routines.
 *
 *     in lanes   four sums, of every fourth product; then (0 + 2) + (1 + 3), then what is left, one by one
 *     in turn    one sum
 *
 * and the bias last.  In lanes where a matrix meets one row, or has one; or rows, columns and depth are below 20 in
 * all.
 * Checked bit for bit against LiteRT 2.3.0 (tflite/kernels/cpu_backend_gemm_eigen.cc).
 */
#ifndef TQ_OPS_RECURRENT_ORDERED_PRODUCT_H
#define TQ_OPS_RECURRENT_ORDERED_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>

static inline bool tq_ordered_in_lanes(size_t channels, size_t rows, size_t depth)
{
    return rows == 1 || channels == 1 || channels + rows + depth < 20;
}

/* out[c] += x . (column c of w [depth][stride], its first `channels` columns). */
void tq_ordered_product(const float *w, size_t stride, size_t channels, const float *x, size_t depth, bool in_lanes,
                        float *out);

#endif
