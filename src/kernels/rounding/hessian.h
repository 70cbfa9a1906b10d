/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over what a layer's weights meet: the second-order statistics that rounding of weights needs.
 *
 * A patch is the vector z of K values of the input that the weights of one output value are multiplied with, zeros of
 * the padding among them.  A layer of `groups` groups has as many vectors a position, each of its own channels.
 *
 *     products[g][a][b] += z_a z_b          sums[g][a] += z_a
 *
 * over all positions.  With the products H and the count n, the mean square error of an output value whose weights w
 * become v is (w - v) H (w - v) / n.  Sums are float64; products of float32 values are exact in it.
 */
#ifndef TQ_KERNELS_ROUNDING_HESSIAN_H
#define TQ_KERNELS_ROUNDING_HESSIAN_H

#include <stdbool.h>

#include "base/status.h"

/* An NHWC input of float32 and the places of it that a filter meets; rows of vectors are 1 x 1 pictures. */
typedef struct tq_patches {
    size_t batches, height, width, channels;
    size_t out_height, out_width;
    size_t kernel_height, kernel_width;
    size_t stride_height, stride_width;     /* at least 1 */
    size_t dilation_height, dilation_width; /* at least 1; of a transposed convolution 1 */
    size_t before_height, before_width;     /* padding */
    size_t groups;                          /* divides channels */
    bool transposed;                        /* strides are those of the output, as in TRANSPOSE_CONV */
} tq_patches;

/* K: in the order kernel row, kernel column, channel of the group. */
static inline size_t tq_patch_length(const tq_patches *p)
{
    return p->kernel_height * p->kernel_width * (p->channels / p->groups);
}

/* Adds the patches of z to products [groups][K][K], of which the lower triangle stays as it is, and sums [groups][K].
   products NULL: only sums.
   threads: at most; the sums do not depend on it.  TQ_NO_MEMORY: nothing useful was added.  On stop (base/stop.h) the
   sums are unspecified. */
tq_status tq_hessian_add(const tq_patches *patches, const float *z, double *products, double *sums, int threads,
                         tq_error *error);

/* The same of two inputs of one geometry: adds x's products to own [groups][K][K], of which the lower triangle stays as
   it is, those of x_a with y_b to cross [groups][K][K], and the patches of x and of y to sums [2][groups][K]. */
tq_status tq_hessian_add_pair(const tq_patches *patches, const float *x, const float *y, double *own, double *cross,
                              double *sums, int threads, tq_error *error);

#endif
