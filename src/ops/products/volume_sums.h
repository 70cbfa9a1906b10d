/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of CONV_3D and CONV_3D_TRANSPOSE: several pixels at once, whose sums stay in registers.
 */
#ifndef TQ_OPS_PRODUCTS_VOLUME_SUMS_H
#define TQ_OPS_PRODUCTS_VOLUME_SUMS_H

#include <stddef.h>

/* The taps of a pixel that lie in the input: depth, height, width. */
typedef struct tq_volume_taps {
    const float *in, *filter; /* at the first of them */
    size_t count[3], in_step[3]; /* elements from one tap to the next */
    ptrdiff_t filter_step[3];
    size_t channels, out_channels;
    const float *bias; /* or NULL */
    float low, high;
} tq_volume_taps;

/* A rectangle of pixels that have the same taps: elements from one to the next, down and across. */
typedef struct tq_volume_pixels {
    size_t count[2], in_step[2], out_step[2];
    float *out; /* of the first */
} tq_volume_pixels;

/* out[o] of each pixel = the sum, tap by tap and within these channel by channel, of its products, and the bias,
   clamped. `taps` are those of the first pixel. */
void tq_volume_sum(const tq_volume_taps *taps, const tq_volume_pixels *pixels);

#endif
