/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims: counted in one walk over the tree, gathered in a second, sorted and merged.
 */
#include "flatbuffer/claims.h"

#include <stdlib.h>

static void claim(tq_claims *c, uint64_t start, uint64_t length)
{
    if (start + length > c->end)
        c->end = start + length;
    if (c->spans && c->count == c->room)
        return; /* the bytes have changed since the spans were counted */
    if (c->spans)
        c->spans[c->count] = (tq_span){start, start + length};
    c->count++;
}

static void claim_node(tq_claims *c, tq_bytes file, const tq_tree_node *node);

/* Bytes that a cell borrows from the file, and `ahead` bytes before them. */
static void claim_bytes(tq_claims *c, tq_bytes file, const uint8_t *bytes, uint64_t length, unsigned ahead)
{
    if (bytes)
        claim(c, (uint64_t)(bytes - file.data) - ahead, ahead + length);
}

static void claim_cell(tq_claims *c, tq_bytes file, const tq_cell *cell)
{
    switch ((tq_cell_kind)cell->kind) {
    case TQ_CELL_VECTOR: claim_bytes(c, file, cell->bytes, cell->length + cell->is_text, 4); break;
    case TQ_CELL_STRINGS:
        claim(c, cell->at, 4 + 4 * (uint64_t)cell->count);
        for (uint32_t i = 0; i < cell->count; i++)
            claim_bytes(c, file, cell->strings[i].data, (uint64_t)cell->strings[i].size + 1, 4);
        break;
    case TQ_CELL_TABLES:
        claim(c, cell->at, 4 + 4 * (uint64_t)cell->count);
        for (uint32_t i = 0; i < cell->count; i++)
            claim_node(c, file, cell->tables[i]);
        break;
    case TQ_CELL_TABLE: claim_node(c, file, cell->table); break;
    case TQ_CELL_OUTSIDE: claim_bytes(c, file, cell->bytes, cell->length, 0); break;
    case TQ_CELL_INLINE: break;
    }
}

/* The recursion is as deep as the nesting of tables, which reading the tree bounded. */
static void claim_node(tq_claims *c, tq_bytes file, const tq_tree_node *node)
{
    tq_table table;
    if (tq_table_find(file, (size_t)node->at, &table, NULL) == TQ_OK) {
        claim(c, table.vtable, table.vtable_size);
        claim(c, table.at, tq_load_u16(file.data + table.vtable + 2));
    }
    for (uint32_t i = 0; i < node->count; i++)
        claim_cell(c, file, &node->cells[i]);
}

static int compare_spans(const void *a, const void *b)
{
    const tq_span *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Joins spans that overlap or touch; they are sorted by start. */
static void merge(tq_claims *c)
{
    size_t merged = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (merged && c->spans[i].start <= c->spans[merged - 1].end) {
            if (c->spans[i].end > c->spans[merged - 1].end)
                c->spans[merged - 1].end = c->spans[i].end;
        } else {
            c->spans[merged++] = c->spans[i];
        }
    }
    c->count = merged;
}

tq_status tq_claims_find(tq_reading *r, tq_claims *out)
{
    tq_claims counted = {NULL, 0, 0, 0}, found = {NULL, 0, 0, 0};
    claim(&counted, 0, 8); /* the root's offset and the file's identifier */
    claim_node(&counted, r->file, r->tree->root);
    tq_status status =
        tq_allocate(&r->tree->region.allocator, counted.count, sizeof *found.spans, &found.spans, r->error);
    if (status != TQ_OK)
        return status;
    found.room = counted.count;
    claim(&found, 0, 8);
    claim_node(&found, r->file, r->tree->root);
    qsort(found.spans, found.count, sizeof *found.spans, compare_spans);
    merge(&found);
    *out = found;
    return TQ_OK;
}

size_t tq_claims_first_after(const tq_claims *c, uint64_t at)
{
    size_t low = 0, high = c->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->spans[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t tq_claims_next(const tq_reading *r, const tq_claims *c, uint64_t at)
{
    const size_t past = tq_claims_first_after(c, at);
    uint64_t next = past < c->count ? c->spans[past].start : r->end;
    return next < at ? at : next < r->end ? next : r->end;
}

uint64_t tq_tree_end(const tq_tree *tree, tq_bytes file)
{
    tq_claims c = {NULL, 0, 0, 0};
    claim(&c, 0, 8);
    claim_node(&c, file, tree->root);
    return c.end < file.size ? c.end : file.size;
}
