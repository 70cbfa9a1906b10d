/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rewrite.h"

enum { BUFFER_ALIGNMENT = 16 }; /* schema.fbs: Buffer.data (force_align: 16) */

/* ---- data outside the flatbuffer ---- */

/* The fields with offset and size of a table's outside bytes. */
typedef struct outside_fields {
    tq_field_id offset, size, inside;
} outside_fields;

static const outside_fields of_buffer = {TQ_Buffer_offset, TQ_Buffer_size, TQ_Buffer_data};
static const outside_fields of_operator = {TQ_Operator_large_custom_options_offset,
                                           TQ_Operator_large_custom_options_size, TQ_FIELD_COUNT};

/* Replaces offset and size by a cell of the bytes, if these lie in the file. */
static tq_status take_outside(tq_tree *tree, tq_tree_node *node, const outside_fields *fields, tq_bytes file,
                              tq_error *error)
{
    uint64_t offset = tq_tree_node_scalar(node, fields->offset).u, size = tq_tree_node_scalar(node, fields->size).u;
    bool inside = fields->inside != TQ_FIELD_COUNT && tq_tree_node_field(node, fields->inside);
    if (inside || offset < TQ_FIRST_OUTSIDE_OFFSET || !tq_bytes_hold(file, offset, size))
        return TQ_OK;
    tq_cell cell = {.slot = tq_fields[fields->offset].slot, .kind = TQ_CELL_OUTSIDE, .length = size};
    cell.bytes = file.data + offset;
    return tq_tree_node_put(tree, node, &cell, error);
}

/* The elements of a vector of tables; none where the field is absent. */
static tq_tree_node **elements(const tq_tree_node *node, tq_field_id field, uint32_t *count)
{
    const tq_cell *cell = node ? tq_tree_node_field(node, field) : NULL;
    bool found = cell && cell->kind == TQ_CELL_TABLES;
    *count = found ? cell->count : 0;
    return found ? cell->tables : NULL;
}

static tq_status take_all_outside(tq_tree *tree, tq_bytes file, tq_error *error)
{
    uint32_t buffers, subgraphs, operators;
    tq_tree_node **buffer = elements(tree->root, TQ_Model_buffers, &buffers);
    tq_tree_node **subgraph = elements(tree->root, TQ_Model_subgraphs, &subgraphs);
    tq_status status = TQ_OK;
    for (uint32_t i = 0; status == TQ_OK && i < buffers; i++)
        status = take_outside(tree, buffer[i], &of_buffer, file, error);
    for (uint32_t i = 0; i < subgraphs; i++) {
        tq_tree_node **op = elements(subgraph[i], TQ_SubGraph_operators, &operators);
        for (uint32_t k = 0; status == TQ_OK && k < operators; k++)
            status = take_outside(tree, op[k], &of_operator, file, error);
    }
    return status;
}

/* The least offset of outside bytes; the file's end where there are none. */
static uint64_t first_outside(const tq_model *model)
{
    uint64_t first = model->file.size;
    for (size_t i = 0; i < model->buffers.count; i++) {
        tq_table buffer = tq_vector_table(&model->buffers, i);
        uint64_t offset = tq_get_u64(&buffer, TQ_Buffer_offset);
        if (offset >= TQ_FIRST_OUTSIDE_OFFSET && !tq_slot_at(&buffer, tq_fields[TQ_Buffer_data].slot) && offset < first)
            first = offset;
    }
    for (size_t i = 0; i < model->subgraphs.count; i++) {
        tq_subgraph subgraph = tq_model_subgraph(model, i);
        for (size_t k = 0; k < subgraph.operators.count; k++) {
            tq_table op = tq_vector_table(&subgraph.operators, k);
            uint64_t offset = tq_get_u64(&op, TQ_Operator_large_custom_options_offset);
            if (offset >= TQ_FIRST_OUTSIDE_OFFSET && offset < first)
                first = offset;
        }
    }
    return first;
}

static void align_buffers(tq_tree *tree)
{
    uint32_t buffers;
    tq_tree_node **buffer = elements(tree->root, TQ_Model_buffers, &buffers);
    for (uint32_t i = 0; i < buffers; i++) {
        tq_cell *data = tq_tree_node_field(buffer[i], TQ_Buffer_data);
        if (data && data->kind == TQ_CELL_VECTOR)
            data->align = BUFFER_ALIGNMENT;
    }
}

tq_status tq_rewrite_open(const tq_model *model, tq_tree *out, tq_error *error)
{
    tq_tree tree;
    tq_status status =
        tq_tree_read(model->file, &model->root, TQ_TABLE_Model, first_outside(model), &model->allocator, &tree, error);
    if (status != TQ_OK)
        return status;
    tree.has_identifier = tq_model_has_identifier(model);
    memcpy(tree.identifier, model->file.data + 4, sizeof tree.identifier);
    align_buffers(&tree);
    status = take_all_outside(&tree, model->file, error);
    if (status == TQ_OK)
        *out = tree;
    else
        tq_tree_close(&tree);
    return status;
}

tq_status tq_rewrite_new(const tq_allocator *allocator, tq_tree *out, tq_error *error)
{
    static const uint8_t version[] = {3, 0, 0, 0};
    tq_tree tree;
    tq_status status = tq_tree_open(TQ_TABLE_Model, allocator, &tree, error);
    if (status != TQ_OK)
        return status;
    tree.has_identifier = true;
    memcpy(tree.identifier, TQ_MODEL_IDENTIFIER, sizeof tree.identifier);
    status = tq_tree_node_set_scalar(&tree, tree.root, TQ_Model_version, version, error);
    if (status == TQ_OK)
        *out = tree;
    else
        tq_tree_close(&tree);
    return status;
}

/* ---- buffers ---- */

/* A cell of `size` bytes inside the flatbuffer; the caller sets the bytes or the maker. */
static tq_cell data_cell(uint64_t size)
{
    return (tq_cell){
        .slot = tq_fields[TQ_Buffer_data].slot,
        .kind = TQ_CELL_VECTOR,
        .align = BUFFER_ALIGNMENT,
        .count = (uint32_t)size,
        .length = size,
    };
}

static tq_status put_data(tq_tree *tree, tq_tree_node *buffer, tq_cell cell, tq_error *error)
{
    tq_status status;
    if (cell.length > TQ_FLATBUFFER_LIMIT) { /* too many for any flatbuffer */
        cell.slot = tq_fields[TQ_Buffer_offset].slot;
        cell.kind = TQ_CELL_OUTSIDE;
        tq_tree_node_drop(buffer, tq_fields[TQ_Buffer_data].slot);
        status = tq_tree_node_set_u64(tree, buffer, TQ_Buffer_size, cell.length, error);
        return status == TQ_OK ? tq_tree_node_put(tree, buffer, &cell, error) : status;
    }
    status = tq_tree_node_put(tree, buffer, &cell, error);
    if (status == TQ_OK) {
        tq_tree_node_drop(buffer, tq_fields[TQ_Buffer_offset].slot);
        tq_tree_node_drop(buffer, tq_fields[TQ_Buffer_size].slot);
    }
    return status;
}

tq_status tq_buffer_node_set(tq_tree *tree, tq_tree_node *buffer, tq_bytes bytes, tq_error *error)
{
    tq_cell cell = data_cell(bytes.size);
    cell.bytes = bytes.data;
    if (bytes.data)
        return put_data(tree, buffer, cell, error);
    tq_tree_node_drop(buffer, tq_fields[TQ_Buffer_data].slot);
    tq_tree_node_drop(buffer, tq_fields[TQ_Buffer_offset].slot);
    tq_tree_node_drop(buffer, tq_fields[TQ_Buffer_size].slot);
    return TQ_OK;
}

tq_cell *tq_buffer_node_cell(const tq_tree_node *buffer)
{
    tq_cell *inside = tq_tree_node_field(buffer, TQ_Buffer_data),
            *outside = tq_tree_node_field(buffer, TQ_Buffer_offset);
    return inside || !outside || outside->kind != TQ_CELL_OUTSIDE ? inside : outside;
}

tq_status tq_buffer_node_make(tq_tree *tree, tq_tree_node *buffer, tq_maker *maker, uint64_t size, tq_error *error)
{
    tq_cell cell = data_cell(size);
    cell.maker = maker;
    cell.is_made = true;
    return put_data(tree, buffer, cell, error);
}

static tq_status move_outside(tq_tree *tree, tq_tree_node *buffer, tq_error *error)
{
    const tq_cell *data = tq_tree_node_field(buffer, TQ_Buffer_data);
    if (!data || data->kind != TQ_CELL_VECTOR || !data->length)
        return TQ_OK;
    tq_cell cell = {.slot = tq_fields[TQ_Buffer_offset].slot, .kind = TQ_CELL_OUTSIDE, .length = data->length};
    cell.is_made = data->is_made;
    if (cell.is_made)
        cell.maker = data->maker;
    else
        cell.bytes = data->bytes;
    tq_status status = tq_tree_node_set_u64(tree, buffer, TQ_Buffer_size, cell.length, error);
    if (status == TQ_OK)
        status = tq_tree_node_put(tree, buffer, &cell, error);
    if (status == TQ_OK)
        tq_tree_node_drop(buffer, tq_fields[TQ_Buffer_data].slot);
    return status;
}

static void mark_used(const tq_tree_node *subgraph, uint32_t buffers, uint8_t *is_used)
{
    uint32_t tensors;
    tq_tree_node **tensor = elements(subgraph, TQ_SubGraph_tensors, &tensors);
    for (uint32_t i = 0; i < tensors; i++) {
        uint64_t index = (uint64_t)tq_tree_node_scalar(tensor[i], TQ_Tensor_buffer).i;
        if (index < buffers)
            is_used[index] = 1;
    }
}

/* Moves the bytes of all buffers of tensors behind the flatbuffer.  Buffers of metadata stay: LiteRT reads them inside
   only. */
static tq_status move_constants_outside(tq_tree *tree, tq_error *error)
{
    uint32_t buffers, subgraphs;
    uint8_t *is_used;
    tq_tree_node **buffer = elements(tree->root, TQ_Model_buffers, &buffers);
    tq_tree_node **subgraph = elements(tree->root, TQ_Model_subgraphs, &subgraphs);
    tq_status status = tq_allocate(&tree->region.allocator, buffers, 1, &is_used, error);
    if (status != TQ_OK)
        return status;
    for (uint32_t i = 0; i < subgraphs; i++)
        mark_used(subgraph[i], buffers, is_used);
    for (uint32_t i = 0; status == TQ_OK && i < buffers; i++)
        if (is_used[i])
            status = move_outside(tree, buffer[i], error);
    tq_release(&tree->region.allocator, is_used);
    return status;
}

tq_status tq_rewrite_plan(tq_tree *tree, uint64_t limit, bool share_equal, tq_plan *out, tq_error *error)
{
    tq_status status = tq_plan_open(tree, limit, share_equal, out, error);
    if (status != TQ_TOO_LARGE)
        return status;
    status = move_constants_outside(tree, error);
    return status == TQ_OK ? tq_plan_open(tree, limit, share_equal, out, error) : status;
}
