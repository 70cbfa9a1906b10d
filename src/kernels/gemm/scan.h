/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a filter lies on an image: the geometry that convolutions share.
 *
 * Output pixel (y, x) and tap (i, j) meet input pixel (y * stride_h - pad_h + i * dilation_h, and so for x);
 * a tap outside the image is padding and counts as real 0.  Images are [batch][in_h][in_w][channels].
 */
#ifndef TQ_KERNELS_SCAN_H
#define TQ_KERNELS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tq_scan {
    int32_t in_h, in_w, out_h, out_w;  /* each > 0 */
    int32_t filter_h, filter_w;        /* each > 0 */
    int32_t stride_h, stride_w, dilation_h, dilation_w; /* each > 0; of products in the order of kernels/gemm/gemm.h,
                                                           dilations may be below: then taps go up and to the left */
    int32_t pad_h, pad_w;              /* rows above, columns to the left; may be negative */
    bool columns_first; /* the order of taps: all i of j = 0, then j = 1 ...; else all j of i = 0 ... */
} tq_scan;

static inline size_t tq_scan_taps(const tq_scan *w)
{
    return (size_t)w->filter_h * (size_t)w->filter_w;
}

/* Whether each output pixel reads the input pixel of the same number, and no other. */
static inline bool tq_scan_is_plain(const tq_scan *w)
{
    return w->filter_h == 1 && w->filter_w == 1 && w->stride_h == 1 && w->stride_w == 1 && w->pad_h == 0 &&
           w->pad_w == 0 && w->in_h == w->out_h && w->in_w == w->out_w;
}

/* taps[t * step + i] = the pixel that tap t of output pixel at + i, i < count, counted over all images, reads in
   `images`, whose pixels are `stride` bytes apart; or `padding`. */
void tq_scan_pixels(const tq_scan *w, const void *images, size_t stride, size_t at, size_t count, const void *padding,
                    const void **taps, size_t step);

#endif
