/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference's transposed convolution of float32 images with int8 weights, by vectors of output pixels: for few
 * output channels, which fill no vectors, and for few input channels.
 *
 * Outputs whose coordinates are equal modulo the strides form a phase: they use the same taps, and neighbours read
 * neighbouring input pixels.  The input becomes a plane of floats for each channel, in which zeros surround the image;
 * so all pixels of a phase, counted through the rows of the plane, have all of its taps.  A tap of a zero adds 0 to a
 * sum, which leaves it as it is: sums begin at +0 and never become -0.  The columns of zeros give sums that nobody
 * reads.
 */
#ifndef TQ_OPS_PRODUCTS_TRANSPOSE_CONV_PIXELS_H
#define TQ_OPS_PRODUCTS_TRANSPOSE_CONV_PIXELS_H

#include "ops/products/transpose_conv_gather.h"

typedef struct tq_transpose_conv_pixels {
    const tq_transpose_conv *conv; /* of the form HYBRID */
    /* set by tq_transpose_conv_pixels_suit */
    size_t above, before; /* rows of zeros above the image; zeros before each row, and after the last one */
    size_t row, plane;    /* floats from a row to the next, and from a plane to the next */
    /* set by tq_transpose_conv_pixels_prepare: offsets in node->scratch */
    uint64_t quantized_at, channels_at, planes_at;
} tq_transpose_conv_pixels;

/* Whether vectors of pixels take less time than those of output channels.  weights: constant, as the output's shape. */
bool tq_transpose_conv_pixels_suit(tq_transpose_conv_pixels *p, const tq_transpose_conv *conv);

/* Requests memory and sets node->eval, whose function must call tq_transpose_conv_pixels_eval.
   tq_transpose_conv_pixels_suit holds. */
tq_status tq_transpose_conv_pixels_prepare(tq_node *node, tq_transpose_conv_pixels *p, tq_pack_fn pack,
                                           tq_error *error);

/* Prepacks the weights in node->prepacked. */
void tq_transpose_conv_pixels_pack(const tq_node *node, const tq_transpose_conv_pixels *p);

/* Computes output 0. */
void tq_transpose_conv_pixels_eval(const tq_node *node, const tq_transpose_conv_pixels *p);

#endif
