/* SPDX-License-Identifier: Apache-2.0 */
#include "flatbuffer/flexbuffer.h"

#include <math.h>

#define LLU(x) ((unsigned long long)(x))

/* The format's own kinds, the upper six bits of a type byte. */
enum {
    WIRE_NULL,
    WIRE_INT,
    WIRE_UINT,
    WIRE_FLOAT,
    WIRE_KEY,
    WIRE_STRING,
    WIRE_INDIRECT_INT,
    WIRE_INDIRECT_UINT,
    WIRE_INDIRECT_FLOAT,
    WIRE_MAP,
    WIRE_VECTOR,
    WIRE_VECTOR_INT,
    WIRE_VECTOR_UINT,
    WIRE_VECTOR_FLOAT,
    WIRE_VECTOR_KEY,
    WIRE_VECTOR_STRING,
    WIRE_VECTOR_INT2, /* then UINT2, FLOAT2, INT3 ... */
    WIRE_VECTOR_FLOAT4 = 24,
    WIRE_BLOB,
    WIRE_BOOL,
    WIRE_VECTOR_BOOL = 36
};

static tq_status fail(const tq_flex_reader *reader, size_t at, const char *what)
{
    return tq_fail(reader->error, TQ_BAD_FLEXBUFFER, at, "flexbuffer of %llu bytes: %s", LLU(reader->bytes.size), what);
}

static uint64_t load_unsigned(const uint8_t *p, unsigned width)
{
    switch (width) {
    case 1: return *p;
    case 2: return tq_load_u16(p);
    case 4: return tq_load_u32(p);
    default: return tq_load_u64(p);
    }
}

static int64_t load_signed(const uint8_t *p, unsigned width)
{
    switch (width) {
    case 1: return (int8_t)*p;
    case 2: return (int16_t)tq_load_u16(p);
    case 4: return (int32_t)tq_load_u32(p);
    default: return (int64_t)tq_load_u64(p);
    }
}

static double load_half(const uint8_t *p)
{
    unsigned bits = tq_load_u16(p), exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                   : exponent     ? ldexp(1024 + fraction, (int)exponent - 25)
                                  : ldexp(fraction, -24);
    return bits >> 15 ? -value : value;
}

static double load_float(const uint8_t *p, unsigned width)
{
    return width == 2 ? load_half(p) : width == 4 ? (double)tq_load_f32(p) : tq_load_f64(p);
}

/* The target of the distance that the slot at `at` stores. */
static tq_status follow(const tq_flex_reader *reader, size_t at, unsigned width, size_t *out)
{
    if (!tq_bytes_hold(reader->bytes, at, width))
        return fail(reader, at, "an offset passes the end");
    uint64_t distance = load_unsigned(reader->bytes.data + at, width);
    if (distance > at)
        return fail(reader, at, "an offset leads before the start");
    *out = at - (size_t)distance;
    return TQ_OK;
}

/* The scalar at `index` of those in front of a target, counted backwards; index 0 is the target's size. */
static tq_status prefix(const tq_flex_reader *reader, size_t target, unsigned width, unsigned index, uint64_t *out)
{
    size_t back = (size_t)width * (index + 1);
    if (back > target) /* target <= bytes.size */
        return fail(reader, target, "a size or a map's keys would stand before the start");
    *out = load_unsigned(reader->bytes.data + (target - back), width);
    return TQ_OK;
}

static tq_status charge_bytes(tq_flex_reader *reader, size_t at, uint64_t bytes)
{
    if (bytes > reader->bytes_left)
        return fail(reader, at, "keys and strings reached so far hold more bytes than the budget; are they shared?");
    reader->bytes_left -= bytes;
    return TQ_OK;
}

static tq_status find_key(tq_flex_reader *reader, size_t at, tq_bytes *out)
{
    tq_bytes bytes = reader->bytes;
    const uint8_t *start = bytes.data + at; /* follow() gave at < size */
    const uint8_t *end = memchr(start, 0, bytes.size - at);
    if (!end)
        return fail(reader, at, "a key does not end");
    *out = (tq_bytes){start, (size_t)(end - start)};
    return charge_bytes(reader, at, out->size + 1);
}

static tq_status find_sized_bytes(tq_flex_reader *reader, unsigned width, tq_flex *value)
{
    tq_status status = prefix(reader, value->at, width, 0, &value->count);
    if (status != TQ_OK)
        return status;
    if (!tq_bytes_hold(reader->bytes, value->at, value->count))
        return fail(reader, value->at, "a string or blob passes the end");
    return charge_bytes(reader, value->at, value->count);
}

/* Checks that the elements of a vector lie in the buffer, and charges the budgets for them. */
static tq_status hold_elements(tq_flex_reader *reader, const tq_flex *vector)
{
    size_t size = reader->bytes.size;
    uint64_t each = vector->width + (vector->typing ? 0u : 1u);
    if (vector->at > size || vector->count > (size - vector->at) / each)
        return fail(reader, vector->at, "a vector passes the end");
    if (vector->depth >= TQ_FLEX_DEPTH)
        return fail(reader, vector->at, "vectors nest more than 32 deep");
    if (vector->count > reader->values_left)
        return fail(reader, vector->at, "more values are reached than fit; are they shared?");
    reader->values_left -= vector->count;
    return TQ_OK;
}

static tq_status find_keys(tq_flex_reader *reader, tq_flex *map)
{
    uint64_t width = 0, count = 0;
    tq_status status = prefix(reader, map->at, map->width, 1, &width);
    if (status == TQ_OK && width != 1 && width != 2 && width != 4 && width != 8)
        status = fail(reader, map->at, "the keys of a map have a width that is not 1, 2, 4 or 8");
    if (status == TQ_OK)
        status = prefix(reader, map->at, map->width, 2, &count); /* checks that the slot exists */
    if (status == TQ_OK)
        status = follow(reader, map->at - 3 * (size_t)map->width, map->width, &map->keys_at);
    if (status == TQ_OK)
        status = prefix(reader, map->keys_at, (unsigned)width, 0, &count);
    if (status != TQ_OK)
        return status;
    if (count != map->count)
        return fail(reader, map->at, "a map has another scalar of keys than of values");
    map->key_width = (uint8_t)width;
    return TQ_OK;
}

static tq_status find_vector(tq_flex_reader *reader, unsigned wire, tq_flex *vector)
{
    tq_status status = TQ_OK;
    vector->kind = wire == WIRE_MAP ? TQ_FLEX_MAP : TQ_FLEX_VECTOR;
    if (wire >= WIRE_VECTOR_INT2 && wire <= WIRE_VECTOR_FLOAT4) {
        unsigned nth = wire - WIRE_VECTOR_INT2; /* three kinds of 2 elements, then three of 3, then three of 4 */
        vector->typing = (uint8_t)((WIRE_INT + nth % 3) << 2);
        vector->count = nth / 3 + 2;
    } else {
        /* The deprecated vector of strings does not store the width of the strings' sizes; upstream reads the elements
           as keys, and so does tq. */
        if (wire == WIRE_VECTOR_STRING)
            wire = WIRE_VECTOR_KEY;
        if (wire >= WIRE_VECTOR_INT)
            vector->typing = (uint8_t)((wire - WIRE_VECTOR_INT + WIRE_INT) << 2); /* BOOL fits this too */
        status = prefix(reader, vector->at, vector->width, 0, &vector->count);
    }
    if (status == TQ_OK)
        status = hold_elements(reader, vector);
    if (status == TQ_OK && wire == WIRE_MAP)
        status = find_keys(reader, vector);
    return status;
}

/* A scalar of `width` bytes at `at`: a slot, or the target of an indirect value. */
static tq_status find_scalar(const tq_flex_reader *reader, tq_flex_kind kind, unsigned width, tq_flex *value)
{
    if (!tq_bytes_hold(reader->bytes, value->at, width))
        return fail(reader, value->at, "a scalar passes the end");
    if (kind == TQ_FLEX_FLOAT && width == 1)
        return fail(reader, value->at, "a float of 8 bits, which the format does not define");
    value->kind = kind;
    value->width = (uint8_t)width;
    return TQ_OK;
}

/* Completes `value`, whose `at` is its slot or, if not inline, its target. */
static tq_status find_kind(tq_flex_reader *reader, unsigned wire, unsigned slot_width, tq_flex *value)
{
    tq_bytes key;
    tq_status status;
    switch (wire) {
    case WIRE_NULL: return TQ_OK;
    case WIRE_BOOL: return find_scalar(reader, TQ_FLEX_BOOL, slot_width, value);
    case WIRE_INT: return find_scalar(reader, TQ_FLEX_INT, slot_width, value);
    case WIRE_UINT: return find_scalar(reader, TQ_FLEX_UINT, slot_width, value);
    case WIRE_FLOAT: return find_scalar(reader, TQ_FLEX_FLOAT, slot_width, value);
    case WIRE_INDIRECT_INT: return find_scalar(reader, TQ_FLEX_INT, value->width, value);
    case WIRE_INDIRECT_UINT: return find_scalar(reader, TQ_FLEX_UINT, value->width, value);
    case WIRE_INDIRECT_FLOAT: return find_scalar(reader, TQ_FLEX_FLOAT, value->width, value);
    case WIRE_KEY:
        value->kind = TQ_FLEX_KEY;
        status = find_key(reader, value->at, &key);
        if (status == TQ_OK)
            value->count = key.size;
        return status;
    case WIRE_STRING:
    case WIRE_BLOB:
        value->kind = wire == WIRE_BLOB ? TQ_FLEX_BLOB : TQ_FLEX_STRING;
        return find_sized_bytes(reader, value->width, value);
    default: return find_vector(reader, wire, value);
    }
}

/* The value of the slot of `slot_width` bytes at `at`, with this type byte. */
static tq_status find_value(tq_flex_reader *reader, size_t at, unsigned slot_width, unsigned type, unsigned depth,
                            tq_flex *out)
{
    unsigned wire = type >> 2;
    tq_flex value = {.at = at, .width = (uint8_t)(1u << (type & 3)), .depth = (uint8_t)depth};
    if (wire > WIRE_BOOL && wire != WIRE_VECTOR_BOOL)
        return tq_fail(reader->error, TQ_BAD_FLEXBUFFER, at, "a value of type %u, which the format does not define",
                       wire);
    tq_status status = TQ_OK;
    if (wire > WIRE_FLOAT && wire != WIRE_BOOL)
        status = follow(reader, at, slot_width, &value.at);
    if (status == TQ_OK)
        status = find_kind(reader, wire, slot_width, &value);
    if (status == TQ_OK)
        *out = value;
    return status;
}

tq_status tq_flex_open(tq_bytes bytes, tq_flex_reader *reader, tq_flex *root, tq_error *error)
{
    tq_flex_reader opened = {bytes, (uint64_t)bytes.size + 1024, (uint64_t)bytes.size * 8 + (1u << 20), error};
    if (bytes.size < 3)
        return fail(&opened, 0, "it needs at least 3");
    unsigned width = bytes.data[bytes.size - 1], type = bytes.data[bytes.size - 2];
    if (width != 1 && width != 2 && width != 4 && width != 8)
        return fail(&opened, bytes.size - 1, "the root's width is not 1, 2, 4 or 8");
    if (bytes.size - 2 < width)
        return fail(&opened, bytes.size - 1, "the root would stand before the start");
    tq_status status = find_value(&opened, bytes.size - 2 - width, width, type, 0, root);
    if (status == TQ_OK)
        *reader = opened;
    return status;
}

tq_status tq_flex_item(tq_flex_reader *reader, const tq_flex *vector, uint64_t index, tq_flex *out)
{
    if (index >= vector->count)
        return fail(reader, vector->at, "an index passes the end of a vector");
    size_t slot = vector->at + (size_t)index * vector->width; /* in the buffer: hold_elements() */
    unsigned type = vector->typing;
    if (!type)
        type = reader->bytes.data[vector->at + (size_t)vector->count * vector->width + (size_t)index];
    return find_value(reader, slot, vector->width, type, vector->depth + 1u, out);
}

tq_status tq_flex_map_key(tq_flex_reader *reader, const tq_flex *map, uint64_t index, tq_bytes *out)
{
    if (map->kind != TQ_FLEX_MAP || index >= map->count)
        return fail(reader, map->at, "an index passes the end of a map");
    size_t at = 0;
    tq_status status = follow(reader, map->keys_at + (size_t)index * map->key_width, map->key_width, &at);
    return status == TQ_OK ? find_key(reader, at, out) : status;
}

tq_value tq_flex_scalar(const tq_flex_reader *reader, const tq_flex *scalar)
{
    const uint8_t *p = reader->bytes.data + scalar->at;
    tq_value value = {TQ_VALUE_INT, {0}};
    switch (scalar->kind) {
    case TQ_FLEX_BOOL: value.i = load_unsigned(p, scalar->width) != 0; break;
    case TQ_FLEX_INT: value.i = load_signed(p, scalar->width); break;
    case TQ_FLEX_UINT: value.kind = TQ_VALUE_UINT, value.u = load_unsigned(p, scalar->width); break;
    case TQ_FLEX_FLOAT: value.kind = TQ_VALUE_FLOAT, value.f = load_float(p, scalar->width); break;
    default: break;
    }
    return value;
}

tq_bytes tq_flex_bytes(const tq_flex_reader *reader, const tq_flex *value)
{
    if (value->kind != TQ_FLEX_KEY && value->kind != TQ_FLEX_STRING && value->kind != TQ_FLEX_BLOB)
        return (tq_bytes){NULL, 0};
    return (tq_bytes){reader->bytes.data + value->at, (size_t)value->count};
}

/* Recursion ends at TQ_FLEX_DEPTH, which hold_elements() enforces. */
static tq_status verify_elements(tq_flex_reader *reader, const tq_flex *value)
{
    if (value->kind != TQ_FLEX_VECTOR && value->kind != TQ_FLEX_MAP)
        return TQ_OK;
    tq_status status = TQ_OK;
    for (uint64_t i = 0; status == TQ_OK && i < value->count; i++) {
        tq_flex item;
        tq_bytes key;
        if (value->kind == TQ_FLEX_MAP)
            status = tq_flex_map_key(reader, value, i, &key);
        if (status == TQ_OK)
            status = tq_flex_item(reader, value, i, &item);
        if (status == TQ_OK)
            status = verify_elements(reader, &item);
    }
    return status;
}

tq_status tq_flex_verify(tq_bytes bytes, tq_error *error)
{
    tq_flex_reader reader;
    tq_flex root;
    tq_status status = tq_flex_open(bytes, &reader, &root, error);
    return status == TQ_OK ? verify_elements(&reader, &root) : status;
}

bool tq_flex_is_options(tq_bytes bytes)
{
    tq_flex_reader reader;
    tq_flex root;
    if (tq_flex_open(bytes, &reader, &root, NULL) != TQ_OK)
        return false;
    if (root.kind != TQ_FLEX_MAP && !(root.kind == TQ_FLEX_VECTOR && !root.typing))
        return false;
    return verify_elements(&reader, &root) == TQ_OK;
}
