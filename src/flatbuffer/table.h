/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading tables, vectors and strings in place.
 *
 * Layout, all little-endian and all from https://flatbuffers.dev/internals/:
 *   root     u32 at byte 0: position of the root table; bytes 4..7 may hold a file identifier
 *   table    i32 soffset, then inline fields.  table - soffset is the position of its vtable
 *   vtable   u16 own size, u16 table size, then one u16 a slot: the field's distance from the
 *            table's start, 0 for a field that is absent
 *   offset   u32, the distance from the offset itself to a table, vector or string
 *   vector   u32 count, then the elements; a string is a vector of bytes with a NUL behind it
 *
 * Every accessor checks its read against the file's size, even after tq_verify: the bytes may be mapped
 * from a file, or belong to a caller, and change at any time.  A check costs a comparison of values that
 * are in registers already.  A field that fails the check reads as absent.
 */
#ifndef TQ_FLATBUFFER_TABLE_H
#define TQ_FLATBUFFER_TABLE_H

#include "base/bytes.h"
#include "base/status.h"
#include "flatbuffer/schema.h"

typedef struct tq_table {
    tq_bytes file;
    size_t at;            /* offset in the file; 0: no table, and all its fields are absent */
    size_t vtable;        /* offset in the file */
    uint16_t vtable_size; /* bytes */
} tq_table;

typedef struct tq_vector {
    tq_bytes file;
    size_t at;      /* offset of element 0 in the file; 0: absent */
    uint32_t count; /* elements, all of them in the file */
} tq_vector;

typedef struct tq_union {
    uint8_t type; /* 0: none */
    tq_table value;
} tq_union;

/* The table at `at`, any offset.  Fails unless its soffset and vtable lie in the file (status.def: "not a flatbuffer").
 */
tq_status tq_table_find(tq_bytes file, size_t at, tq_table *out, tq_error *error);

/* The vector at `at`, any offset, of elements of element_size bytes (1 to 8).  Fails unless all of them lie in the
   file. */
tq_status tq_vector_find(tq_bytes file, size_t at, size_t element_size, tq_vector *out, tq_error *error);

/* The target of the offset that is stored at `at`.  The 4 bytes at `at` must lie in the file; fails unless the target
   does. */
tq_status tq_offset_follow(tq_bytes file, size_t at, size_t *out, tq_error *error);

/* The offset of a field's inline bytes in the file; 0 where the table does not store the field. */
static inline size_t tq_slot_at(const tq_table *table, unsigned slot)
{
    size_t entry = 4 + 2 * (size_t)slot;
    if (entry + 2 > table->vtable_size)
        return 0;
    uint16_t distance = tq_load_u16(table->file.data + table->vtable + entry);
    return distance ? table->at + distance : 0;
}

/* A scalar of any kind. */
typedef struct tq_value {
    enum { TQ_VALUE_INT, TQ_VALUE_UINT, TQ_VALUE_FLOAT } kind;
    union {
        int64_t i;
        uint64_t u;
        double f;
    };
} tq_value;

/* The scalar at `p`, which holds tq_scalar_size[scalar] bytes. */
tq_value tq_load_scalar(const uint8_t *p, tq_scalar scalar);

/* ---- fields, by their rows: tq_get_int(&tensor, TQ_Tensor_buffer) ----
   An absent field has the row's default, or is a table, vector or string with at or data 0. */

tq_value tq_get_scalar(const tq_table *table, tq_field_id field);
int64_t tq_get_int(const tq_table *table, tq_field_id field);  /* bool, enum, integers to 32 bits, I64 */
uint64_t tq_get_u64(const tq_table *table, tq_field_id field); /* U64 */
tq_bytes tq_get_string(const tq_table *table, tq_field_id field);
tq_vector tq_get_vector(const tq_table *table, tq_field_id field);
tq_table tq_get_table(const tq_table *table, tq_field_id field);
tq_union tq_get_union(const tq_table *table, tq_field_id field);

/* ---- elements; an index past the end gives 0, no table, no string ---- */

int32_t tq_vector_i32(const tq_vector *vector, size_t index);
int64_t tq_vector_i64(const tq_vector *vector, size_t index);
bool tq_vector_has_i64(const tq_vector *vector, int64_t value);
float tq_vector_f32(const tq_vector *vector, size_t index);
tq_table tq_vector_table(const tq_vector *vector, size_t index);
tq_bytes tq_vector_string(const tq_vector *vector, size_t index);

/* All elements of a vector of `element_size`-byte scalars, as they stand in the file. */
static inline tq_bytes tq_vector_bytes(const tq_vector *vector, size_t element_size)
{
    tq_bytes bytes = {vector->at ? vector->file.data + vector->at : NULL, vector->count * element_size};
    return bytes;
}

#endif
