/* SPDX-License-Identifier: Apache-2.0 */
#include "flatbuffer/table.h"

#define LLU(x) ((unsigned long long)(x))

tq_status tq_table_find(tq_bytes file, size_t at, tq_table *out, tq_error *error)
{
    if (!tq_bytes_hold(file, at, 4))
        return tq_fail(error, TQ_OFFSET_RANGE, at, "a table needs 4 bytes here, the file has %llu in all",
                       LLU(file.size));
    int64_t vtable = (int64_t)at - (int32_t)tq_load_u32(file.data + at);
    if (vtable < 0 || !tq_bytes_hold(file, (uint64_t)vtable, 4))
        return tq_fail(error, TQ_VTABLE_RANGE, at, "the table's vtable is at byte %lld of %llu", (long long)vtable,
                       LLU(file.size));
    uint16_t size = tq_load_u16(file.data + vtable);
    if (size < 4 || size % 2)
        return tq_fail(error, TQ_VTABLE_SIZE, (uint64_t)vtable,
                       "a vtable of %u bytes; it needs an even number from 4 up", size);
    if (!tq_bytes_hold(file, (uint64_t)vtable, size))
        return tq_fail(error, TQ_VTABLE_RANGE, (uint64_t)vtable,
                       "a vtable of %u bytes passes the end of the file (%llu bytes)", size, LLU(file.size));
    *out = (tq_table){file, at, (size_t)vtable, size};
    return TQ_OK;
}

tq_status tq_offset_follow(tq_bytes file, size_t at, size_t *out, tq_error *error)
{
    if (!tq_bytes_hold(file, at, 4))
        return tq_fail(error, TQ_FIELD_RANGE, at, "an offset needs 4 bytes here, the file has %llu in all",
                       LLU(file.size));
    uint32_t distance = tq_load_u32(file.data + at);
    if (distance == 0 || !tq_bytes_hold(file, (uint64_t)at + distance, 4))
        return tq_fail(error, TQ_OFFSET_RANGE, at, "an offset of %u leads to byte %llu of %llu", distance,
                       LLU(at) + distance, LLU(file.size));
    *out = at + distance;
    return TQ_OK;
}

tq_status tq_vector_find(tq_bytes file, size_t at, size_t element_size, tq_vector *out, tq_error *error)
{
    if (!tq_bytes_hold(file, at, 4))
        return tq_fail(error, TQ_OFFSET_RANGE, at, "a vector needs 4 bytes here, the file has %llu in all",
                       LLU(file.size));
    uint32_t count = tq_load_u32(file.data + at);
    /* 2^32 elements of 8 bytes are 2^35: no overflow in 64 bits */
    if (!tq_bytes_hold(file, (uint64_t)at + 4, (uint64_t)count * element_size))
        return tq_fail(error, TQ_VECTOR_RANGE, at, "%u elements of %u bytes pass the end of the file (%llu bytes)",
                       count, (unsigned)element_size, LLU(file.size));
    *out = (tq_vector){file, at + 4, count};
    return TQ_OK;
}

tq_value tq_load_scalar(const uint8_t *p, tq_scalar scalar)
{
    tq_value value = {TQ_VALUE_INT, {0}};
    switch (scalar) {
    case TQ_BOOL: value.i = *p != 0; break;
    case TQ_I8: value.i = (int8_t)*p; break;
    case TQ_U8: value.i = *p; break;
    case TQ_I16: value.i = (int16_t)tq_load_u16(p); break;
    case TQ_U16: value.i = tq_load_u16(p); break;
    case TQ_I32: value.i = (int32_t)tq_load_u32(p); break;
    case TQ_U32: value.i = tq_load_u32(p); break;
    case TQ_I64: value.i = (int64_t)tq_load_u64(p); break;
    case TQ_U64: value.kind = TQ_VALUE_UINT, value.u = tq_load_u64(p); break;
    case TQ_F32: value.kind = TQ_VALUE_FLOAT, value.f = tq_load_f32(p); break;
    case TQ_F64: value.kind = TQ_VALUE_FLOAT, value.f = tq_load_f64(p); break;
    case TQ_SCALAR_COUNT: break;
    }
    return value;
}

static tq_value default_of(const tq_field *field)
{
    tq_value value = {TQ_VALUE_INT, {(int64_t)field->default_value}};
    if (field->scalar == TQ_U64)
        value.kind = TQ_VALUE_UINT, value.u = (uint64_t)field->default_value;
    else if (field->scalar == TQ_F32 || field->scalar == TQ_F64)
        value.kind = TQ_VALUE_FLOAT, value.f = field->default_value;
    return value;
}

tq_value tq_get_scalar(const tq_table *table, tq_field_id id)
{
    const tq_field *field = &tq_fields[id];
    size_t at = tq_slot_at(table, field->slot);
    if (!at || !tq_bytes_hold(table->file, at, tq_scalar_size[field->scalar]))
        return default_of(field);
    return tq_load_scalar(table->file.data + at, field->scalar);
}

int64_t tq_get_int(const tq_table *table, tq_field_id id)
{
    return tq_get_scalar(table, id).i;
}

uint64_t tq_get_u64(const tq_table *table, tq_field_id id)
{
    return tq_get_scalar(table, id).u;
}

/* The target of an offset field, or 0. */
static size_t target_of(const tq_table *table, unsigned slot)
{
    size_t at = tq_slot_at(table, slot), target = 0;
    if (at)
        tq_offset_follow(table->file, at, &target, NULL);
    return target;
}

tq_vector tq_get_vector(const tq_table *table, tq_field_id id)
{
    const tq_field *field = &tq_fields[id];
    size_t at = target_of(table, field->slot);
    tq_vector vector = {table->file, 0, 0};
    if (at)
        tq_vector_find(table->file, at, tq_scalar_size[field->scalar], &vector, NULL);
    return vector;
}

tq_bytes tq_get_string(const tq_table *table, tq_field_id id)
{
    size_t at = target_of(table, tq_fields[id].slot);
    tq_vector vector = {table->file, 0, 0};
    if (at)
        tq_vector_find(table->file, at, 1, &vector, NULL);
    return tq_vector_bytes(&vector, 1);
}

static tq_table table_at(tq_bytes file, size_t at)
{
    tq_table table = {file, 0, 0, 0};
    if (at)
        tq_table_find(file, at, &table, NULL);
    return table;
}

tq_table tq_get_table(const tq_table *table, tq_field_id id)
{
    return table_at(table->file, target_of(table, tq_fields[id].slot));
}

tq_union tq_get_union(const tq_table *table, tq_field_id id)
{
    unsigned slot = tq_fields[id].slot;
    size_t type_at = tq_slot_at(table, slot - 1);
    tq_union out = {0, {table->file, 0, 0, 0}};
    if (type_at && tq_bytes_hold(table->file, type_at, 1))
        out.type = table->file.data[type_at];
    if (out.type)
        out.value = table_at(table->file, target_of(table, slot));
    return out;
}

int32_t tq_vector_i32(const tq_vector *vector, size_t index)
{
    return index < vector->count ? (int32_t)tq_load_u32(vector->file.data + vector->at + 4 * index) : 0;
}

int64_t tq_vector_i64(const tq_vector *vector, size_t index)
{
    return index < vector->count ? (int64_t)tq_load_u64(vector->file.data + vector->at + 8 * index) : 0;
}

bool tq_vector_has_i64(const tq_vector *vector, int64_t value)
{
    for (size_t i = 0; i < vector->count; i++)
        if (tq_vector_i64(vector, i) == value)
            return true;
    return false;
}

float tq_vector_f32(const tq_vector *vector, size_t index)
{
    return index < vector->count ? tq_load_f32(vector->file.data + vector->at + 4 * index) : 0;
}

static size_t element_target(const tq_vector *vector, size_t index)
{
    size_t target = 0;
    if (index < vector->count)
        tq_offset_follow(vector->file, vector->at + 4 * index, &target, NULL);
    return target;
}

tq_table tq_vector_table(const tq_vector *vector, size_t index)
{
    return table_at(vector->file, element_target(vector, index));
}

tq_bytes tq_vector_string(const tq_vector *vector, size_t index)
{
    size_t at = element_target(vector, index);
    tq_vector string = {vector->file, 0, 0};
    if (at)
        tq_vector_find(vector->file, at, 1, &string, NULL);
    return tq_vector_bytes(&string, 1);
}
