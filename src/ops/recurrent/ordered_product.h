/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of float rows with matrices in the order of TFLite's float recurrent kernels, which is Eigen's on x86-64
 * without AVX.  Eigen has two routines:
 *
 *     in lanes   four partial sums, each of every fourth product; then (0 + 2) + (1 + 3), then the remaining products
 *     in turn    one sum
 *
 * The bias comes last.  "In lanes" for one row, for one channel, and where rows + channels + depth < 20.
 * Checked bit for bit against LiteRT 2.3.0 (tflite/kernels/cpu_backend_gemm_eigen.cc).
 */
#ifndef TQ_OPS_RECURRENT_ORDERED_PRODUCT_H
#define TQ_OPS_RECURRENT_ORDERED_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>

/* Whether Eigen takes the routine "in lanes"; all arguments >= 0. */
static inline bool tq_ordered_in_lanes(size_t channels, size_t rows, size_t depth)
{
    return rows == 1 || channels == 1 || channels + rows + depth < 20;
}

/* out[c] += x . (column c of w) for c < channels.  w: [depth][stride], stride >= channels; x: [depth]; any sizes >= 0.
 */
void tq_ordered_product(const float *w, size_t stride, size_t channels, const float *x, size_t depth, bool in_lanes,
                        float *out);

#endif
