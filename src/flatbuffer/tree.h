/* SPDX-License-Identifier: Apache-2.0
 *
 * A flatbuffer as a tree that can be changed: a node a table, a cell a stored field.
 *
 * Only stored fields have cells: a default value that a file stores stays stored.  Cells borrow little-endian bytes:
 * the file, and all other memory that is put into a tree, must outlive the tree.  A tree's allocations live until the
 * tree is closed.
 *
 * A table that several offsets of a file share is read once for each of them: a change of one copy never shows in
 * another.
 *
 * The tree has the fields that the rows do not know, too (unknown.c):
 *   inline    At most the bytes from the field to the next one.  A scalar of any width keeps its value.
 *   offsets   A vtable does not tell offsets from scalars.  An unknown field of 4 aligned bytes is read as an offset
 *             if its target lies in bytes that belong to no known table, vector or string, and is a text, a table,
 *             or a vector of these; or a vector of scalars with at least one element that starts where another
 *             object ends, since builders leave no gaps.  The copy of a vector has all bytes that may belong to it,
 *             at most 8 an element.
 * The errors of this rule: an unknown offset to an empty vector, or to an object that a known field shares, is copied
 * as a scalar and leads elsewhere in the written file; a scalar that equals the distance to the target of another
 * unknown field becomes an offset.  A union of unknown type is read as a table; where its bytes cannot be a table, the
 * union is left out, and tree->lost counts it.
 */
#ifndef TQ_FLATBUFFER_TREE_H
#define TQ_FLATBUFFER_TREE_H

#include "base/region.h"
#include "flatbuffer/table.h"

typedef enum tq_cell_kind {
    TQ_CELL_INLINE,  /* bytes in the table: a scalar, or a field whose kind is unknown */
    TQ_CELL_OUTSIDE, /* a u64: the offset of `bytes` behind the flatbuffer */
    TQ_CELL_VECTOR,  /* a vector of scalars, or a string */
    TQ_CELL_STRINGS,
    TQ_CELL_TABLE,
    TQ_CELL_TABLES
} tq_cell_kind;

typedef struct tq_tree_node tq_tree_node;

/* A function that writes all `length` bytes of its cell to `out` each time that the tree is written, so that the bytes
   need no memory before.  It is a member of a larger record with its arguments, which lives as long as the tree.  Where
   the sink is memory, several threads call makers of large vectors before the tables are written.  A maker that failed
   may be called again. */
typedef struct tq_maker {
    tq_status (*make)(struct tq_maker *self, uint8_t *out, tq_error *error);
} tq_maker;

typedef struct tq_cell {
    uint16_t slot;
    uint8_t kind;    /* tq_cell_kind */
    uint8_t align;   /* of inline bytes, or of a vector's first element: a power of two */
    uint8_t is_text; /* a NUL follows the vector */
    uint8_t is_made; /* of OUTSIDE and VECTOR: `maker` stands for `bytes` */
    uint32_t count;  /* elements of a vector */
    uint64_t length; /* bytes of INLINE, OUTSIDE and VECTOR */
    union {
        uint8_t scalar[8]; /* INLINE of at most 8 bytes */
        const uint8_t *bytes;
        tq_maker *maker;
        const tq_bytes *strings;
        tq_tree_node *table;
        tq_tree_node **tables;
    };
    uint64_t at; /* offset of the vector: while reading, in the file that is read; while writing, in the new file */
} tq_cell;

struct tq_tree_node {
    tq_table_id id;           /* TQ_TABLE_NONE: a table that the rows do not know */
    uint32_t count, capacity; /* cells used and allocated */
    tq_cell *cells;           /* by ascending slot */
    uint64_t at;              /* offset of the table, as tq_cell.at */
    /* of the writer */
    uint64_t written;         /* tree->writings when a plan last had the node */
    struct tq_vtable *vtable;
    uint8_t align;            /* 4 or 8 */
};

typedef struct tq_tree {
    tq_region region;
    tq_tree_node *root;
    bool has_identifier;
    uint8_t identifier[4];
    uint64_t lost;     /* unions of unknown type that are no tables, and are left out */
    uint64_t writings; /* plans of the tree so far */
} tq_tree;

/* A new tree of one empty table.  The caller closes it.  TQ_NO_MEMORY. */
tq_status tq_tree_open(tq_table_id root, const tq_allocator *allocator, tq_tree *out, tq_error *error);

/* A new tree of `root`, a verified table of `file`, and everything below it.  The caller closes it.  end <= file.size:
   the end of the flatbuffer in the file, and the limit of targets of unknown offsets.
   Memory: for most files a few kilobytes more than their tables take; at most 160 * file.size + 16 MiB, where tables
   are shared as much as they can be.  Fails as the verifier does, which did not check Model.buffers: the bytes may have
   changed since. */
tq_status tq_tree_read(tq_bytes file, const tq_table *root, tq_table_id id, uint64_t end, const tq_allocator *allocator,
                       tq_tree *out, tq_error *error);

/* Releases all memory of the tree. */
void tq_tree_close(tq_tree *tree);

/* The end of the last byte of `file` that belongs to the tree.  Bytes behind it belong to no table. */
uint64_t tq_tree_end(const tq_tree *tree, tq_bytes file);

/* ---- nodes ---- */

/* A new node without cells.  TQ_NO_MEMORY. */
tq_status tq_tree_node_make(tq_tree *tree, tq_table_id id, tq_tree_node **out, tq_error *error);

/* A copy in `tree` of the node and all nodes below it; the copy borrows the same bytes.  TQ_NO_MEMORY. */
tq_status tq_tree_node_copy(tq_tree *tree, const tq_tree_node *node, tq_tree_node **out, tq_error *error);

/* The cell of a slot, or NULL; valid until a cell is put or dropped.  A union's type byte is the cell of the slot
   before the union's. */
tq_cell *tq_tree_node_cell(const tq_tree_node *node, unsigned slot);

/* Adds a copy of the cell, or replaces the cell of its slot.  TQ_NO_MEMORY. */
tq_status tq_tree_node_put(tq_tree *tree, tq_tree_node *node, const tq_cell *cell, tq_error *error);

/* Removes the cell of a slot, if the node has one. */
void tq_tree_node_drop(tq_tree_node *node, unsigned slot);

/* Calls the maker of a cell once and stores the bytes in the tree.  A cell without a maker stays as it is.  Fails as
   the maker does; TQ_NO_MEMORY. */
tq_status tq_cell_settle(tq_tree *tree, tq_cell *cell, tq_error *error);

/* ---- fields by their rows ---- */

static inline tq_cell *tq_tree_node_field(const tq_tree_node *node, tq_field_id field)
{
    return tq_tree_node_cell(node, tq_fields[field].slot);
}

/* The value of a scalar field; the row's default where the node does not store it. */
tq_value tq_tree_node_scalar(const tq_tree_node *node, tq_field_id field);

/* Stores a scalar field.  bytes: little-endian, as many as the row's type has.  TQ_NO_MEMORY. */
tq_status tq_tree_node_set_scalar(tq_tree *tree, tq_tree_node *node, tq_field_id field, const uint8_t *bytes,
                                  tq_error *error);

/* The same for a field of type U64. */
tq_status tq_tree_node_set_u64(tq_tree *tree, tq_tree_node *node, tq_field_id field, uint64_t value, tq_error *error);

#endif
