/* SPDX-License-Identifier: Apache-2.0
 *
 * Trailing data, which stands behind the tables: finding equal data, assigning offsets, and writing on several threads.
 */
#include "flatbuffer/writer_internal.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/threads.h"

enum { BYTES_A_THREAD = 1 << 17 }; /* bytes; writing fewer costs less than waking a thread */

/* ---- offsets ---- */

/* A cell's bytes and its index in the list.  Of several with equal bytes only the first is written. */
typedef struct data {
    uint64_t hash, length;
    const uint8_t *bytes;
    size_t index;
    uint32_t count;
    uint8_t align, is_made;
} data;

static int compare_data(const void *a, const void *b)
{
    const data *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static bool is_same(const data *a, const data *b, bool share_equal)
{
    if (a->hash != b->hash || a->length != b->length || a->count != b->count || a->align != b->align)
        return false;
    if (a->bytes == b->bytes || !a->length)
        return a->is_made == b->is_made;
    return share_equal && !a->is_made && !b->is_made && memcmp(a->bytes, b->bytes, (size_t)a->length) == 0;
}

/* first[i]: the index of the first cell with the bytes of cell i. */
static tq_status find_first(tq_plan *plan, tq_cell **cells, size_t count, size_t *first, tq_error *error)
{
    data *all;
    tq_status status = tq_allocate(&plan->region.allocator, count, sizeof *all, &all, error);
    if (status != TQ_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        const tq_cell *cell = cells[i];
        bool is_read = plan->share_equal && !cell->is_made; /* a maker's bytes are not known yet */
        uint64_t hash = is_read ? tq_hash_bytes(cell->bytes, (size_t)cell->length) : (uint64_t)(uintptr_t)cell->bytes;
        all[i] = (data){hash, cell->length, cell->bytes, i, cell->count, cell->align, cell->is_made};
        first[i] = i;
    }
    qsort(all, count, sizeof *all, compare_data);
    for (size_t i = 1, head = 0; i < count; i++) {
        if (is_same(&all[head], &all[i], plan->share_equal))
            first[all[i].index] = all[head].index;
        else
            head = i;
    }
    tq_release(&plan->region.allocator, all);
    return TQ_OK;
}

tq_status tq_trailing_assign(tq_plan *plan, tq_cell **cells, size_t count, unsigned ahead, unsigned align,
                             uint64_t *end, tq_error *error)
{
    size_t *first = NULL;
    tq_status status = tq_allocate(&plan->region.allocator, count, sizeof *first, &first, error);
    if (status == TQ_OK)
        status = find_first(plan, cells, count, first, error);
    for (size_t i = 0; status == TQ_OK && i < count; i++) {
        tq_cell *cell = cells[i];
        unsigned own = cell->align > align ? cell->align : align;
        if (first[i] != i) {
            cell->at = cells[first[i]]->at;
            continue;
        }
        *end += (own - (*end + ahead) % own) % own;
        cell->at = *end;
        if (!tq_add_u64(*end, ahead + cell->length, end))
            status = tq_fail(error, TQ_TOO_LARGE, TQ_NO_OFFSET, "the file passes 2^64 bytes");
    }
    tq_release(&plan->region.allocator, first);
    return status;
}

/* ---- bytes ---- */

/* Cells, and the memory of the file that they are written to. */
typedef struct making {
    tq_cell **cells;
    size_t count;
    unsigned ahead;
    uint8_t *whole;
    atomic_size_t failed; /* the first cell that failed; count: none */
} making;

static tq_status make_one(const making *m, size_t i, tq_error *error)
{
    const tq_cell *cell = m->cells[i];
    uint8_t *out = m->whole + cell->at + m->ahead;
    if (cell->is_made)
        return cell->maker->make(cell->maker, out, error);
    if (cell->length)
        memcpy(out, cell->bytes, (size_t)cell->length);
    return TQ_OK;
}

static void make_some(void *context, size_t begin, size_t end)
{
    making *m = context;
    for (size_t i = begin; i < end; i++) {
        size_t first = atomic_load(&m->failed);
        if (first < i || make_one(m, i, NULL) == TQ_OK)
            continue;
        while (i < first && !atomic_compare_exchange_weak(&m->failed, &first, i))
            ;
    }
}

tq_status tq_trailing_write(tq_plan *plan, tq_cell **cells, size_t count, unsigned ahead, uint8_t *whole,
                            tq_error *error)
{
    making m = {.ahead = ahead, .whole = whole};
    uint64_t end = 0, size = 0;
    tq_status status = tq_region_get(&plan->region, count, sizeof *m.cells, &m.cells, error);
    if (status != TQ_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        tq_cell *cell = cells[i];
        if (cell->at < end)
            continue; /* it shares the offset of an earlier cell */
        m.cells[m.count++] = cell;
        size += cell->is_made ? cell->length : cell->length / 4; /* a maker reads several bytes for one */
        end = cell->at + ahead + cell->length;
    }
    atomic_init(&m.failed, m.count);
    tq_parallel_for(m.count, 1, tq_threads_for(0, (size_t)size, BYTES_A_THREAD), make_some, &m);
    size_t failed = atomic_load(&m.failed);
    return failed < m.count ? make_one(&m, failed, error) : TQ_OK; /* once more, for the error */
}
