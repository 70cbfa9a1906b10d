/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading FlexBuffers, the schema-less format in which custom operators store their options, in
 * place and without allocating.
 *
 * Layout, all little-endian and all from https://flatbuffers.dev/internals/#flexbuffers:
 *   end      the root's slot, then its type byte, then the slot's width: 1, 2, 4 or 8 bytes
 *   type     kind << 2 | log2 of a width
 *   slot     a number of the slot's width, or the distance back from the slot to a target whose
 *            elements have the type byte's width
 *   key      characters, NUL
 *   string   size, characters; a blob too.  A size stands in front of its target
 *   vector   size, that many slots, that many type bytes; without types where the kind says them;
 *            without size where the kind says that too
 *   map      distance to the keys' vector, its width, then as a vector.  Keys are a vector of keys
 *
 * Targets lie behind their slots but may be shared, and slots of a vector may lead into it, so that
 * a few bytes can describe a walk without end.  A reader therefore carries a budget, which every
 * call below charges, and with it bounds any walk that is made through it:
 *   depth    vectors inside vectors: TQ_FLEX_DEPTH
 *   values   size + 1024.  A value that is reached once takes a byte at least
 *   bytes    of keys, strings and blobs, again per visit: 8 * size + 1 MiB, since builders share keys
 * A walk may thus be made without verifying first, and no change of the bytes during it can hurt.
 *
 * All functions fail with TQ_BAD_FLEXBUFFER; offsets in errors count from the buffer's first byte.
 * What reading does not need is not demanded: alignment, a NUL behind strings, keys in order.
 */
#ifndef TQ_FLATBUFFER_FLEXBUFFER_H
#define TQ_FLATBUFFER_FLEXBUFFER_H

#include "base/bytes.h"
#include "base/status.h"
#include "flatbuffer/table.h"

enum { TQ_FLEX_DEPTH = 32 };

/* What a value is, whether it stands in its slot or behind it, and however its elements are typed. */
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
    uint64_t values_left, bytes_left;
    tq_error *error; /* may be NULL */
} tq_flex_reader;

typedef struct tq_flex {
    tq_flex_kind kind;
    size_t at;      /* of a number or of element 0 */
    uint64_t count; /* elements of a vector or map, bytes of a key, string or blob */
    uint8_t width;  /* bytes of a number or of a slot */
    uint8_t typing; /* the type byte of all elements; 0: each has its own behind the slots */
    uint8_t depth;  /* vectors around it */
    uint8_t key_width;
    size_t keys_at; /* of a map: element 0 of its keys' vector, whose slots have key_width bytes */
} tq_flex;

/* Reads the root.  `error` (may be NULL) is the one that every later call on the reader fills. */
tq_status tq_flex_open(tq_bytes bytes, tq_flex_reader *reader, tq_flex *root, tq_error *error);

/* The element at `index`, which must be below vector->count. */
tq_status tq_flex_item(tq_flex_reader *reader, const tq_flex *vector, uint64_t index, tq_flex *out);

/* The key at `index` of a map, without its NUL. */
tq_status tq_flex_map_key(tq_flex_reader *reader, const tq_flex *map, uint64_t index, tq_bytes *out);

/* A BOOL (0 or 1) or INT as TQ_VALUE_INT, a UINT as TQ_VALUE_UINT, a FLOAT of 16, 32 or 64 bits. */
tq_value tq_flex_scalar(const tq_flex_reader *reader, const tq_flex *number);

/* The bytes of a KEY (without its NUL), STRING or BLOB. */
tq_bytes tq_flex_bytes(const tq_flex_reader *reader, const tq_flex *value);

/* Walks everything, once. */
tq_status tq_flex_verify(tq_bytes bytes, tq_error *error);

/* Whether custom options are to be shown as a flexbuffer.  No marker says so, and short runs of
   other bytes pass by accident: 01 04 01 is the number 1.  The rule: the root is a map, as LiteRT's
   own custom operators write, or an untyped vector, as TensorFlow's "Flex" operators write
   ([name, NodeDef]), and all of it verifies. */
bool tq_flex_is_options(tq_bytes bytes);

#endif
