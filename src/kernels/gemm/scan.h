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
    int32_t in_h, in_w, out_h, out_w;  /* pixels; each > 0 */
    int32_t filter_h, filter_w;        /* taps; each > 0 */
    int32_t stride_h, stride_w;        /* pixels; each > 0 */
    int32_t dilation_h, dilation_w;    /* pixels; > 0, or < 0: taps go up and to the left */
    int32_t pad_h, pad_w;              /* rows above, columns to the left; any sign */
    bool columns_first; /* order of taps: column by column (j outer, i inner); false: row by row */
} tq_scan;

/* Taps of the filter. */
static inline size_t tq_scan_taps(const tq_scan *w)
{
    return (size_t)w->filter_h * (size_t)w->filter_w;
}

/* Whether output pixel n reads input pixel n and no other. */
static inline bool tq_scan_is_plain(const tq_scan *w)
{
    return w->filter_h == 1 && w->filter_w == 1 && w->stride_h == 1 && w->stride_w == 1 && w->pad_h == 0 &&
           w->pad_w == 0 && w->in_h == w->out_h && w->in_w == w->out_w;
}

/* Fills the indirection buffer: taps[t * step + i], i < count, points to the input pixel that tap t of output pixel
   at + i reads, or to `padding`.  Output pixels are counted over all images; pixels of `images` lie `stride` bytes
   apart; step >= count. */
void tq_scan_pixels(const tq_scan *w, const void *images, size_t stride, size_t at, size_t count, const void *padding,
                    const void **taps, size_t step);

/* taps[i] = first + i * step bytes, for i < n. */
void tq_scan_line(const void **taps, size_t n, const void *first, size_t step);

#endif
