/* SPDX-License-Identifier: Apache-2.0
 *
 * The indirection buffer of a block of rows, and copies of rows where the kernel cannot read them in place.
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

/* Rows whose filter rows are at most TQ_GEMM_SLACK bytes and need no conversion; the loop's constants stay in
   registers. */
static void copy_short_lines(const tq_gemm_call *call, const void *const *table, size_t step, size_t count, char *to,
                             size_t row_bytes)
{
    const tq_gemm *g = call->gemm;
    const void *const padding = g->padding;
    const size_t line = call->line, bytes = g->depth * g->in_bytes, lines = g->taps / line, line_bytes = line * bytes;
    const size_t whole = tq_round_up(line_bytes, 16);
    const uintptr_t safe = (uintptr_t)call->limit - whole; /* the last address from which `whole` bytes may be read */
    for (size_t i = 0; i < count; i++, to += row_bytes)
        for (size_t n = 0; n < lines; n++) {
            const void *const *taps = table + n * line * step + i;
            char *at = to + n * line_bytes;
            const char *from = taps[0];
            if (is_line(taps, line - 1, step, bytes, padding) && (uintptr_t)from <= safe)
                for (size_t k = 0; k < whole; k += 16)
                    memcpy(at + k, from + k, 16);
            else
                copy_line(call, taps, step, at);
        }
}

/* Copies `count` rows, whose taps are table[t * step + i]. */
static void copy_rows(const tq_gemm_call *call, const void *const *table, size_t step, size_t count, char *to,
                      size_t row_bytes)
{
    const tq_gemm *g = call->gemm;
    if (g->in_bytes == g->kernel->row_bytes && call->line * g->depth * g->in_bytes <= TQ_GEMM_SLACK) {
        copy_short_lines(call, table, step, count, to, row_bytes);
        return;
    }
    for (size_t i = 0; i < count; i++, to += row_bytes) {
        char *at = to;
        for (size_t t = 0; t < g->taps; t += call->line)
            at = copy_line(call, table + t * step + i, step, at);
    }
}

void tq_gemm_fill_indirection(const tq_gemm_call *call, const tq_gemm_space *space, size_t first, size_t count)
{
    const tq_gemm *g = call->gemm;
    const size_t stride = call->rows->stride * g->in_bytes, block = call->block;
    const char *data = call->rows->data;
    const void **taps = tq_gemm_taps(call, space);
    if (call->plain)
        for (size_t i = 0; i < count; i++)
            taps[i] = data + (first + i) * stride;
    else
        tq_scan_pixels(call->rows->scan, data, stride, first, count, g->padding, taps, block);
    if (!g->copies)
        return;
    const size_t row = tq_gemm_copied_row_bytes(g);
    copy_rows(call, taps, block, count, space->copies, row);
    for (size_t i = 0; i < count; i++)
        space->table[i] = space->copies + i * row;
}

/* adjust[i] = row_factor * sum over row i of (element - row zero point), modulo 2^32. */
void tq_gemm_find_adjust(const tq_gemm_call *call, const tq_gemm_space *space, size_t count)
{
    const tq_gemm *g = call->gemm;
    const uint8_t flip = tq_gemm_flip(g);
    const int64_t zeros = (int64_t)(g->runs * g->length) * g->row_zero_point;
    if (!g->row_factor) {
        memset(space->adjust, 0, count * sizeof *space->adjust);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t sum = -zeros;
        for (size_t t = 0; t < g->runs; t++)
            sum += g->kernel->row_sum(space->table[t * call->block + i], g->length, flip);
        space->adjust[i] = (int32_t)(uint32_t)((uint64_t)sum * (uint64_t)(int64_t)g->row_factor);
    }
}
