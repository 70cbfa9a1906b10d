/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gemm/scan.h"

#include "kernels/isa.h"

/* taps[i] = first + i * step, for i < n. */
TQ_BODY void fill_line(const void **taps, int64_t n, const char *first, int64_t step)
{
    for (int64_t i = 0; i < n; i++)
        taps[i] = first + i * step;
}

TQ_BODY void fill_padding(const void **taps, int64_t begin, int64_t end, const void *padding)
{
    for (int64_t i = begin; i < end; i++)
        taps[i] = padding;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}

static int64_t between(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Output pixels of one image row: columns [x, x + count). */
struct line {
    size_t at, x, y; /* at: the index of the first pixel in taps */
    const char *image;
    size_t count;
};

/* The taps of filter column j; [low, high): the output columns whose tap lies inside the image. */
TQ_BODY void fill_column(const tq_scan *s, size_t stride, const struct line *line, int32_t j, int64_t low, int64_t high,
                         const void *padding, const void **taps, size_t step)
{
    const int64_t n = (int64_t)line->count;
    const int64_t begin = between(low - (int64_t)line->x, 0, n), end = between(high - (int64_t)line->x, begin, n);
    const int64_t across = s->stride_w * (int64_t)stride;
    for (int32_t i = 0; i < s->filter_h; i++) {
        size_t tap = s->columns_first ? (size_t)j * (size_t)s->filter_h + (size_t)i
                                      : (size_t)i * (size_t)s->filter_w + (size_t)j;
        const void **to = taps + tap * step + line->at;
        int64_t y = (int64_t)line->y * s->stride_h - s->pad_h + (int64_t)i * s->dilation_h;
        if (y < 0 || y >= s->in_h) {
            fill_padding(to, 0, n, padding);
            continue;
        }
        /* inside the image where begin < end */
        int64_t x = ((int64_t)line->x + begin) * s->stride_w - s->pad_w + (int64_t)j * s->dilation_w;
        fill_padding(to, 0, begin, padding);
        if (begin < end)
            fill_line(to + begin, end - begin, line->image + (y * s->in_w + x) * (int64_t)stride, across);
        fill_padding(to, end, n, padding);
    }
}

TQ_BODY void scan_pixels(const tq_scan *s, const void *images, size_t stride, size_t at, size_t count,
                         const void *padding, const void **taps, size_t step)
{
    const size_t out_w = (size_t)s->out_w, out_h = (size_t)s->out_h;
    const size_t image_bytes = (size_t)s->in_h * (size_t)s->in_w * stride;
    const struct line first = {
        .x = at % out_w,
        .y = at / out_w % out_h,
        .image = (const char *)images + at / out_w / out_h * image_bytes,
    };
    for (int32_t j = 0; j < s->filter_w; j++) {
        const int64_t offset =
            s->pad_w - (int64_t)j * s->dilation_w; /* low and high solve 0 <= out * stride - offset < in_w */
        const int64_t low = divide_up(offset, s->stride_w), high = divide_up(offset + s->in_w, s->stride_w);
        struct line line = first;
        while (line.at < count) {
            line.count = out_w - line.x < count - line.at ? out_w - line.x : count - line.at;
            fill_column(s, stride, &line, j, low, high, padding, taps, step);
            line.at += line.count;
            line.x = 0;
            if (++line.y == out_h) {
                line.y = 0;
                line.image += image_bytes;
            }
        }
    }
}

#define FILL_LINE(isa, target)                                                                        \
    target static void fill_line_##isa(const void **taps, int64_t n, const char *first, int64_t step) \
    {                                                                                                 \
        fill_line(taps, n, first, step);                                                              \
    }
TQ_EVERY_ISA(FILL_LINE)

void tq_scan_line(const void **taps, size_t n, const void *first, size_t step)
{
    static void (*const bodies[TQ_ISAS])(const void **, int64_t, const char *, int64_t) = TQ_ISA_FUNCTIONS(fill_line);
    bodies[tq_isa()](taps, (int64_t)n, first, (int64_t)step);
}

#define SCAN_PIXELS(isa, target)                                                                                       \
    target static void scan_pixels_##isa(const tq_scan *s, const void *images, size_t stride, size_t at, size_t count, \
                                         const void *padding, const void **taps, size_t step)                          \
    {                                                                                                                  \
        scan_pixels(s, images, stride, at, count, padding, taps, step);                                                \
    }
TQ_EVERY_ISA(SCAN_PIXELS)

void tq_scan_pixels(const tq_scan *s, const void *images, size_t stride, size_t at, size_t count, const void *padding,
                    const void **taps, size_t step)
{
    static void (*const bodies[TQ_ISAS])(const tq_scan *, const void *, size_t, size_t, size_t, const void *,
                                         const void **, size_t) = TQ_ISA_FUNCTIONS(scan_pixels);
    const bool is_long = s->out_w >= 8; /* shorter lines have too few vectors to pay for their start */
    bodies[is_long ? tq_isa() : 0](s, images, stride, at, count, padding, taps, step);
}
