/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of CONV_3D: several pixels side by side, whose sums stay in registers.
 */
#ifndef TQ_OPS_PRODUCTS_VOLUME_SUMS_H
#define TQ_OPS_PRODUCTS_VOLUME_SUMS_H

#include <stddef.h>

/* The taps of a pixel that lie in the input: depth, height, width. */
typedef struct tq_volume_taps {
    const float *in, *filter; /* at the first of them */
    size_t count[3];
    size_t in_step[3], filter_step[3]; /* elements from one tap to the next */
    size_t channels, out_channels;
} tq_volume_taps;

/* out[p][o] = the sum, tap by tap and within these channel by channel, of the products of pixel p, for p < pixels; its
   input lies `step` elements behind that of the pixel before, and it has the same taps. */
void tq_volume_sum(const tq_volume_taps *taps, size_t pixels, size_t step, float *out);

#endif
