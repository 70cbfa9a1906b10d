/* SPDX-License-Identifier: Apache-2.0
 *
 * A flatbuffer as a tree that can be changed: one node a table, one cell a field that it stores.
 *
 * Only what is stored has a cell, so that a default that a file spells out stays spelled out.  Cells
 * hold bytes as the file has them, little-endian, and borrow them: the file, and whatever else is put
 * into a tree, must outlive it.  A tree's allocations live until the tree is closed.
 *
 * A table that a file shares between several places is read once for each of them: a change in one
 * place never shows in another.
 *
 * Fields that the rows do not know come along, too (unknown.c):
 *   inline    the bytes from the field to the next one, at most.  A scalar of any width stays what it is.
 *   offsets   A vtable does not say which fields are offsets.  An unknown field of 4 aligned bytes is
 *             taken for one if it leads to bytes of the file that nothing known covers, and if these
 *             are a text, a table, or a vector of such; or a vector of scalars of at least one element,
 *             which starts where something else ends, since builders leave no gaps.  Vectors are
 *             copied with as many bytes as may belong to them, up to 8 an element.
 * The errors of this rule: an unknown offset to an empty vector, or to something that a known field
 * shares, stays the number that it was, and leads elsewhere in the written file; a number that happens
 * to be the distance to what another unknown field leads to becomes an offset.  A union whose type is not
 * known is taken for a table; where its bytes cannot be one, the union is lost, and tree->lost counts it.
 */
#ifndef TQ_FLATBUFFER_TREE_H
#define TQ_FLATBUFFER_TREE_H

#include "base/region.h"
#include "flatbuffer/table.h"

typedef enum tq_cell_kind {
    TQ_CELL_INLINE,  /* bytes in the table: a scalar, or a field whose kind is unknown */
    TQ_CELL_OUTSIDE, /* a u64 that says where, behind the flatbuffer, `bytes` stand */
    TQ_CELL_VECTOR,  /* of scalars; a string */
    TQ_CELL_STRINGS,
    TQ_CELL_TABLE,
    TQ_CELL_TABLES
} tq_cell_kind;

typedef struct tq_tree_node tq_tree_node;

/* Makes all `length` bytes of its cell, at `out`, each time that the tree is written, so that they need no memory
   before. It is a member of a record of what it needs, which lives as long as the tree.  Where the sink is memory,
   large vectors are made first, several at a time on threads.  One that fails may be asked again. */
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
    uint64_t at; /* while reading, where in the file its vector stands; while writing, where it will */
} tq_cell;

struct tq_tree_node {
    tq_table_id id;           /* TQ_TABLE_NONE: a table that the rows do not know */
    uint32_t count, capacity;
    tq_cell *cells;           /* by rising slot */
    uint64_t at;              /* as a cell's */
    uint64_t written;         /* the writing that last met the node; the writer's, as are the next two */
    struct tq_vtable *vtable;
    uint8_t align;
};

typedef struct tq_tree {
    tq_region region;
    tq_tree_node *root;
    bool has_identifier;
    uint8_t identifier[4];
    uint64_t lost;     /* stored unions that are no tables, and so are left out */
    uint64_t writings; /* how often the tree was written */
} tq_tree;

/* A tree of one empty table. */
tq_status tq_tree_open(tq_table_id root, const tq_allocator *allocator, tq_tree *out, tq_error *error);

/* A tree of all that `root`, a verified table of `file`, leads to.  Unknown offsets lead below `end`,
   which is file.size unless other data follow the flatbuffer in the file.
   Memory: for most files a few kilobytes more than their tables take; at most 160 * file.size + 16 MiB, where tables
   are shared as much as they can be.  Fails as the verifier does: it did not look at Model.buffers, and the bytes may
   have changed since. */
tq_status tq_tree_read(tq_bytes file, const tq_table *root, tq_table_id id, uint64_t end, const tq_allocator *allocator,
                       tq_tree *out, tq_error *error);

void tq_tree_close(tq_tree *tree);

/* The end of the last byte of `file` that the tree was read from or borrows.  Bytes behind it belong to no table. */
uint64_t tq_tree_end(const tq_tree *tree, tq_bytes file);

/* ---- nodes ---- */

tq_status tq_tree_node_make(tq_tree *tree, tq_table_id id, tq_tree_node **out, tq_error *error);

/* A copy of the node and all below it, in `tree`; bytes are borrowed as before. */
tq_status tq_tree_node_copy(tq_tree *tree, const tq_tree_node *node, tq_tree_node **out, tq_error *error);

/* The cell of a slot, or NULL.  A union's type byte is the cell of the slot before its own. */
tq_cell *tq_tree_node_cell(const tq_tree_node *node, unsigned slot);

/* Puts a cell in the place of the one of its slot, or among the others. */
tq_status tq_tree_node_put(tq_tree *tree, tq_tree_node *node, const tq_cell *cell, tq_error *error);

void tq_tree_node_drop(tq_tree_node *node, unsigned slot);

/* Gives a cell that has a maker its bytes, which then stay.  Any other is left alone.  Fails as the maker does. */
tq_status tq_cell_settle(tq_tree *tree, tq_cell *cell, tq_error *error);

/* ---- fields by their rows ---- */

static inline tq_cell *tq_tree_node_field(const tq_tree_node *node, tq_field_id field)
{
    return tq_tree_node_cell(node, tq_fields[field].slot);
}

/* A scalar, or the row's default where it is not stored. */
tq_value tq_tree_node_scalar(const tq_tree_node *node, tq_field_id field);

/* The scalar at `bytes`, of the row's size. */
tq_status tq_tree_node_set_scalar(tq_tree *tree, tq_tree_node *node, tq_field_id field, const uint8_t *bytes,
                                  tq_error *error);
tq_status tq_tree_node_set_u64(tq_tree *tree, tq_tree_node *node, tq_field_id field, uint64_t value, tq_error *error);

#endif
