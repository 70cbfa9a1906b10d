/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading FlexBuffers, the schema-less format in which custom operators store their options, in
 * place and without allocating.
 *
 * Layout, all little-endian and all from https://flatbuffers.dev/internals/#flexbuffers:
 *   end      the root's slot, then its type byte, then the slot's width: 1, 2, 4 or 8 bytes
 *   type     kind << 2 | log2 of a width
 *   slot     a scalar of the slot's width, or the distance back from the slot to a target whose
 *            elements have the type byte's width
 *   key      characters, NUL
 *   string   size, characters; a blob too.  A size stands in front of its target
 *   vector   size, that many slots, that many type bytes; no type bytes where the kind fixes the type;
 *            no size where the kind fixes the count
 *   map      distance to the keys' vector, its width, then as a vector.  Keys are a vector of keys
 *
 * Targets stand before their slots but may be shared, and slots of a vector may lead into the vector
 * itself, so a few bytes can describe an endless walk.  A reader has budgets, which every call below
 * charges, so that every walk ends:
 *   depth    vectors inside vectors: TQ_FLEX_DEPTH
 *   values   size + 1024.  A value without sharing takes at least a byte
 *   bytes    of keys, strings and blobs, counted at each visit: 8 * size + 1 MiB, since builders share keys
 * So a walk needs no verification first, and no change of the bytes during the walk does harm.
 *
 * All functions fail with TQ_BAD_FLEXBUFFER; offsets in errors count from the buffer's first byte.
 * Reading does not require alignment, a NUL behind strings, or sorted keys.
 */
#ifndef TQ_FLATBUFFER_FLEXBUFFER_H
#define TQ_FLATBUFFER_FLEXBUFFER_H

#include "base/bytes.h"
#include "base/status.h"
#include "flatbuffer/table.h"

enum { TQ_FLEX_DEPTH = 32 };

/* The kind of a value, inline or indirect, with typed or untyped elements. */
typedef enum tq_flex_kind {
    TQ_FLEX_NULL,
    TQ_FLEX_BOOL,
    TQ_FLEX_INT,
    TQ_FLEX_UINT,
    TQ_FLEX_FLOAT,
    TQ_FLEX_KEY,
    TQ_FLEX_STRING,
    TQ_FLEX_BLOB,
    TQ_FLEX_VECTOR,
    TQ_FLEX_MAP
} tq_flex_kind;

typedef struct tq_flex_reader {
    tq_bytes bytes;
    uint64_t values_left, bytes_left; /* the budgets */
    tq_error *error; /* may be NULL */
} tq_flex_reader;

typedef struct tq_flex {
    tq_flex_kind kind;
    size_t at;      /* offset of a scalar or of element 0 */
    uint64_t count; /* elements of a vector or map, bytes of a key, string or blob */
    uint8_t width;  /* bytes of a scalar or of a slot: 1, 2, 4 or 8 */
    uint8_t typing; /* the type byte of all elements; 0: each has its own behind the slots */
    uint8_t depth;  /* vectors that enclose it, <= TQ_FLEX_DEPTH */
    uint8_t key_width; /* of a map: bytes of a slot of its keys' vector */
    size_t keys_at; /* of a map: offset of element 0 of its keys' vector */
} tq_flex;

/* Reads the root.  Every later call on the reader fills the same `error` (may be NULL). */
tq_status tq_flex_open(tq_bytes bytes, tq_flex_reader *reader, tq_flex *root, tq_error *error);

/* The element at `index` < vector->count of a VECTOR, or the value of a MAP. */
tq_status tq_flex_item(tq_flex_reader *reader, const tq_flex *vector, uint64_t index, tq_flex *out);

/* The key at `index` < map->count, without its NUL. */
tq_status tq_flex_map_key(tq_flex_reader *reader, const tq_flex *map, uint64_t index, tq_bytes *out);

/* The value of a scalar: BOOL (0 or 1) and INT as TQ_VALUE_INT, UINT as TQ_VALUE_UINT, FLOAT of 16, 32 or 64 bits as
   TQ_VALUE_FLOAT. */
tq_value tq_flex_scalar(const tq_flex_reader *reader, const tq_flex *scalar);

/* The bytes of a KEY (without its NUL), STRING or BLOB. */
tq_bytes tq_flex_bytes(const tq_flex_reader *reader, const tq_flex *value);

/* Walks all values once. */
tq_status tq_flex_verify(tq_bytes bytes, tq_error *error);

/* Whether custom options are shown as a flexbuffer.  The format has no marker, and a few other bytes pass by accident:
   01 04 01 is the integer 1.  The rule: the root is a map, as LiteRT's custom operators write, or an untyped vector, as
   TensorFlow's "Flex" operators write ([name, NodeDef]), and all values verify. */
bool tq_flex_is_options(tq_bytes bytes);

#endif
