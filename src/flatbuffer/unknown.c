/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading fields that the rows do not know into a tree: their inline bytes, and the targets of those that are offsets.
 * tree.h has the rule and its errors.
 */
#include "flatbuffer/unknown.h"

#include <stdlib.h>

#include "flatbuffer/claims.h"

/* DATA_COUNT: a vector of at least this many elements may be data for kernels, and keeps an alignment to 16. */
enum { UNKNOWN_DEPTH = 8, MOST_ELEMENT = 8, DATA_COUNT = 64 };

/* ---- inline bytes ---- */

static int compare_positions(const void *a, const void *b)
{
    size_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* The offsets of the table's fields, ascending. */
static tq_status field_positions(tq_reading *r, const tq_table *table, size_t **out, size_t *count)
{
    size_t *positions, found = 0;
    unsigned slots = tq_slot_count(table);
    tq_status status = tq_allocate(&r->tree->region.allocator, slots, sizeof *positions, &positions, r->error);
    if (status != TQ_OK)
        return status;
    for (unsigned slot = 0; slot < slots; slot++) {
        size_t at = tq_slot_at(table, slot);
        if (at)
            positions[found++] = at;
    }
    qsort(positions, found, sizeof *positions, compare_positions);
    *out = positions;
    *count = found;
    return TQ_OK;
}

/* The bytes from the field at `at` to the next field, or to the end of the table; at least 1. */
static uint64_t extent(const tq_reading *r, const tq_table *table, const size_t *positions, size_t count, size_t at)
{
    size_t low = 0, high = count; /* the first position past `at` */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (positions[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    size_t end = table->at + tq_load_u16(table->file.data + table->vtable + 2);
    if (end <= at)
        end = at + MOST_ELEMENT; /* the table's declared size is too small */
    if (low < count && positions[low] < end)
        end = positions[low];
    if (end > r->file.size)
        end = r->file.size;
    return end - at;
}

/* The alignment of a field of `length` bytes at offset `at`: 1, 2, 4 or 8. */
static uint8_t alignment_of(size_t at, uint64_t length)
{
    uint8_t align = MOST_ELEMENT;
    while (align > 1 && (at % align || length < align))
        align /= 2;
    return align;
}

/* Whether the field's bytes can be an offset: 4 aligned bytes, with padding behind them. */
static bool may_be_offset(const tq_reading *r, size_t at, uint64_t length)
{
    if (at % 4 || length < 4)
        return false;
    uint32_t distance = tq_load_u32(r->file.data + at);
    for (uint64_t i = 4; i < length; i++)
        if (r->file.data[at + i])
            return false;
    return distance && distance % 4 == 0 && (uint64_t)at + distance + 4 <= r->end;
}

/* The row whose value, or whose union type byte, the slot holds; NULL: none. */
static const tq_field *row_of(const tq_tree_node *node, unsigned slot)
{
    if (node->id == TQ_TABLE_NONE)
        return NULL;
    for (unsigned i = tq_tables[node->id].first; i < tq_tables[node->id + 1].first; i++) {
        const tq_field *field = &tq_fields[i];
        if (field->slot == slot || (field->shape == TQ_SHAPE_UNION && field->slot == slot + 1))
            return field;
    }
    return NULL;
}

/* Whether the rows do not know the slot: no row has it, or it is the value of a union of unknown type.  Any other
   field without a cell passes the end of the file. */
static bool is_unread(const tq_tree_node *node, unsigned slot, bool *is_union)
{
    const tq_field *field = row_of(node, slot);
    *is_union = field && field->shape == TQ_SHAPE_UNION && field->slot == slot;
    return (!field || *is_union) && !tq_tree_node_cell(node, slot);
}

static tq_status read_slot(tq_reading *r, tq_tree_node *node, unsigned slot, bool is_union, size_t at, uint64_t length)
{
    bool is_guess = may_be_offset(r, at, length);
    tq_cell cell = {
        .slot = (uint16_t)slot, .kind = TQ_CELL_INLINE, .align = alignment_of(at, length), .length = length};
    if (is_union && !is_guess) {
        r->tree->lost++;
        return TQ_OK;
    }
    if (length <= sizeof cell.scalar)
        memcpy(cell.scalar, r->file.data + at, (size_t)length);
    else
        cell.bytes = r->file.data + at;
    tq_status status = tq_tree_node_put(r->tree, node, &cell, r->error);
    if (status != TQ_OK || !is_guess)
        return status;
    tq_guess *guess;
    status = tq_region_get(&r->tree->region, 1, sizeof *guess, &guess, r->error);
    if (status == TQ_OK) {
        *guess = (tq_guess){r->guesses, node, at, (uint16_t)slot, r->depth, is_union};
        r->guesses = guess;
    }
    return status;
}

tq_status tq_read_unknown_slots(tq_reading *r, const tq_table *table, tq_tree_node *node)
{
    size_t *positions = NULL, count = 0;
    tq_status status = TQ_OK;
    for (unsigned slot = 0; status == TQ_OK && slot < tq_slot_count(table); slot++) {
        size_t at = tq_slot_at(table, slot);
        bool is_union;
        if (!at || !tq_bytes_hold(r->file, at, 1) || !is_unread(node, slot, &is_union))
            continue;
        if (!positions)
            status = field_positions(r, table, &positions, &count);
        if (status == TQ_OK)
            status = read_slot(r, node, slot, is_union, at, extent(r, table, positions, count, at));
    }
    tq_release(&r->tree->region.allocator, positions);
    return status;
}

/* ---- targets of offsets ---- */

/* Whether the bytes at `at` are a text: a count, that many bytes without control characters, and a NUL. */
static bool find_text(tq_reading *r, const tq_claims *c, uint64_t at, tq_cell *cell)
{
    uint64_t end = tq_claims_next(r, c, at);
    if (end < at + 4)
        return false;
    uint32_t count = tq_load_u32(r->file.data + at);
    if (!count || (uint64_t)count + 5 > end - at || count > r->bytes_left)
        return false;
    r->bytes_left -= count;
    const uint8_t *text = r->file.data + at + 4;
    for (uint32_t i = 0; i < count; i++)
        if (text[i] < ' ' && text[i] != '\t' && text[i] != '\n' && text[i] != '\r')
            return false;
    if (text[count])
        return false;
    *cell = (tq_cell){.slot = cell->slot,
                      .kind = TQ_CELL_VECTOR,
                      .align = 1,
                      .is_text = 1,
                      .count = count,
                      .length = count,
                      .bytes = text};
    return true;
}

/* Whether the bytes at `at` have the form of a table that lies entirely in bytes without a claim. */
static bool find_table(const tq_reading *r, const tq_claims *c, uint64_t at, tq_table *out)
{
    if (at % 4 || tq_table_find(r->file, (size_t)at, out, NULL) != TQ_OK || out->vtable % 2)
        return false;
    uint16_t size = tq_load_u16(r->file.data + out->vtable + 2);
    if (size < 4 || at + size > tq_claims_next(r, c, at))
        return false;
    for (unsigned slot = 0; slot < tq_slot_count(out); slot++) {
        size_t field = tq_slot_at(out, slot);
        if (field && (field < at + 4 || field >= at + size))
            return false;
    }
    return true;
}

/* Reads a table of unknown type.  Its fields become guesses, one level deeper. */
static tq_status read_unknown_table(tq_reading *r, const tq_table *table, unsigned depth, tq_tree_node **out)
{
    tq_status status = tq_reading_node(r, table, TQ_TABLE_NONE, out);
    r->depth = (uint8_t)(depth + 1);
    return status == TQ_OK ? tq_read_unknown_slots(r, table, *out) : status;
}

/* Whether all `count` elements of the vector at `at` are offsets to texts (texts) or to tables (!texts). */
static bool find_offsets(tq_reading *r, const tq_claims *c, uint64_t at, uint32_t count, bool texts)
{
    uint64_t end = at + 4 + 4 * (uint64_t)count;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t element = at + 4 + 4 * (uint64_t)i, target = element + tq_load_u32(r->file.data + element);
        tq_table table;
        tq_cell text = {.slot = 0};
        if (target < end || target % 4 || target + 4 > r->end)
            return false;
        if (texts ? !find_text(r, c, target, &text) : !find_table(r, c, target, &table))
            return false;
    }
    return true;
}

static tq_status read_texts(tq_reading *r, uint64_t at, uint32_t count, tq_cell *cell)
{
    tq_bytes *strings;
    tq_status status = tq_region_get(&r->tree->region, count, sizeof *strings, &strings, r->error);
    for (uint32_t i = 0; status == TQ_OK && i < count; i++) {
        uint64_t element = at + 4 + 4 * (uint64_t)i;
        tq_vector text;
        status = tq_vector_find(r->file, (size_t)(element + tq_load_u32(r->file.data + element)), 1, &text, r->error);
        if (status == TQ_OK)
            strings[i] = tq_vector_bytes(&text, 1);
    }
    *cell = (tq_cell){.slot = cell->slot, .kind = TQ_CELL_STRINGS, .align = 4, .count = count, .at = at};
    cell->strings = status == TQ_OK ? strings : NULL;
    return status;
}

static tq_status read_unknown_tables(tq_reading *r, uint64_t at, uint32_t count, unsigned depth, tq_cell *cell)
{
    tq_tree_node **tables;
    tq_status status = tq_region_get(&r->tree->region, count, sizeof *tables, &tables, r->error);
    for (uint32_t i = 0; status == TQ_OK && i < count; i++) {
        uint64_t element = at + 4 + 4 * (uint64_t)i;
        tq_table table;
        status = tq_table_find(r->file, (size_t)(element + tq_load_u32(r->file.data + element)), &table, r->error);
        if (status == TQ_OK)
            status = read_unknown_table(r, &table, depth, &tables[i]);
    }
    *cell = (tq_cell){.slot = cell->slot, .kind = TQ_CELL_TABLES, .align = 4, .count = count, .at = at};
    cell->tables = status == TQ_OK ? tables : NULL;
    return status;
}

/* The count of the vector at `at`; 0: too large for the bytes up to `end`. */
static uint32_t count_at(const tq_reading *r, uint64_t at, uint64_t end)
{
    uint32_t count = end >= at + 4 ? tq_load_u32(r->file.data + at) : 0;
    return count <= end - at - 4 ? count : 0;
}

static tq_status follow_offsets(tq_reading *r, const tq_claims *c, uint64_t at, unsigned depth, tq_cell *cell,
                                bool *found)
{
    uint64_t end = tq_claims_next(r, c, at);
    uint32_t count = end >= at + 4 ? count_at(r, at, end) : 0;
    if (!count || 4 * (uint64_t)count > end - at - 4)
        return TQ_OK;
    if (count > r->cells_left || count > r->nodes_left)
        return tq_fail(r->error, TQ_TABLE_BUDGET, at, "an unknown vector of %u elements passes the budget", count);
    r->cells_left -= count;
    if (find_offsets(r, c, at, count, true)) {
        *found = true;
        return read_texts(r, at, count, cell);
    }
    if (find_offsets(r, c, at, count, false)) {
        *found = true;
        return read_unknown_tables(r, at, count, depth, cell);
    }
    return TQ_OK;
}

/* The target of a guess.  False: outside the file, or unaligned; the bytes may have changed since they were checked. */
static bool find_target(const tq_reading *r, const tq_guess *guess, uint64_t *out)
{
    *out = (uint64_t)guess->at + tq_load_u32(r->file.data + guess->at);
    return *out + 4 <= r->end && *out % 4 == 0;
}

/* Reads the target of a guess if its form proves that it is one: a text, a table, or a vector of these. */
static tq_status follow(tq_reading *r, const tq_claims *c, const tq_guess *guess, tq_cell *cell, bool *found)
{
    uint64_t target;
    tq_table table;
    *found = false;
    if (guess->depth == UNKNOWN_DEPTH || !find_target(r, guess, &target) || tq_claims_next(r, c, target) == target)
        return TQ_OK;
    if (!guess->is_union && find_text(r, c, target, cell)) {
        *found = true;
        return TQ_OK;
    }
    if (find_table(r, c, target, &table)) {
        *found = true;
        cell->kind = TQ_CELL_TABLE;
        cell->align = 4;
        return read_unknown_table(r, &table, guess->depth, &cell->table);
    }
    return guess->is_union ? TQ_OK : follow_offsets(r, c, target, guess->depth, cell, found);
}

/* Reads all targets that their form proves; `open` gets the other guesses. */
static tq_status follow_proven(tq_reading *r, const tq_claims *c, tq_guess **open)
{
    tq_status status = TQ_OK;
    while (status == TQ_OK && r->guesses) {
        tq_guess *guess = r->guesses;
        tq_cell cell = {.slot = guess->slot};
        bool found;
        r->guesses = guess->next;
        status = follow(r, c, guess, &cell, &found);
        if (status == TQ_OK && found) {
            status = tq_tree_node_put(r->tree, guess->node, &cell, r->error);
        } else if (guess->is_union) {
            tq_tree_node_drop(guess->node, guess->slot);
            r->tree->lost++;
        } else {
            guess->next = *open;
            *open = guess;
        }
    }
    return status;
}

/* ---- vectors of scalars: their form proves nothing ---- */

/* Whether fewer than 16 zero bytes lie between the offsets `end` and `at`. */
static bool is_next(const tq_reading *r, uint64_t end, uint64_t at)
{
    if (end > at || at - end >= 16)
        return false;
    for (; end < at; end++)
        if (r->file.data[end])
            return false;
    return true;
}

/* Builders leave no gaps: a vector starts behind a claimed span, or behind the last unknown vector, whose elements may
   have any width.  `at` itself has no claim. */
static bool follows_something(const tq_reading *r, const tq_claims *c, uint64_t at, uint64_t last, uint32_t last_count)
{
    const size_t past = tq_claims_first_after(c, at);
    if (past && is_next(r, c->spans[past - 1].end, at))
        return true;
    for (unsigned size = 1; last && size <= MOST_ELEMENT; size *= 2)
        if (is_next(r, last + 4 + (uint64_t)last_count * size, at))
            return true;
    return false;
}

typedef struct candidate {
    uint64_t target;
    tq_guess *guess;
} candidate;

static int compare_targets(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return (x->target > y->target) - (x->target < y->target);
}

/* Copies all bytes that may belong to the elements: their width is unknown, at most MOST_ELEMENT. */
static tq_status put_scalars(tq_reading *r, const candidate *p, uint32_t count, uint64_t room)
{
    uint64_t length = (uint64_t)count * MOST_ELEMENT, first = p->target + 4;
    tq_cell cell = {.slot = p->guess->slot, .kind = TQ_CELL_VECTOR, .count = count};
    cell.align = first % 16 == 0 && count >= DATA_COUNT ? 16 : first % 8 == 0 ? 8 : 4;
    cell.length = length < room ? length : room;
    cell.bytes = r->file.data + first;
    return tq_tree_node_put(r->tree, p->guess->node, &cell, r->error);
}

static tq_status put_vectors(tq_reading *r, const tq_claims *c, const candidate *candidates, size_t count)
{
    uint64_t last = 0;
    uint32_t last_count = 0;
    tq_status status = TQ_OK;
    for (size_t i = 0; status == TQ_OK && i < count; i++) {
        uint64_t at = candidates[i].target, end = tq_claims_next(r, c, at);
        uint32_t elements = end > at ? count_at(r, at, end) : 0;
        if (!elements || (at != last && !follows_something(r, c, at, last, last_count)))
            continue;
        last = at;
        last_count = elements;
        status = put_scalars(r, &candidates[i], elements, end - at - 4);
    }
    return status;
}

static tq_status follow_scalars(tq_reading *r, tq_guess *open)
{
    size_t count = 0;
    candidate *candidates;
    tq_claims c;
    for (tq_guess *guess = open; guess; guess = guess->next)
        count++;
    if (!count)
        return TQ_OK;
    tq_status status = tq_allocate(&r->tree->region.allocator, count, sizeof *candidates, &candidates, r->error);
    if (status != TQ_OK)
        return status;
    count = 0;
    for (; open; open = open->next)
        if (open->depth < UNKNOWN_DEPTH && find_target(r, open, &candidates[count].target))
            candidates[count++].guess = open;
    qsort(candidates, count, sizeof *candidates, compare_targets);
    status = tq_claims_find(r, &c);
    if (status == TQ_OK) {
        status = put_vectors(r, &c, candidates, count);
        tq_release(&r->tree->region.allocator, c.spans);
    }
    tq_release(&r->tree->region.allocator, candidates);
    return status;
}

tq_status tq_resolve_guesses(tq_reading *r)
{
    tq_guess *open = NULL;
    tq_claims c;
    if (!r->guesses)
        return TQ_OK;
    tq_status status = tq_claims_find(r, &c);
    if (status != TQ_OK)
        return status;
    status = follow_proven(r, &c, &open);
    tq_release(&r->tree->region.allocator, c.spans);
    return status == TQ_OK ? follow_scalars(r, open) : status;
}
