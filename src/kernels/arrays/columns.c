/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/arrays/columns.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define LINE 64 /* bytes of a cache line: a vector across two costs two loads */

void tq_columns_free(tq_columns *c)
{
    free(c->memory[0]);
    free(c->memory[1]);
}

/* Entries with padding, rounded up to whole cache lines. */
static bool pad(size_t entries, uint64_t *padded)
{
    uint64_t more = 0;
    bool fits = tq_add_u64(entries, TQ_COLUMN_PADDING + LINE - 1, &more);
    *padded = more / LINE * LINE;
    return fits;
}

bool tq_columns_bytes(const tq_columns *c, size_t entries, uint64_t *bytes)
{
    uint64_t padded = 0, total = LINE, column; /* room to align the first column */
    bool fits = pad(entries, &padded);
    for (int i = 0; i < c->count && fits; i++)
        fits = tq_mul_u64(padded, c->size[i], &column) && tq_add_u64(total, column, &total);
    *bytes = total;
    return fits && total <= SIZE_MAX;
}

static tq_status allocate(tq_columns *c, int which, size_t entries, tq_error *error)
{
    uint64_t padded = 0, bytes = 0;
    bool fits = tq_columns_bytes(c, entries, &bytes);
    char *at = c->scratch;
    if (!at)
        at = c->memory[which] = fits ? malloc((size_t)bytes) : NULL;
    if (!at)
        return tq_fail(error, TQ_NO_MEMORY, TQ_NO_OFFSET, "no memory for %zu parameter sets", entries);
    if (c->scratch)
        c->scratch += bytes;
    pad(entries, &padded);
    at += LINE - (uintptr_t)at % LINE;
    c->entries = entries;
    for (int i = 0; i < c->count; i++) {
        c->data[i] = at;
        at += (size_t)padded * c->size[i];
    }
    return TQ_OK;
}

tq_status tq_columns_allocate(tq_columns *c, size_t entries, tq_error *error)
{
    return allocate(c, 0, entries, error);
}

/* Writes each of `count` values `run` times, in whole vectors: the excess of one value is overwritten by the next, and
   that of the last lies in the padding. */
#define SPILL 8
#define REPEAT(name, type)                                                                   \
    static void name(type *restrict to, const type *restrict from, size_t count, size_t run) \
    {                                                                                        \
        for (size_t i = 0; i < count; i++, to += run)                                        \
            for (size_t k = 0; k < run; k += SPILL)                                          \
                for (size_t m = 0; m < SPILL; m++)                                           \
                    to[k + m] = from[i];                                                     \
    }
REPEAT(repeat_u32, uint32_t)
REPEAT(repeat_u64, uint64_t)

static void repeat(const tq_columns *c, int i, char *to, const char *from, size_t count, size_t run)
{
    if (!(c->needed >> i & 1))
        memset(to, 0, count * run * c->size[i]);
    else if (c->size[i] == 4)
        repeat_u32((uint32_t *)to, (const uint32_t *)from, count, run);
    else
        repeat_u64((uint64_t *)to, (const uint64_t *)from, count, run);
}

/* Repeats the last entry. */
void tq_columns_pad(tq_columns *c)
{
    for (int i = 0; i < c->count; i++) {
        char *end = c->data[i] + c->entries * c->size[i];
        repeat(c, i, end, end - c->size[i], 1, TQ_COLUMN_PADDING);
    }
}

/* Repeats the first `entries` entries until there are `more` further ones; each step doubles the length. */
static void go_on(char *column, size_t size, size_t entries, size_t more)
{
    size_t done = entries * size;
    for (size_t left = more * size, part; left > 0; left -= part, done += part) {
        part = left < done ? left : done;
        memcpy(column + done, column, part);
    }
}

tq_status tq_columns_spread(tq_columns *c, const tq_layout *layout, size_t repeats, tq_error *error)
{
    tq_columns from = *c;
    size_t once = layout->channels * layout->inner, pitch = once * repeats;
    tq_status status = allocate(c, 1, layout->groups * pitch, error);
    if (status != TQ_OK)
        return status;
    for (int i = 0; i < c->count; i++)
        for (size_t g = 0; g < layout->groups; g++) {
            char *to = c->data[i] + g * pitch * c->size[i];
            repeat(c, i, to, from.data[i] + g * layout->channels * c->size[i], layout->channels, layout->inner);
            go_on(to, c->size[i], once, pitch - once);
        }
    return TQ_OK;
}

size_t tq_columns_lay_out(const tq_columns *c, char *memory, size_t entries, char *data[])
{
    size_t total = 0;
    for (int i = 0; i < c->count; i++) {
        data[i] = memory + total;
        total += c->size[i] * entries;
    }
    return total;
}

/* The entries of a column that fit TQ_SETS_BYTES: whole cache lines. */
static size_t fitting(const tq_columns *c)
{
    size_t bytes = 0;
    for (int i = 0; i < c->count; i++)
        bytes += c->size[i];
    return TQ_SETS_BYTES / bytes / LINE * LINE;
}

void tq_few_sets_init(tq_few_sets *f, const tq_columns *c)
{
    tq_columns_lay_out(c, f->memory, fitting(c), f->data);
}

void tq_few_sets_constant(tq_few_sets *f, const tq_columns *c, size_t entries)
{
    const size_t most = fitting(c);
    for (int i = 0; i < c->count; i++)
        if (c->constant >> i & 1)
            go_on(f->data[i], c->size[i], 1, (entries < most ? entries : most) - 1);
}

void tq_folded_fill(tq_folded *f, const tq_columns *c, unsigned columns, char *const *sets, size_t inner, size_t cut,
                    size_t n)
{
    size_t head = inner - cut < n ? inner - cut : n, whole = (n - head) / inner, rest = (n - head) % inner;
    for (int i = 0; i < c->count; i++) {
        size_t size = c->size[i];
        char *to = f->data[i];
        if (!(columns >> i & 1))
            continue;
        repeat(c, i, to, sets[i], 1, head);
        repeat(c, i, to + head * size, sets[i] + size, whole, inner);
        if (rest)
            repeat(c, i, to + (n - rest) * size, sets[i] + (1 + whole) * size, 1, rest);
    }
}

void tq_folded_init(tq_folded *f, const tq_columns *c, char *const *sets)
{
    memset(f->memory, 0, tq_columns_lay_out(c, f->memory, TQ_FOLD + TQ_COLUMN_PADDING, f->data));
    tq_folded_fill(f, c, c->needed & c->constant, sets, TQ_FOLD, 0, TQ_FOLD);
}
