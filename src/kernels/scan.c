/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/scan.h"

#include <string.h>

struct place {
    const char *image; /* of this pixel */
    int64_t y, x;      /* of tap (0, 0) */
};

/* Taps of a pixel in the scan's order: `step` apart. */
static void place_inside(const tq_scan *w, const struct place *p, size_t stride, const void **taps, size_t step)
{
    const int64_t row = (int64_t)w->in_w * (int64_t)stride;
    const char *first = p->image + p->y * row + p->x * (int64_t)stride;
    const int64_t down = w->dilation_h * row, across = w->dilation_w * (int64_t)stride;
    const int32_t outer = w->columns_first ? w->filter_w : w->filter_h;
    const int32_t inner = w->columns_first ? w->filter_h : w->filter_w;
    const int64_t outer_step = w->columns_first ? across : down, inner_step = w->columns_first ? down : across;
    for (int32_t i = 0; i < outer; i++, first += outer_step) {
        const char *at = first;
        for (int32_t j = 0; j < inner; j++, at += inner_step, taps += step)
            *taps = at;
    }
}

static void place_at_border(const tq_scan *w, const struct place *p, size_t stride, const void *padding,
                            const void **taps, size_t step)
{
    const int32_t outer = w->columns_first ? w->filter_w : w->filter_h;
    const int32_t inner = w->columns_first ? w->filter_h : w->filter_w;
    for (int32_t i = 0; i < outer; i++)
        for (int32_t j = 0; j < inner; j++, taps += step) {
            int64_t y = p->y + (int64_t)(w->columns_first ? j : i) * w->dilation_h;
            int64_t x = p->x + (int64_t)(w->columns_first ? i : j) * w->dilation_w;
            bool inside = y >= 0 && y < w->in_h && x >= 0 && x < w->in_w;
            *taps = inside ? p->image + ((size_t)y * (size_t)w->in_w + (size_t)x) * stride : padding;
        }
}

void tq_scan_pixels(const tq_scan *w, const void *images, size_t stride, size_t at, size_t count,
                      const void *padding, const void **taps, size_t step)
{
    const size_t out_w = (size_t)w->out_w, out_h = (size_t)w->out_h;
    const size_t image_bytes = (size_t)w->in_h * (size_t)w->in_w * stride;
    const int64_t reach_h = (int64_t)(w->filter_h - 1) * w->dilation_h;
    const int64_t reach_w = (int64_t)(w->filter_w - 1) * w->dilation_w;
    size_t x = at % out_w, y = at / out_w % out_h;
    struct place p = {(const char *)images + at / out_w / out_h * image_bytes, 0, 0};
    for (size_t i = 0; i < count; i++) {
        p.y = (int64_t)y * w->stride_h - w->pad_h;
        p.x = (int64_t)x * w->stride_w - w->pad_w;
        if (p.y >= 0 && p.x >= 0 && p.y + reach_h < w->in_h && p.x + reach_w < w->in_w)
            place_inside(w, &p, stride, taps + i, step);
        else
            place_at_border(w, &p, stride, padding, taps + i, step);
        if (++x == out_w) {
            x = 0;
            if (++y == out_h) {
                y = 0;
                p.image += image_bytes;
            }
        }
    }
}
