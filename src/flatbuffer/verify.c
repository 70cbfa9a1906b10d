/* SPDX-License-Identifier: Apache-2.0 */
#include "flatbuffer/verify.h"

#include <stdio.h>

typedef struct walk {
    tq_bytes file;
    tq_budget left;
    tq_error *error;
} walk;

tq_budget tq_budget_for(size_t file_size)
{
    return (tq_budget){32, (uint64_t)file_size / 4 + 1024, (uint64_t)file_size * 4 + (16u << 20)};
}

/* Puts the field, "Tensor.shape: ", before the message of its failed check. */
static tq_status name_field(walk *w, tq_table_id id, const tq_field *field, tq_status status)
{
    if (w->error && status != TQ_OK) {
        char text[sizeof w->error->text];
        memcpy(text, w->error->text, sizeof text);
        text[sizeof text - 1] = 0;
        snprintf(w->error->text, sizeof w->error->text, "%s.%s: %.190s", tq_tables[id].name, field->name, text);
    }
    return status;
}

static tq_status verify_vector(walk *w, size_t at, size_t element_size, tq_vector *out)
{
    tq_status status = tq_vector_find(w->file, at, element_size, out, w->error);
    if (status != TQ_OK)
        return status;
    uint64_t bytes = (uint64_t)out->count * element_size;
    if (bytes > w->left.bytes)
        return tq_fail(w->error, TQ_BYTE_BUDGET, at,
                       "vectors and strings reached so far hold more bytes than the budget; are they shared?");
    w->left.bytes -= bytes;
    return TQ_OK;
}

static tq_status verify_table(walk *w, tq_table_id id, size_t at, unsigned depth);

static tq_status verify_string_elements(walk *w, const tq_vector *vector)
{
    for (uint32_t i = 0; i < vector->count; i++) {
        size_t at;
        tq_vector string;
        tq_status status = tq_offset_follow(w->file, vector->at + 4 * (size_t)i, &at, w->error);
        if (status == TQ_OK)
            status = verify_vector(w, at, 1, &string);
        if (status != TQ_OK)
            return status;
    }
    return TQ_OK;
}

static tq_status verify_table_elements(walk *w, tq_table_id id, const tq_vector *vector, unsigned depth)
{
    for (uint32_t i = 0; i < vector->count; i++) {
        size_t at;
        tq_status status = tq_offset_follow(w->file, vector->at + 4 * (size_t)i, &at, w->error);
        if (status == TQ_OK && id != TQ_TABLE_Buffer)
            status = verify_table(w, id, at, depth);
        if (status != TQ_OK)
            return status;
    }
    return TQ_OK;
}

/* The target, at byte `at`, of an offset field.  The target of a union of unknown type stays unread. */
static tq_status verify_target(walk *w, const tq_table *table, const tq_field *field, size_t at, unsigned depth)
{
    tq_vector vector;
    tq_status status;
    switch ((tq_field_shape)field->shape) {
    case TQ_SHAPE_TABLE: return verify_table(w, field->detail, at, depth);
    case TQ_SHAPE_UNION: {
        size_t type_at = tq_slot_at(table, field->slot - 1);
        tq_table_id member = TQ_TABLE_NONE;
        if (type_at && tq_bytes_hold(w->file, type_at, 1))
            member = tq_union_member(field->detail, w->file.data[type_at]);
        return member == TQ_TABLE_NONE ? TQ_OK : verify_table(w, member, at, depth);
    }
    case TQ_SHAPE_STRING: return verify_vector(w, at, 1, &vector);
    case TQ_SHAPE_VEC_SCALAR:
    case TQ_SHAPE_VEC_ENUM: return verify_vector(w, at, tq_scalar_size[field->scalar], &vector);
    case TQ_SHAPE_VEC_STRING:
        status = verify_vector(w, at, 4, &vector);
        return status == TQ_OK ? verify_string_elements(w, &vector) : status;
    case TQ_SHAPE_VEC_TABLE:
        status = verify_vector(w, at, 4, &vector);
        return status == TQ_OK ? verify_table_elements(w, field->detail, &vector, depth) : status;
    case TQ_SHAPE_SCALAR:
    case TQ_SHAPE_ENUM: break;
    }
    return TQ_OK;
}

static tq_status verify_field(walk *w, const tq_table *table, const tq_field *field, unsigned depth)
{
    size_t at = tq_slot_at(table, field->slot);
    if (!at)
        return TQ_OK;
    unsigned size = tq_scalar_size[field->scalar];
    if (!tq_bytes_hold(w->file, at, size))
        return tq_fail(w->error, TQ_FIELD_RANGE, at, "a field of %u bytes passes the end of the file (%llu bytes)",
                       size, (unsigned long long)w->file.size);
    if (field->shape == TQ_SHAPE_SCALAR || field->shape == TQ_SHAPE_ENUM)
        return TQ_OK;
    size_t target;
    tq_status status = tq_offset_follow(w->file, at, &target, w->error);
    return status == TQ_OK ? verify_target(w, table, field, target, depth) : status;
}

static tq_status verify_table(walk *w, tq_table_id id, size_t at, unsigned depth)
{
    if (depth >= w->left.depth)
        return tq_fail(w->error, TQ_DEPTH_BUDGET, at, "tables nest more than %u deep", depth);
    if (w->left.tables == 0)
        return tq_fail(w->error, TQ_TABLE_BUDGET, at,
                       "more tables are reached than a file of %llu bytes can hold; are they shared?",
                       (unsigned long long)w->file.size);
    w->left.tables--;
    tq_table table;
    tq_status status = tq_table_find(w->file, at, &table, w->error);
    for (unsigned i = tq_tables[id].first; status == TQ_OK && i < tq_tables[id + 1].first; i++)
        status = name_field(w, id, &tq_fields[i], verify_field(w, &table, &tq_fields[i], depth + 1));
    return status;
}

tq_status tq_verify(tq_bytes file, tq_table_id root, const tq_budget *budget, tq_table *out, tq_error *error)
{
    walk w = {file, budget ? *budget : tq_budget_for(file.size), error};
    if (file.size < 8)
        return tq_fail(error, TQ_TOO_SMALL, 0, "the file has %llu bytes; a flatbuffer needs at least 8",
                       (unsigned long long)file.size);
    size_t at;
    tq_status status = tq_offset_follow(file, 0, &at, error);
    if (status == TQ_OK)
        status = verify_table(&w, root, at, 0);
    if (status == TQ_OK)
        status = tq_table_find(file, at, out, error);
    return status;
}
