/* SPDX-License-Identifier: Apache-2.0
 *
 * From a file to a tree: the fields that the rows know.
 */
#include "flatbuffer/reading.h"
#include "flatbuffer/unknown.h"

enum { DEPTH = 32 };

static tq_status read_table(tq_reading *r, tq_table_id id, size_t at, unsigned depth, tq_tree_node **out);

static tq_status read_vector(tq_reading *r, const tq_field *field, size_t at, tq_cell *cell)
{
    bool is_text = field->shape == TQ_SHAPE_STRING;
    uint8_t size = is_text ? 1 : tq_scalar_size[field->scalar];
    tq_vector vector;
    tq_status status = tq_vector_find(r->file, at, size, &vector, r->error);
    if (status != TQ_OK)
        return status;
    cell->kind = TQ_CELL_VECTOR;
    cell->align = size;
    cell->is_text = is_text;
    cell->count = vector.count;
    cell->length = (uint64_t)vector.count * size;
    cell->bytes = r->file.data + vector.at;
    cell->at = at;
    return TQ_OK;
}

static tq_status read_strings(tq_reading *r, size_t at, tq_cell *cell)
{
    tq_vector vector, string;
    tq_bytes *strings;
    tq_status status = tq_vector_find(r->file, at, 4, &vector, r->error);
    if (status == TQ_OK && vector.count > r->cells_left)
        status = tq_reading_over_budget(r, at, "strings");
    if (status == TQ_OK)
        status = tq_region_get(&r->tree->region, vector.count, sizeof *strings, &strings, r->error);
    if (status != TQ_OK)
        return status;
    r->cells_left -= vector.count;
    for (uint32_t i = 0; status == TQ_OK && i < vector.count; i++) {
        size_t target = 0;
        status = tq_offset_follow(r->file, vector.at + 4 * (size_t)i, &target, r->error);
        if (status == TQ_OK)
            status = tq_vector_find(r->file, target, 1, &string, r->error);
        if (status == TQ_OK)
            strings[i] = tq_vector_bytes(&string, 1);
    }
    cell->kind = TQ_CELL_STRINGS;
    cell->align = 4;
    cell->count = vector.count;
    cell->strings = strings;
    cell->at = at;
    return status;
}

static tq_status read_tables(tq_reading *r, const tq_field *field, size_t at, unsigned depth, tq_cell *cell)
{
    tq_vector vector;
    tq_tree_node **tables;
    tq_status status = tq_vector_find(r->file, at, 4, &vector, r->error);
    if (status == TQ_OK && vector.count > r->nodes_left)
        status = tq_reading_over_budget(r, at, "tables");
    if (status == TQ_OK)
        status = tq_region_get(&r->tree->region, vector.count, sizeof *tables, &tables, r->error);
    if (status != TQ_OK)
        return status;
    for (uint32_t i = 0; status == TQ_OK && i < vector.count; i++) {
        size_t target = 0;
        status = tq_offset_follow(r->file, vector.at + 4 * (size_t)i, &target, r->error);
        if (status == TQ_OK)
            status = read_table(r, field->detail, target, depth, &tables[i]);
    }
    cell->kind = TQ_CELL_TABLES;
    cell->align = 4;
    cell->count = vector.count;
    cell->tables = tables;
    cell->at = at;
    return status;
}

/* A union of unknown type gets no cell here; unknown.c reads it. */
static tq_status read_union(tq_reading *r, const tq_table *table, const tq_field *field, size_t at, unsigned depth,
                            tq_cell *cell)
{
    size_t type_at = tq_slot_at(table, field->slot - 1), target = 0;
    tq_table_id member = TQ_TABLE_NONE;
    if (type_at && tq_bytes_hold(r->file, type_at, 1))
        member = tq_union_member(field->detail, r->file.data[type_at]);
    if (member == TQ_TABLE_NONE) {
        cell->align = 0;
        return TQ_OK;
    }
    tq_status status = tq_offset_follow(r->file, at, &target, r->error);
    cell->kind = TQ_CELL_TABLE;
    cell->align = 4;
    return status == TQ_OK ? read_table(r, member, target, depth, &cell->table) : status;
}

static tq_status read_target(tq_reading *r, const tq_field *field, size_t at, unsigned depth, tq_cell *cell)
{
    size_t target = 0;
    tq_status status = tq_offset_follow(r->file, at, &target, r->error);
    if (status != TQ_OK)
        return status;
    switch ((tq_field_shape)field->shape) {
    case TQ_SHAPE_TABLE:
        cell->kind = TQ_CELL_TABLE;
        cell->align = 4;
        return read_table(r, field->detail, target, depth, &cell->table);
    case TQ_SHAPE_VEC_TABLE: return read_tables(r, field, target, depth, cell);
    case TQ_SHAPE_VEC_STRING: return read_strings(r, target, cell);
    default: return read_vector(r, field, target, cell);
    }
}

static void read_inline(tq_reading *r, size_t at, uint8_t size, tq_cell *cell)
{
    cell->kind = TQ_CELL_INLINE;
    cell->align = size;
    cell->length = size;
    memcpy(cell->scalar, r->file.data + at, size);
}

/* Adds the field at `at`, if all of its bytes lie in the file. */
static tq_status read_field(tq_reading *r, const tq_table *table, const tq_field *field, size_t at, unsigned depth,
                            tq_tree_node *node)
{
    tq_cell cell = {.slot = field->slot};
    tq_status status = TQ_OK;
    uint8_t size = tq_scalar_size[field->scalar];
    if (!tq_bytes_hold(r->file, at, size))
        return TQ_OK;
    if (field->shape == TQ_SHAPE_SCALAR || field->shape == TQ_SHAPE_ENUM)
        read_inline(r, at, size, &cell);
    else if (field->shape == TQ_SHAPE_UNION)
        status = read_union(r, table, field, at, depth, &cell);
    else
        status = read_target(r, field, at, depth, &cell);
    if (status != TQ_OK || !cell.align)
        return status;
    return tq_tree_node_put(r->tree, node, &cell, r->error);
}

static tq_status read_known(tq_reading *r, const tq_table *table, unsigned depth, tq_tree_node *node)
{
    tq_status status = TQ_OK;
    for (unsigned i = tq_tables[node->id].first; status == TQ_OK && i < tq_tables[node->id + 1].first; i++) {
        const tq_field *field = &tq_fields[i];
        if (field->shape == TQ_SHAPE_UNION) {
            size_t type_at = tq_slot_at(table, field->slot - 1);
            tq_cell cell = {.slot = (uint16_t)(field->slot - 1)};
            if (type_at && tq_bytes_hold(r->file, type_at, 1)) {
                read_inline(r, type_at, 1, &cell);
                status = tq_tree_node_put(r->tree, node, &cell, r->error);
            }
        }
        size_t at = tq_slot_at(table, field->slot);
        if (at && status == TQ_OK)
            status = read_field(r, table, field, at, depth + 1, node);
    }
    return status;
}

static tq_status read_table(tq_reading *r, tq_table_id id, size_t at, unsigned depth, tq_tree_node **out)
{
    tq_table table;
    if (depth >= DEPTH)
        return tq_fail(r->error, TQ_DEPTH_BUDGET, at, "tables nest more than %u deep", depth);
    tq_status status = tq_table_find(r->file, at, &table, r->error);
    if (status == TQ_OK)
        status = tq_reading_node(r, &table, id, out);
    if (status == TQ_OK)
        status = read_known(r, &table, depth, *out);
    if (status == TQ_OK)
        status = tq_read_unknown_slots(r, &table, *out);
    return status;
}

tq_status tq_tree_read(tq_bytes file, const tq_table *root, tq_table_id id, uint64_t end, const tq_allocator *allocator,
                       tq_tree *out, tq_error *error)
{
    tq_tree tree = {.root = NULL};
    tq_region_open(allocator, &tree.region);
    tq_reading r = {
        .tree = &tree,
        .file = file,
        .end = end < file.size ? end : file.size,
        .nodes_left = file.size / 2 + 2048,
        .cells_left = (uint64_t)file.size + (64 << 10),
        .slots_left = (uint64_t)file.size * 16 + (1 << 20),
        .bytes_left = (uint64_t)file.size * 4 + (16 << 20),
        .error = error,
    };
    tq_status status = read_table(&r, id, root->at, 0, &tree.root);
    if (status == TQ_OK)
        status = tq_resolve_guesses(&r);
    if (status == TQ_OK)
        *out = tree;
    else
        tq_region_close(&tree.region);
    return status;
}
