/* SPDX-License-Identifier: Apache-2.0 */
#include "flatbuffer/tree.h"

enum { COPY_DEPTH = 64 };

tq_status tq_tree_open(tq_table_id root, const tq_allocator *allocator, tq_tree *out, tq_error *error)
{
    tq_tree tree = {.root = NULL};
    tq_region_open(allocator, &tree.region);
    tq_status status = tq_tree_node_make(&tree, root, &tree.root, error);
    if (status == TQ_OK)
        *out = tree;
    else
        tq_region_close(&tree.region);
    return status;
}

void tq_tree_close(tq_tree *tree)
{
    tq_region_close(&tree->region);
    tree->root = NULL;
}

tq_status tq_tree_node_make(tq_tree *tree, tq_table_id id, tq_tree_node **out, tq_error *error)
{
    tq_tree_node *node;
    tq_status status = tq_region_get(&tree->region, 1, sizeof *node, &node, error);
    if (status == TQ_OK) {
        node->id = id;
        *out = node;
    }
    return status;
}

/* The index of the first cell whose slot is >= `slot`. */
static uint32_t index_of(const tq_tree_node *node, unsigned slot)
{
    uint32_t low = 0, high = node->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (node->cells[middle].slot < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

tq_cell *tq_tree_node_cell(const tq_tree_node *node, unsigned slot)
{
    uint32_t place = index_of(node, slot);
    return place < node->count && node->cells[place].slot == slot ? &node->cells[place] : NULL;
}

static tq_status reserve(tq_tree *tree, tq_tree_node *node, tq_error *error)
{
    if (node->count < node->capacity)
        return TQ_OK;
    uint32_t capacity = node->capacity ? 2 * node->capacity : 4;
    tq_cell *cells;
    tq_status status = tq_region_get(&tree->region, capacity, sizeof *cells, &cells, error);
    if (status != TQ_OK)
        return status;
    if (node->count)
        memcpy(cells, node->cells, node->count * sizeof *cells);
    node->cells = cells;
    node->capacity = capacity;
    return TQ_OK;
}

tq_status tq_tree_node_put(tq_tree *tree, tq_tree_node *node, const tq_cell *cell, tq_error *error)
{
    uint32_t place = index_of(node, cell->slot);
    if (place == node->count || node->cells[place].slot != cell->slot) {
        tq_cell copy = *cell; /* `cell` may lie in the array that moves below */
        tq_status status = reserve(tree, node, error);
        if (status != TQ_OK)
            return status;
        memmove(&node->cells[place + 1], &node->cells[place], (node->count - place) * sizeof *cell);
        node->count++;
        node->cells[place] = copy;
    } else {
        node->cells[place] = *cell;
    }
    return TQ_OK;
}

void tq_tree_node_drop(tq_tree_node *node, unsigned slot)
{
    uint32_t place = index_of(node, slot);
    if (place < node->count && node->cells[place].slot == slot) {
        node->count--;
        memmove(&node->cells[place], &node->cells[place + 1], (node->count - place) * sizeof *node->cells);
    }
}

tq_status tq_cell_settle(tq_tree *tree, tq_cell *cell, tq_error *error)
{
    uint8_t *bytes;
    if (!cell->is_made)
        return TQ_OK;
    tq_status status = tq_region_get(&tree->region, cell->length, 1, &bytes, error);
    if (status != TQ_OK)
        return status;
    status = cell->maker->make(cell->maker, bytes, error);
    if (status != TQ_OK)
        return status;
    cell->bytes = bytes;
    cell->is_made = false;
    return TQ_OK;
}

/* ---- copies ---- */

static tq_status copy_node(tq_tree *tree, const tq_tree_node *node, unsigned depth, tq_tree_node **out,
                           tq_error *error);

static tq_status copy_tables(tq_tree *tree, tq_cell *cell, unsigned depth, tq_error *error)
{
    tq_tree_node **tables;
    tq_status status = tq_region_get(&tree->region, cell->count, sizeof *tables, &tables, error);
    for (uint32_t i = 0; status == TQ_OK && i < cell->count; i++)
        status = copy_node(tree, cell->tables[i], depth, &tables[i], error);
    if (status == TQ_OK)
        cell->tables = tables;
    return status;
}

static tq_status copy_node(tq_tree *tree, const tq_tree_node *node, unsigned depth, tq_tree_node **out, tq_error *error)
{
    tq_tree_node *copy;
    if (depth == COPY_DEPTH)
        return tq_fail(error, TQ_DEPTH_BUDGET, TQ_NO_OFFSET, "tables nest more than %d deep", COPY_DEPTH);
    tq_status status = tq_tree_node_make(tree, node->id, &copy, error);
    for (uint32_t i = 0; status == TQ_OK && i < node->count; i++) {
        tq_cell cell = node->cells[i];
        if (cell.kind == TQ_CELL_TABLE)
            status = copy_node(tree, node->cells[i].table, depth + 1, &cell.table, error);
        else if (cell.kind == TQ_CELL_TABLES)
            status = copy_tables(tree, &cell, depth + 1, error);
        if (status == TQ_OK)
            status = tq_tree_node_put(tree, copy, &cell, error);
    }
    if (status == TQ_OK)
        *out = copy;
    return status;
}

tq_status tq_tree_node_copy(tq_tree *tree, const tq_tree_node *node, tq_tree_node **out, tq_error *error)
{
    return copy_node(tree, node, 0, out, error);
}

/* ---- fields ---- */

tq_value tq_tree_node_scalar(const tq_tree_node *node, tq_field_id field)
{
    const tq_cell *cell = tq_tree_node_field(node, field);
    const tq_table none = {.at = 0};
    if (!cell || cell->kind != TQ_CELL_INLINE || cell->length != tq_scalar_size[tq_fields[field].scalar])
        return tq_get_scalar(&none, field);
    return tq_load_scalar(cell->scalar, tq_fields[field].scalar);
}

tq_status tq_tree_node_set_scalar(tq_tree *tree, tq_tree_node *node, tq_field_id field, const uint8_t *bytes,
                                  tq_error *error)
{
    uint8_t size = tq_scalar_size[tq_fields[field].scalar];
    tq_cell cell = {.slot = tq_fields[field].slot, .kind = TQ_CELL_INLINE, .align = size, .length = size};
    memcpy(cell.scalar, bytes, size);
    return tq_tree_node_put(tree, node, &cell, error);
}

tq_status tq_tree_node_set_u64(tq_tree *tree, tq_tree_node *node, tq_field_id field, uint64_t value, tq_error *error)
{
    uint8_t bytes[8];
    tq_store_u64(bytes, value);
    return tq_tree_node_set_scalar(tree, node, field, bytes, error);
}
