/* SPDX-License-Identifier: Apache-2.0
 *
 * The indirection buffer of a block of rows, and copies of rows where the kernel cannot read them in place or reads a
 * dense copy faster.
 */
#include <string.h>

#include "base/sizes.h"
#include "kernels/gemm/gemm_parts.h"

/* Copies n bytes.  Up to a multiple of 16 bytes may be written, and read where they end before limit. */
static inline void copy_bytes(char *to, const char *from, size_t n, const char *limit)
{
    if (n > 64) {
        memcpy(to, from, n);
        return;
    }
    for (; n > 16; n -= 16, to += 16, from += 16)
        memcpy(to, from, 16);
    if ((uintptr_t)from + 16 <= (uintptr_t)limit)
        memcpy(to, from, 16);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
}

/* Copies n elements in the kernel's form; returns the end of the copy. */
static inline char *copy_elements(const tq_gemm_call *call, char *to, const char *from, size_t n, const char *limit)
{
    const tq_gemm *g = call->gemm;
    const size_t size = g->in_bytes;
    if (size == g->kernel->row_bytes)
        copy_bytes(to, from, n * size, limit);
    else if (g->in == TQ_i8)
        g->kernel->copy_i8((const int8_t *)from, (int16_t *)(void *)to, n, g->copied_zero_point);
    else
        g->kernel->copy_u8((const uint8_t *)from, (int16_t *)(void *)to, n, g->copied_zero_point);
    return to + n * g->kernel->row_bytes;
}

/* Whether the taps of a filter row, table[i * step] for i <= last, are contiguous pixels: the first and the last lie
   inside the image, last * bytes apart. */
static inline bool is_line(const void *const *table, size_t last, size_t step, size_t bytes, const void *padding)
{
    const char *from = table[0], *to = table[last * step];
    return to == from + last * bytes && from != padding && to != padding;
}

/* Copies the pixels of a filter row; returns the end of the copy. */
static char *copy_line(const tq_gemm_call *call, const void *const *table, size_t step, char *to)
{
    const tq_gemm *g = call->gemm;
    const size_t bytes = g->depth * g->in_bytes;
    const char *pad_limit = (const char *)g->padding + bytes + TQ_GEMM_SLACK;
    if (is_line(table, call->line - 1, step, bytes, g->padding))
        return copy_elements(call, to, table[0], call->line * g->depth, call->limit);
    for (size_t i = 0; i < call->line; i++) {
        const char *from = table[i * step];
        to = copy_elements(call, to, from, g->depth, from == g->padding ? pad_limit : call->limit);
    }
    return to;
}

/* Copies `count` rows, whose taps are table[t * step + i]. */
static void copy_rows(const tq_gemm_call *call, const void *const *table, size_t step, size_t count, char *to,
                      size_t row_bytes)
{
    const tq_gemm *g = call->gemm;
    for (size_t i = 0; i < count; i++, to += row_bytes) {
        char *at = to;
        for (size_t t = 0; t < g->taps; t += call->line)
            at = copy_line(call, table + t * step + i, step, at);
    }
}

/* ---- pixels of few bytes, which do not lie side by side ---- */

enum { SMALL_PIXEL = 32 }; /* bytes; larger pixels are widened as fast one by one */

static inline __attribute__((always_inline)) void gather(const void *const *table, size_t step, size_t taps,
                                                         size_t count, char *to, size_t row, const size_t pixel)
{
    for (size_t i = 0; i < count; i++, to += row)
        for (size_t t = 0; t < taps; t++)
            tq_copy_part(to + t * pixel, table[t * step + i], pixel);
}

/* Copies `count` rows of pixels of at most SMALL_PIXEL bytes, `row` bytes apart. */
static void gather_rows(const tq_gemm *g, const void *const *table, size_t step, size_t count, char *to, size_t row)
{
    const size_t pixel = g->depth * g->in_bytes;
    switch (pixel) { /* a copy of a constant size is one or two moves */
    case 4: gather(table, step, g->taps, count, to, row, 4); break;
    case 8: gather(table, step, g->taps, count, to, row, 8); break;
    case 16: gather(table, step, g->taps, count, to, row, 16); break;
    case 32: gather(table, step, g->taps, count, to, row, 32); break;
    default: gather(table, step, g->taps, count, to, row, pixel); break;
    }
}

/* ---- filter rows of the image ----
   A filter row is contiguous in the image.  Where it has at most TQ_GEMM_LINE bytes it is copied in pieces of 16,
   without an indirection buffer.  The last piece may reach past its end, into the next row's copy, which is written
   later.  Where a filter row is a whole number of the kernel's groups, rows stay in the image: pixels at its edges
   alone are copied. */

enum { PIECE = 16, LONG = 64 }; /* memcpy is faster from LONG bytes on */

static bool has_lines(const tq_gemm_call *call)
{
    return call->rows->scan && tq_gemm_has_lines(call->gemm, call->rows->scan, call->rows->stride);
}

bool tq_gemm_reads_lines(const tq_gemm_call *call)
{
    const tq_gemm *g = call->gemm;
    return has_lines(call) && !tq_gemm_widens(g) && !g->wide &&
           (g->runs > 1 || call->line * g->depth % g->kernel->group == 0);
}

/* The filter rows of an output pixel: of `count`, those in [top, bottom) lie in the image, `down` bytes apart. */
struct lines {
    size_t count, top, bottom;
    ptrdiff_t down;
    size_t bytes, pieces; /* of a filter row; rounded up to PIECE */
    const char *padding;  /* `pieces` bytes */
    int64_t first, last;  /* the output columns whose filter columns all lie in the image; last < first: none */
};

static inline void copy_pieces(char *to, const char *from, size_t n)
{
    if (n > LONG) {
        memcpy(to, from, n);
        return;
    }
    for (size_t i = 0; i < n; i += PIECE)
        memcpy(to + i, from + i, PIECE);
}

static inline char *pad_lines(const struct lines *l, size_t n, char *to, const size_t pieces)
{
    for (; n > 0; n--, to += l->bytes)
        copy_pieces(to, l->padding, pieces);
    return to;
}

/* `count` pixels, `across` bytes apart, all of whose columns lie in the image. */
static inline __attribute__((always_inline)) void copy_inside(const struct lines *l, const char *from, size_t across,
                                                              size_t count, char *to, size_t row, const size_t pieces)
{
    for (size_t i = 0; i < count; i++, to += row) {
        const char *line = from + i * across;
        char *at = pad_lines(l, l->top, to, pieces);
        for (size_t n = l->top; n < l->bottom; n++, at += l->bytes, line += l->down)
            copy_pieces(at, line, pieces);
        pad_lines(l, l->count - l->bottom, at, pieces);
    }
}

/* A pixel of whose filter rows the bytes [begin, end) lie in the image: `from` has the first of these.  exact: no other
   bytes may be read. */
static void copy_edge(const struct lines *l, const char *from, size_t begin, size_t end, bool exact, char *to)
{
    to = pad_lines(l, l->top, to, l->pieces);
    for (size_t n = l->top; n < l->bottom; n++, to += l->bytes, from += l->down) {
        copy_pieces(to, l->padding, begin);
        if (exact || begin == end || l->pieces > LONG)
            memcpy(to + begin, from, end - begin);
        else
            copy_pieces(to + begin, from, end - begin);
        copy_pieces(to + end, l->padding, l->bytes - end);
    }
    pad_lines(l, l->count - l->bottom, to, l->pieces);
}

/* As copy_inside: table[n * step + i] becomes the address of filter row n of pixel i. */
static void point_inside(const struct lines *l, const char *from, size_t across, size_t count,
                         const void **restrict table, size_t step)
{
    for (size_t n = 0; n < l->count; n++, table += step) {
        const bool inside = n >= l->top && n < l->bottom;
        const char *line = inside ? from + (ptrdiff_t)(n - l->top) * l->down : l->padding;
        tq_scan_line(table, count, line, inside ? across : 0);
    }
}

/* The output pixel x, some of whose columns lie outside of the image, or whose lines end where no piece may be read. */
static void copy_outside(const tq_gemm_call *call, const struct lines *l, const char *top_line, int64_t x, int64_t room,
                         char *to, const void **table)
{
    const tq_scan *s = call->rows->scan;
    const int64_t pixel = (int64_t)(call->gemm->depth * call->gemm->in_bytes), at = x * s->stride_w - s->pad_w;
    const int64_t begin = at < 0 ? (at + s->filter_w > 0 ? -at : s->filter_w) : 0;
    const int64_t stop = at + s->filter_w <= s->in_w ? s->filter_w : s->in_w > at + begin ? s->in_w - at : begin;
    const char *from = begin < stop ? top_line + (at + begin) * pixel : top_line;
    copy_edge(l, from, (size_t)(begin * pixel), (size_t)(stop * pixel), room - (from - top_line) < 0, to);
    for (size_t n = 0; call->reads_lines && n < l->count; n++)
        table[n * call->block] = to + n * l->bytes;
}

static void copy_all_inside(const tq_gemm_call *call, const struct lines *l, const char *from, size_t across,
                            size_t count, char *to, size_t row, const void **table)
{
    if (call->reads_lines)
        point_inside(l, from, across, count, table, call->block);
    else if (l->pieces == PIECE)
        copy_inside(l, from, across, count, to, row, PIECE);
    else if (l->pieces == 2 * PIECE)
        copy_inside(l, from, across, count, to, row, 2 * PIECE);
    else
        copy_inside(l, from, across, count, to, row, l->pieces);
}

/* Output pixels [x, end) of an image row; top_line: the image row under filter row l->top.  Filter rows are copied to
   `to`, or where call->reads_lines their addresses are written to `table`. */
static char *copy_columns(const tq_gemm_call *call, const struct lines *l, const char *top_line, int64_t x, int64_t end,
                          char *to, size_t row, const void **table)
{
    const tq_scan *s = call->rows->scan;
    const int64_t pixel = (int64_t)(call->gemm->depth * call->gemm->in_bytes), across = s->stride_w * pixel;
    const ptrdiff_t lowest = l->down > 0 && l->bottom > l->top ? (ptrdiff_t)(l->bottom - l->top - 1) * l->down : 0;
    const int64_t room = call->limit - (top_line + lowest) - (int64_t)l->pieces; /* for the first byte of a line */
    while (x < end) {
        const int64_t from = x * across - s->pad_w * pixel;
        int64_t count = 1;
        if (x < l->first || x > l->last || from > room) {
            copy_outside(call, l, top_line, x, room, to, table);
        } else {
            count = (l->last < end ? l->last + 1 : end) - x;
            if (from + (count - 1) * across > room)
                count = (room - from) / across + 1;
            copy_all_inside(call, l, top_line + from, (size_t)across, (size_t)count, to, row, table);
        }
        x += count, to += (size_t)count * row, table += count;
    }
    return to;
}

/* The filter rows of the output row at `y` that lie in the image. */
static void find_lines(const tq_scan *s, int64_t y, struct lines *l)
{
    l->top = l->bottom = 0;
    for (int64_t i = s->filter_h; i-- > 0;)
        if (y + i * s->dilation_h >= 0 && y + i * s->dilation_h < s->in_h) {
            l->top = (size_t)i;
            l->bottom = l->bottom ? l->bottom : (size_t)i + 1;
        }
}

static void copy_lines(const tq_gemm_call *call, const tq_gemm_space *space, size_t first, size_t count, char *to,
                       size_t row)
{
    const tq_gemm *g = call->gemm;
    const tq_scan *s = call->rows->scan;
    const size_t pixel = g->depth * g->in_bytes, line = (size_t)s->in_w * pixel, out_w = (size_t)s->out_w;
    const int64_t free = (int64_t)s->in_w + s->pad_w - s->filter_w; /* columns that the filter may move right */
    struct lines l = {
        .count = (size_t)s->filter_h,
        .down = s->dilation_h * (ptrdiff_t)line,
        .bytes = call->line * pixel,
        .pieces = tq_round_up(call->line * pixel, PIECE),
        .padding = g->padding,
        .first = ((int64_t)s->pad_w + s->stride_w - 1) / s->stride_w,
        .last = free >= 0 ? free / s->stride_w : -1,
    };
    size_t x = first % out_w, out_y = first / out_w % (size_t)s->out_h;
    const char *image = (const char *)call->rows->data + first / out_w / (size_t)s->out_h * (size_t)s->in_h * line;
    for (size_t at = first, n; at < first + count; at += n, x = 0) {
        n = tq_min_size(out_w - x, first + count - at);
        const int64_t y = (int64_t)out_y * s->stride_h - s->pad_h;
        find_lines(s, y, &l);
        const char *top_line = l.bottom ? image + (y + (int64_t)l.top * s->dilation_h) * (int64_t)line : image;
        to = copy_columns(call, &l, top_line, (int64_t)x, (int64_t)(x + n), to, row, space->table + (at - first));
        if (++out_y == (size_t)s->out_h) {
            out_y = 0;
            image += (size_t)s->in_h * line;
        }
    }
}

void tq_gemm_fill_indirection(const tq_gemm_call *call, const tq_gemm_space *space, size_t first, size_t count)
{
    const tq_gemm *g = call->gemm;
    const size_t stride = call->rows->stride * g->in_bytes, block = call->block;
    const char *data = call->rows->data;
    const void **taps = tq_gemm_taps(call, space);
    const size_t row = tq_gemm_copied_row_bytes(g), elements = tq_round_up(g->length, g->kernel->group);
    const bool widens = tq_gemm_widens(g);
    if (call->image) {
        tq_gemm_point_image(call, space->table, first, count);
        return;
    }
    const bool dense = widens && call->plain && elements == g->length && stride == elements * g->in_bytes;
    const bool lines = has_lines(call) && !dense;
    const bool small = g->copies && !lines && !dense && g->depth * g->in_bytes <= SMALL_PIXEL;
    char *const copies = widens ? space->bytes : space->copies; /* before they are widened */
    const size_t copied_row = widens ? elements * g->in_bytes : row;
    if (lines)
        copy_lines(call, space, first, count, copies, copied_row);
    else if (call->plain)
        tq_scan_line(taps, dense ? 0 : count, data + first * stride, stride);
    else
        tq_scan_pixels(call->rows->scan, data, stride, first, count, g->padding, taps, block);
    if (!g->copies || call->reads_lines)
        return;
    if (small)
        gather_rows(g, taps, block, count, copies, copied_row);
    if (dense || ((lines || small) && widens)) /* 8-bit rows that lie one behind the other */
        copy_elements(call, space->copies, dense ? data + first * stride : space->bytes, count * elements, call->limit);
    else if (!lines && !small)
        copy_rows(call, taps, block, count, space->copies, row);
    for (size_t i = 0; i < count; i++)
        space->table[i] = space->copies + i * row;
}
