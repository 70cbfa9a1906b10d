/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk over a tree that both plans and writes: tables with their targets, then trailing data.
 */
#include "base/checked.h"
#include "flatbuffer/writer_internal.h"

/* TRAILING: zeros behind the last constant.  XNNPACK's kernels may read 16 bytes past a constant's end
   (XNN_EXTRA_BYTES); the converter's files have as many (flatbuffer_export.cc). */
enum { DEPTH = 64, TABLE_LIMIT = UINT16_MAX, LARGE_ALIGNMENT = 8, OUTSIDE_ALIGNMENT = 16, TRAILING = 16 };

/* The state of one walk, which plans (sink NULL) or writes. */
typedef struct writing {
    tq_plan *plan;
    const tq_sink *sink; /* NULL while planning */
    bool has_large;      /* tq_trailing_write has written the large data already */
    uint64_t at;
    tq_error *error;
} writing;

/* ---- bytes ---- */

static tq_status put(writing *w, const void *data, uint64_t size)
{
    w->at += size;
    if (!w->sink || !size)
        return TQ_OK;
    return w->sink->put(w->sink->context, (tq_bytes){data, (size_t)size}, w->error);
}

/* Whether the cell's bytes are trailing data. */
static bool is_large(const tq_cell *cell)
{
    return cell->kind == TQ_CELL_OUTSIDE || (cell->kind == TQ_CELL_VECTOR && cell->align > LARGE_ALIGNMENT);
}

/* Data of a maker: made in the sink's memory, or, where the sink has none, in other memory, and then put. */
static tq_status put_made(writing *w, const tq_cell *cell)
{
    const size_t size = (size_t)cell->length;
    uint8_t *room = w->sink->reserve ? w->sink->reserve(w->sink->context, size) : NULL, *between;
    if (room) {
        w->at += size;
        return cell->maker->make(cell->maker, room, w->error);
    }
    tq_status status = tq_allocate(&w->plan->region.allocator, size, 1, &between, w->error);
    if (status != TQ_OK)
        return status;
    status = cell->maker->make(cell->maker, between, w->error);
    if (status == TQ_OK)
        status = put(w, between, size);
    tq_release(&w->plan->region.allocator, between);
    return status;
}

static const uint8_t zeros[16];

/* Zeros until at + ahead is a multiple of `align`, at most 16. */
static tq_status pad(writing *w, unsigned align, uint64_t ahead)
{
    return put(w, zeros, (align - (w->at + ahead) % align) % align);
}

static tq_status put_u32(writing *w, uint64_t value)
{
    uint8_t bytes[4];
    tq_store_u32(bytes, (uint32_t)value); /* the plan's limit keeps it below 2^31 */
    return put(w, bytes, sizeof bytes);
}

static tq_status put_data(writing *w, const tq_cell *cell)
{
    if (w->has_large && is_large(cell) && w->sink->reserve(w->sink->context, (size_t)cell->length)) {
        w->at += cell->length;
        return TQ_OK;
    }
    return cell->is_made && w->sink ? put_made(w, cell) : put(w, cell->is_made ? NULL : cell->bytes, cell->length);
}

static tq_status put_vector(writing *w, uint32_t count, const void *data, uint64_t length, bool is_text)
{
    tq_status status = put_u32(w, count);
    if (status == TQ_OK)
        status = put(w, data, length);
    return status == TQ_OK && is_text ? put(w, "", 1) : status;
}

/* Pads so that element 0 of the next vector, behind the 4 bytes of the count, is aligned. */
static tq_status begin_vector(writing *w, unsigned align)
{
    return pad(w, align < 4 ? 4 : align, 4);
}

/* ---- lists of cells with trailing data ---- */

static tq_status append(tq_plan *plan, tq_cell ***list, size_t *count, size_t *room, tq_cell *cell, tq_error *error)
{
    if (*count == *room) {
        size_t larger = *room ? 2 * *room : 64;
        tq_cell **cells;
        tq_status status = tq_region_get(&plan->region, larger, sizeof *cells, &cells, error);
        if (status != TQ_OK)
            return status;
        if (*count)
            memcpy(cells, *list, *count * sizeof *cells);
        *list = cells;
        *room = larger;
    }
    (*list)[(*count)++] = cell;
    return TQ_OK;
}

/* ---- tables ---- */

static uint64_t inline_size(const tq_cell *cell)
{
    return cell->kind == TQ_CELL_INLINE ? cell->length : cell->kind == TQ_CELL_OUTSIDE ? 8 : 4;
}

static unsigned inline_align(const tq_cell *cell)
{
    return cell->kind == TQ_CELL_INLINE ? cell->align : cell->kind == TQ_CELL_OUTSIDE ? 8 : 4;
}

/* Offsets of the fields in the table: by descending alignment, then by slot, so that no padding lies between scalars.
   The first field follows the 4 bytes of the soffset, so a table of 8-byte fields starts 4 bytes before a multiple of
   8. */
static tq_status lay_out(tq_tree_node *node, uint8_t *bytes, uint16_t size, tq_error *error)
{
    uint64_t end = 4;
    node->align = 4;
    for (unsigned now = 8; now; now /= 2) {
        for (uint32_t i = 0; i < node->count; i++) {
            const tq_cell *cell = &node->cells[i];
            if (inline_align(cell) != now)
                continue;
            if (now == 8)
                node->align = 8;
            uint64_t at = now == 8 ? (end + 3) / 8 * 8 + 4 : (end + now - 1) / now * now;
            end = at + inline_size(cell);
            if (end > TABLE_LIMIT)
                return tq_fail(error, TQ_TOO_LARGE, TQ_NO_OFFSET, "a table of more than %d bytes", TABLE_LIMIT);
            tq_store_u16(bytes + 4 + 2 * (size_t)cell->slot, (uint16_t)at);
        }
    }
    tq_store_u16(bytes, size);
    tq_store_u16(bytes + 2, (uint16_t)end);
    return TQ_OK;
}

static tq_status find_layout(writing *w, tq_tree_node *node)
{
    uint8_t small[4 + 2 * 64] = {0}, *bytes = small;
    unsigned slots = node->count ? node->cells[node->count - 1].slot + 1u : 0;
    if (4 + 2 * slots > UINT16_MAX)
        return tq_fail(w->error, TQ_TOO_LARGE, TQ_NO_OFFSET, "a table of %u fields", slots);
    uint16_t size = (uint16_t)(4 + 2 * slots);
    tq_status status = TQ_OK;
    tq_vtable *found;
    if (size > sizeof small)
        status = tq_region_get(&w->plan->region, 1, size, &bytes, w->error);
    if (status == TQ_OK)
        status = lay_out(node, bytes, size, w->error);
    if (status == TQ_OK)
        status = tq_vtable_intern(w->plan, bytes, size, &found, w->error);
    if (status == TQ_OK)
        node->vtable = found;
    return status;
}

/* The vtable is written before its first table. */
static tq_status put_vtable(writing *w, tq_vtable *v)
{
    if (v->at && v->at < w->at)
        return TQ_OK;
    tq_status status = pad(w, 2, 0);
    v->at = w->at;
    return status == TQ_OK ? put(w, v->bytes, v->size) : status;
}

static tq_status put_field(writing *w, const tq_cell *cell)
{
    uint8_t bytes[8];
    switch ((tq_cell_kind)cell->kind) {
    case TQ_CELL_INLINE: return put(w, cell->length <= sizeof cell->scalar ? cell->scalar : cell->bytes, cell->length);
    case TQ_CELL_OUTSIDE: tq_store_u64(bytes, cell->at); return put(w, bytes, 8);
    case TQ_CELL_TABLE: return put_u32(w, cell->table->at - w->at);
    default: return put_u32(w, cell->at - w->at);
    }
}

/* The soffset and the fields, in the order of lay_out(). */
static tq_status put_inline(writing *w, const tq_tree_node *node)
{
    tq_status status = put_u32(w, node->at - node->vtable->at);
    for (unsigned now = 8; now; now /= 2)
        for (uint32_t i = 0; status == TQ_OK && i < node->count; i++) {
            const tq_cell *cell = &node->cells[i];
            if (inline_align(cell) != now)
                continue;
            status = pad(w, now, 0);
            if (status == TQ_OK)
                status = put_field(w, cell);
        }
    return status;
}

static tq_status put_table(writing *w, tq_tree_node *node, unsigned depth);

static tq_status put_strings(writing *w, const tq_cell *cell)
{
    uint64_t next = w->at + 4 + 4 * (uint64_t)cell->count;
    tq_status status = put_u32(w, cell->count);
    for (uint32_t i = 0; status == TQ_OK && i < cell->count; i++) {
        next = (next + 3) / 4 * 4;
        status = put_u32(w, next - w->at);
        next += 4 + (uint64_t)cell->strings[i].size + 1;
    }
    for (uint32_t i = 0; status == TQ_OK && i < cell->count; i++) {
        const tq_bytes *string = &cell->strings[i];
        status = pad(w, 4, 0);
        if (status == TQ_OK)
            status = put_vector(w, (uint32_t)string->size, string->data, string->size, true);
    }
    return status;
}

static tq_status put_tables(writing *w, const tq_cell *cell, unsigned depth)
{
    tq_status status = put_u32(w, cell->count);
    for (uint32_t i = 0; status == TQ_OK && i < cell->count; i++)
        status = put_u32(w, cell->tables[i]->at - w->at);
    for (uint32_t i = 0; status == TQ_OK && i < cell->count; i++)
        status = put_table(w, cell->tables[i], depth);
    return status;
}

/* The target of a field, unless it is trailing data. */
static tq_status put_target(writing *w, tq_cell *cell, unsigned depth)
{
    tq_plan *plan = w->plan;
    if (cell->kind == TQ_CELL_INLINE)
        return TQ_OK;
    if (cell->kind == TQ_CELL_TABLE)
        return put_table(w, cell->table, depth);
    if (cell->kind == TQ_CELL_VECTOR && is_large(cell))
        return w->sink ? TQ_OK : append(plan, &plan->large, &plan->large_count, &plan->large_room, cell, w->error);
    if (cell->kind == TQ_CELL_OUTSIDE)
        return w->sink ? TQ_OK
                       : append(plan, &plan->outside, &plan->outside_count, &plan->outside_room, cell, w->error);
    tq_status status = begin_vector(w, cell->kind == TQ_CELL_VECTOR ? cell->align : 4);
    cell->at = w->at;
    if (status != TQ_OK)
        return status;
    if (cell->kind == TQ_CELL_STRINGS)
        return put_strings(w, cell);
    if (cell->kind == TQ_CELL_TABLES)
        return put_tables(w, cell, depth);
    status = put_u32(w, cell->count);
    if (status == TQ_OK)
        status = put_data(w, cell);
    return status == TQ_OK && cell->is_text ? put(w, "", 1) : status;
}

/* Planning visits each node once: a second visit means a node in two places, or inside itself. */
static tq_status visit(writing *w, tq_tree_node *node)
{
    if (w->sink)
        return TQ_OK;
    if (node->written == w->plan->writing)
        return tq_fail(w->error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "a table %s occurs in two places; put a copy into one",
                       node->id == TQ_TABLE_NONE ? "of unknown type" : tq_tables[node->id].name);
    node->written = w->plan->writing;
    return find_layout(w, node);
}

static tq_status put_table(writing *w, tq_tree_node *node, unsigned depth)
{
    if (depth == DEPTH)
        return tq_fail(w->error, TQ_DEPTH_BUDGET, TQ_NO_OFFSET, "tables nest more than %d deep", DEPTH);
    tq_status status = visit(w, node);
    if (status == TQ_OK)
        status = put_vtable(w, node->vtable);
    if (status == TQ_OK)
        status = node->align == 8 ? pad(w, 8, 4) : pad(w, 4, 0);
    node->at = w->at;
    if (status == TQ_OK)
        status = put_inline(w, node);
    for (uint32_t i = 0; status == TQ_OK && i < node->count; i++)
        status = put_target(w, &node->cells[i], depth + 1);
    return status;
}

static tq_status put_flatbuffer(writing *w)
{
    const tq_tree *tree = w->plan->tree;
    tq_status status = put_u32(w, tree->root->at);
    if (status == TQ_OK && tree->has_identifier)
        status = put(w, tree->identifier, sizeof tree->identifier);
    return status == TQ_OK ? put_table(w, tree->root, 0) : status;
}

/* ---- trailing data ---- */

/* The cells' offsets ascend, except those that share an earlier cell's. */
static tq_status put_trailing(writing *w, tq_cell **cells, size_t count, bool is_vector)
{
    tq_status status = TQ_OK;
    for (size_t i = 0; status == TQ_OK && i < count; i++) {
        const tq_cell *cell = cells[i];
        if (cell->at < w->at)
            continue;
        status = put(w, zeros, cell->at - w->at); /* alignment to 16 at most: less than 16 */
        if (status == TQ_OK && is_vector)
            status = put_u32(w, cell->count);
        if (status == TQ_OK)
            status = put_data(w, cell);
    }
    return status;
}

/* ---- the file ---- */

void tq_plan_close(tq_plan *plan)
{
    tq_region_close(&plan->region);
}

static tq_status plan_all(tq_plan *plan, uint64_t limit, tq_error *error)
{
    writing w = {.plan = plan, .error = error};
    tq_status status = put_flatbuffer(&w);
    plan->flatbuffer_size = w.at;
    if (status == TQ_OK)
        status = tq_trailing_assign(plan, plan->large, plan->large_count, 4, 4, &plan->flatbuffer_size, error);
    if (status == TQ_OK && plan->flatbuffer_size > limit)
        status = tq_fail(error, TQ_TOO_LARGE, TQ_NO_OFFSET, "the flatbuffer would have %llu bytes; at most %llu fit",
                         (unsigned long long)plan->flatbuffer_size, (unsigned long long)limit);
    plan->size = plan->flatbuffer_size;
    if (status == TQ_OK)
        status = tq_trailing_assign(plan, plan->outside, plan->outside_count, 0, OUTSIDE_ALIGNMENT, &plan->size, error);
    if (status == TQ_OK && plan->large_count + plan->outside_count && !tq_add_u64(plan->size, TRAILING, &plan->size))
        status = tq_fail(error, TQ_TOO_LARGE, TQ_NO_OFFSET, "the file passes 2^64 bytes");
    return status;
}

tq_status tq_plan_open(tq_tree *tree, uint64_t limit, bool share_equal, tq_plan *out, tq_error *error)
{
    tq_plan plan = {.tree = tree, .share_equal = share_equal, .writing = ++tree->writings};
    tq_region_open(&tree->region.allocator, &plan.region);
    if (limit > TQ_FLATBUFFER_LIMIT)
        limit = TQ_FLATBUFFER_LIMIT;
    tq_status status = plan_all(&plan, limit, error);
    if (status == TQ_OK)
        *out = plan;
    else
        tq_plan_close(&plan);
    return status;
}

static tq_status write_all(writing *where)
{
    writing w = *where;
    tq_plan *plan = w.plan;
    tq_status status = put_flatbuffer(&w);
    if (status == TQ_OK)
        status = put_trailing(&w, plan->large, plan->large_count, true);
    if (status == TQ_OK)
        status = put_trailing(&w, plan->outside, plan->outside_count, false);
    return status == TQ_OK ? put(&w, zeros, plan->size - w.at) : status; /* TRAILING, or none */
}

tq_status tq_plan_write(tq_plan *plan, const tq_sink *sink, tq_error *error)
{
    writing w = {.plan = plan, .sink = sink, .error = error};
    uint8_t *whole = sink->reserve ? sink->reserve(sink->context, (size_t)plan->size) : NULL;
    if (!whole)
        return write_all(&w);
    tq_memory_sink memory = {whole, (size_t)plan->size};
    tq_sink inside = tq_sink_to_memory(&memory);
    tq_status status = tq_trailing_write(plan, plan->large, plan->large_count, 4, whole, error);
    if (status == TQ_OK)
        status = tq_trailing_write(plan, plan->outside, plan->outside_count, 0, whole, error);
    w.sink = &inside;
    w.has_large = true;
    return status == TQ_OK ? write_all(&w) : status;
}
