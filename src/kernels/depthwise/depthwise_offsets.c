/* SPDX-License-Identifier: Apache-2.0
 *
 * The scan of a small image as offsets, [taps][output pixels], in bytes from the image's first pixel; below 0: padding.
 * They are packed with the weights: adding an address to them is faster than computing the scan in each run.
 */
#include "kernels/depthwise/depthwise_parts.h"
#include "kernels/isa.h"

#define MOST_OFFSETS (1 << 15)

static size_t pixels_of(const tq_scan *s)
{
    return (size_t)s->out_h * (size_t)s->out_w;
}

bool tq_depthwise_is_small(const tq_scan *s)
{
    const size_t taps = tq_scan_taps(s), pixels = pixels_of(s);
    return taps && pixels && pixels <= MOST_OFFSETS / taps;
}

static size_t image_bytes(const tq_depthwise *d)
{
    return (size_t)d->scan.in_h * (size_t)d->scan.in_w * d->channels * tq_element_size(d->in);
}

size_t tq_depthwise_offset_bytes(const tq_depthwise *d)
{
    if (d->columns.period || d->lines.vectors || d->bands.line_bytes || !tq_depthwise_is_small(&d->scan) ||
        (size_t)d->scan.in_h * (size_t)d->scan.in_w > INT32_MAX / (d->channels * tq_element_size(d->in) + 1))
        return 0;
    return pixels_of(&d->scan) * d->taps * sizeof(int32_t);
}

/* The offset of input pixel (y, x). */
static int32_t offset_of(const tq_depthwise *d, int64_t y, int64_t x)
{
    const tq_scan *s = &d->scan;
    const bool inside = y >= 0 && y < s->in_h && x >= 0 && x < s->in_w;
    return inside ? (int32_t)((y * s->in_w + x) * (int64_t)(d->channels * tq_element_size(d->in))) : -1;
}

void tq_depthwise_pack_offsets(const tq_depthwise *d, int32_t *offsets)
{
    const tq_scan *s = &d->scan;
    const int32_t h = s->filter_h, w = s->filter_w, taps = (int32_t)d->taps;
    for (int32_t t = 0; t < taps; t++) {
        const int64_t i = s->columns_first ? t % h : t / w, j = s->columns_first ? t / h : t % w;
        for (int64_t y = 0; y < s->out_h; y++)
            for (int64_t x = 0; x < s->out_w; x++)
                *offsets++ = offset_of(d, y * s->stride_h - s->pad_h + i * s->dilation_h,
                                       x * s->stride_w - s->pad_w + j * s->dilation_w);
    }
}

#define ADD_BASE(isa, target)                                                                                  \
    target static void add_base_##isa(const int32_t *offsets, size_t n, const char *base, const void *padding, \
                                      const void **to)                                                         \
    {                                                                                                          \
        for (size_t i = 0; i < n; i++)                                                                         \
            to[i] = offsets[i] < 0 ? padding : base + offsets[i];                                              \
    }
TQ_EVERY_ISA(ADD_BASE)

void tq_depthwise_point(const tq_depthwise *d, const char *data, size_t first, size_t count, const void **table,
                        size_t step)
{
    static void (*const bodies[TQ_ISAS])(const int32_t *, size_t, const char *, const void *, const void **) =
        TQ_ISA_FUNCTIONS(add_base);
    const size_t pixels = pixels_of(&d->scan);
    for (size_t at = 0, n; at < count; at += n) {
        const size_t pixel = (first + at) % pixels;
        const char *image = data + (first + at) / pixels * image_bytes(d);
        n = tq_min_size(pixels - pixel, count - at);
        for (size_t t = 0; t < d->taps; t++)
            bodies[tq_isa()](d->offsets + t * pixels + pixel, n, image, d->padding, table + t * step + at);
    }
}
