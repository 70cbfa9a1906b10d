/* SPDX-License-Identifier: Apache-2.0
 *
 * Products whose rows are windows of one image in which every filter row is contiguous: an image without padding, or a
 * copy of a small one, or of a group's channels of it, with its padding around it and the columns of a dilated filter
 * side by side.  A pixel at an edge takes as long as ten others to be gathered.  Of each window the indirection buffer
 * holds the first filter row alone.
 */
#include <string.h>

#include "base/sizes.h"
#include "kernels/gemm/gemm_parts.h"

#define IMAGE_BYTES (32 << 10) /* the largest copy: it stays in the first-level cache */
/* The same where taps do not lie side by side: without a copy each would be a pointer. */
#define GATHERED_BYTES (128 << 10)

/* The columns that filters of the output meet.  Of a dilated filter's, every dilation_w-th lie side by side, so that
   its rows are contiguous, too: column x is number x / dilation_w of the part x % dilation_w. */
static double width_of(const tq_scan *scan)
{
    return (double)(scan->out_w - 1) * scan->stride_w + (double)(scan->filter_w - 1) * scan->dilation_w + 1;
}

/* The pixels that filters of the output meet: with padding, but without rows and columns that they leave out; a
   multiple of dilation_w columns. */
static tq_scan padded_scan(const tq_scan *scan)
{
    tq_scan padded = *scan;
    padded.pad_h = padded.pad_w = 0;
    padded.in_h = (scan->out_h - 1) * scan->stride_h + (scan->filter_h - 1) * scan->dilation_h + 1;
    padded.in_w = (int32_t)tq_round_up((size_t)width_of(scan), (size_t)scan->dilation_w);
    return padded;
}

void tq_gemm_plan_image(tq_gemm *g, const tq_scan *scan, size_t stride)
{
    if (scan->dilation_h < 0 || scan->pad_h < 0 || scan->pad_w < 0)
        return;
    const double height = (double)(scan->out_h - 1) * scan->stride_h + (double)(scan->filter_h - 1) * scan->dilation_h;
    const double width = width_of(scan);
    const double bytes = (height + 1) * (width + scan->dilation_w - 1) * (double)(g->depth * g->in_bytes);
    const bool has_padding = scan->pad_h || scan->pad_w || height >= scan->in_h || width > scan->in_w;
    const bool reads_past = (size_t)scan->filter_w * g->depth % g->kernel->group; /* the end of a filter row */
    const bool gathers = stride != g->depth || scan->dilation_w > 1, copies = has_padding || reads_past || gathers;
    g->image = !copies || bytes <= (gathers ? GATHERED_BYTES : IMAGE_BYTES);
    g->image_bytes = g->image && copies ? (size_t)tq_gemm_part((uint64_t)bytes + TQ_GEMM_SLACK) : 0;
}

/* n pieces of `bytes` bytes that lie `stride` bytes apart. */
static void copy_pieces(char *to, const char *from, size_t n, size_t bytes, size_t stride)
{
    enum { LONG = 64 }; /* bytes; a call of memcpy takes as long as a shorter copy */
    for (size_t i = 0; i < n; i++, to += bytes, from += stride)
        if (bytes > LONG)
            memcpy(to, from, bytes);
        else
            tq_copy_part(to, from, bytes);
}

/* A line of the image to its columns of the copy, [left, end). */
static void copy_line(char *to, const char *from, size_t left, size_t end, size_t pixel, size_t stride,
                      const tq_scan *padded)
{
    const size_t parts = (size_t)padded->dilation_w, part = (size_t)padded->in_w / parts;
    if (parts == 1 && pixel == stride) {
        copy_pieces(to + left * pixel, from, 1, (end - left) * pixel, 0);
        return;
    }
    for (size_t x = left; x < end && x < left + parts; x++)
        copy_pieces(to + (x % parts * part + x / parts) * pixel, from + (x - left) * stride,
                    tq_divide_up(end - x, parts), pixel, parts * stride);
}

void tq_gemm_pad_image(const tq_gemm *g, tq_gemm_rows *rows, tq_scan *scan, char *memory)
{
    const tq_scan *from = rows->scan;
    *scan = padded_scan(from);
    const size_t pixel = g->depth * g->in_bytes, padded = (size_t)scan->in_w * pixel;
    const size_t stride = rows->stride * g->in_bytes, line = (size_t)from->in_w * stride;
    const size_t left = tq_min_size((size_t)from->pad_w, (size_t)scan->in_w);
    const size_t end = tq_min_size(left + (size_t)from->in_w, (size_t)scan->in_w);
    const int32_t top = from->pad_h < scan->in_h ? from->pad_h : scan->in_h;
    const int32_t height = scan->in_h - top < from->in_h ? scan->in_h - top : from->in_h;
    memset(memory, *(const uint8_t *)g->padding, (size_t)scan->in_h * padded); /* every byte of it is the same */
    char *to = memory + (size_t)top * padded;
    const char *at = rows->data;
    for (int32_t y = 0; y < height; y++, at += line, to += padded)
        copy_line(to, at, left, end, pixel, stride, scan);
    rows->data = memory;
    rows->stride = g->depth;
    rows->scan = scan;
}

void tq_gemm_point_image(const tq_gemm_call *call, const void **table, size_t first, size_t count)
{
    const tq_scan *s = call->rows->scan;
    const size_t pixel = call->gemm->depth * call->gemm->in_bytes, out_w = (size_t)s->out_w;
    const size_t across = (size_t)s->stride_w * pixel, line = (size_t)s->stride_h * (size_t)s->in_w * pixel;
    const size_t parts = (size_t)s->dilation_w, part = (size_t)s->in_w / parts;
    size_t x = first % out_w, y = first / out_w;
    for (size_t at = 0, n; at < count; at += n, x = 0, y++) {
        n = tq_min_size(out_w - x, count - at);
        const char *from = (const char *)call->rows->data + y * line;
        for (size_t i = 0; parts == 1 && i < n; i++)
            table[at + i] = from + (x + i) * across;
        size_t place = x / parts, column = x % parts;
        for (size_t i = 0; parts > 1 && i < n; i++) {
            table[at + i] = from + (column * part + place) * pixel;
            column = column + 1 < parts ? column + 1 : 0;
            place += column == 0;
        }
    }
}
