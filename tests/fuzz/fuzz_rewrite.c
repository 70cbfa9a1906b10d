/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads an open model into a tree, writes it, and holds what is read back against what was: every
 * field that the rows know, whether it is stored, and every buffer's bytes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz_model.h"
#include "model/rewrite.h"

unsigned fuzz_rewrites_one_in = 1;

/* ---- equal tables ---- */

static void same_table(tq_table_id id, const tq_table *a, const tq_table *b);

static void same_bytes(tq_bytes a, tq_bytes b)
{
    PROMISE(a.size == b.size && !a.data == !b.data);
    PROMISE(!a.size || memcmp(a.data, b.data, a.size) == 0);
}

/* A written string has a NUL behind it, whether or not the one that was read had. */
static void same_text(const tq_table *table, tq_bytes a, tq_bytes b)
{
    same_bytes(a, b);
    PROMISE(!b.data || (b.data + b.size < table->file.data + table->file.size && b.data[b.size] == 0));
}

static void same_strings(const tq_table *table, const tq_vector *a, const tq_vector *b)
{
    for (uint32_t i = 0; i < a->count; i++)
        same_text(table, tq_vector_string(a, i), tq_vector_string(b, i));
}

static void same_tables(tq_table_id id, const tq_vector *a, const tq_vector *b)
{
    for (uint32_t i = 0; i < a->count; i++) {
        tq_table x = tq_vector_table(a, i), y = tq_vector_table(b, i);
        same_table(id, &x, &y);
    }
}

static void same_union(const tq_field *field, tq_field_id id, const tq_table *a, const tq_table *b)
{
    tq_union x = tq_get_union(a, id), y = tq_get_union(b, id);
    PROMISE(x.type == y.type);
    tq_table_id member = tq_union_member(field->detail, x.type);
    PROMISE(member == TQ_TABLE_NONE || !x.value.at == !y.value.at);
    if (member != TQ_TABLE_NONE && x.value.at)
        same_table(member, &x.value, &y.value);
}

static void same_vector(const tq_field *field, tq_field_id id, const tq_table *a, const tq_table *b)
{
    tq_vector x = tq_get_vector(a, id), y = tq_get_vector(b, id);
    PROMISE(x.count == y.count && !x.at == !y.at);
    switch ((tq_field_shape)field->shape) {
    case TQ_SHAPE_VEC_STRING: same_strings(b, &x, &y); break;
    case TQ_SHAPE_VEC_TABLE: same_tables(field->detail, &x, &y); break;
    default: {
        size_t size = tq_scalar_size[field->scalar];
        PROMISE(!y.count || y.at % size == 0);
        same_bytes(tq_vector_bytes(&x, size), tq_vector_bytes(&y, size));
    }
    }
}

/* A field that passes the end of the file reads as absent, and is not written. */
static bool stores(const tq_table *table, const tq_field *field)
{
    size_t at = tq_slot_at(table, field->slot);
    return at && tq_bytes_hold(table->file, at, tq_scalar_size[field->scalar]);
}

static void same_field(tq_field_id id, const tq_table *a, const tq_table *b)
{
    const tq_field *field = &tq_fields[id];
    if (field->shape != TQ_SHAPE_UNION)
        PROMISE(stores(a, field) == stores(b, field));
    switch ((tq_field_shape)field->shape) {
    case TQ_SHAPE_SCALAR:
    case TQ_SHAPE_ENUM: {
        size_t x = tq_slot_at(a, field->slot), y = tq_slot_at(b, field->slot);
        PROMISE(!stores(a, field) || memcmp(a->file.data + x, b->file.data + y, tq_scalar_size[field->scalar]) == 0);
        break;
    }
    case TQ_SHAPE_STRING: same_text(b, tq_get_string(a, id), tq_get_string(b, id)); break;
    case TQ_SHAPE_TABLE: {
        tq_table x = tq_get_table(a, id), y = tq_get_table(b, id);
        PROMISE(!x.at == !y.at);
        if (x.at)
            same_table(field->detail, &x, &y);
        break;
    }
    case TQ_SHAPE_UNION: same_union(field, id, a, b); break;
    default: same_vector(field, id, a, b);
    }
}

/* Where bytes stand outside the flatbuffer, their places differ and the bytes are compared. */
static bool is_location(tq_field_id id)
{
    return id == TQ_Buffer_offset || id == TQ_Operator_large_custom_options_offset;
}

static void same_table(tq_table_id id, const tq_table *a, const tq_table *b)
{
    PROMISE(b->at % 4 == 0);
    for (unsigned i = tq_tables[id].first; i < tq_tables[id + 1].first; i++)
        if (!is_location(i))
            same_field(i, a, b);
}

static void same_outside(const tq_model *a, const tq_model *b)
{
    tq_bytes x = {NULL, 0}, y = {NULL, 0};
    for (size_t i = 0; i < a->buffers.count; i++) {
        if (tq_model_buffer(a, i, &x, NULL) == TQ_OK) {
            PROMISE(tq_model_buffer(b, i, &y, NULL) == TQ_OK);
            same_bytes(x, y);
            PROMISE(!y.size || (y.data - b->file.data) % 16 == 0);
        }
    }
    for (size_t i = 0; i < a->subgraphs.count; i++) {
        tq_subgraph g = tq_model_subgraph(a, i), h = tq_model_subgraph(b, i);
        for (size_t k = 0; k < g.operators.count; k++) {
            tq_operator p = tq_model_operator(a, &g, k), q = tq_model_operator(b, &h, k);
            if (tq_operator_custom_options(&p, &x, NULL) != TQ_OK)
                continue;
            PROMISE(tq_operator_custom_options(&q, &y, NULL) == TQ_OK);
            same_bytes(x, y);
        }
    }
}

/* ---- one model ---- */

static tq_status write_plan(tq_plan *plan, tq_bytes *out)
{
    tq_memory_sink memory = {malloc((size_t)plan->size), (size_t)plan->size};
    if (!memory.data)
        abort();
    *out = (tq_bytes){memory.data, (size_t)plan->size};
    tq_sink sink = tq_sink_to_memory(&memory);
    tq_status status = tq_plan_write(plan, &sink, NULL);
    PROMISE(status != TQ_OK || memory.left == 0);
    return status;
}

tq_status fuzz_rewrite(const tq_model *model, uint64_t limit, bool share_equal)
{
    tq_tree tree;
    tq_plan plan;
    tq_bytes written;
    tq_model back;
    tq_error error = {.status = TQ_OK};
    tq_status status = tq_rewrite_open(model, &tree, &error);
    if (status != TQ_OK) {
        PROMISE(error.status == status && error.text[0]);
        return status;
    }
    status = tq_rewrite_plan(&tree, limit, share_equal, &plan, &error);
    if (status != TQ_OK) {
        PROMISE(error.status == status && error.text[0]);
        tq_tree_close(&tree);
        return status;
    }
    PROMISE(write_plan(&plan, &written) == TQ_OK);
    tq_plan_close(&plan);
    tq_tree_close(&tree);
    status = tq_model_open(written, &model->allocator, &back, &error);
    PROMISE(status == TQ_OK || status == TQ_NO_MEMORY);
    if (status == TQ_OK) {
        PROMISE(tq_model_has_identifier(model) == tq_model_has_identifier(&back));
        if (limit == TQ_FLATBUFFER_LIMIT)
            same_table(TQ_TABLE_Model, &model->root, &back.root);
        same_outside(model, &back);
        tq_model_close(&back);
    }
    free((void *)(uintptr_t)written.data);
    return status;
}
