/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of reading a file into a tree, shared by tree_read.c (fields that the rows know), unknown.c (other fields)
 * and claims.c.
 *
 * The verifier has checked everything but Model.buffers.  The bytes may be mapped from a file that changes, so every
 * read is checked again.  Budgets bound the walk, as in verify.h:
 *   - nodes: size / 2 + 2048.  The verifier's size / 4 + 1024, and as many buffers.
 *   - cells: size + 64 Ki.  A field without sharing takes at least a byte.
 *   - slots of all vtables visited: 16 * size + 1 Mi.
 *   - bytes of unknown vectors: 4 * size + 16 MiB.
 */
#ifndef TQ_FLATBUFFER_READING_H
#define TQ_FLATBUFFER_READING_H

#include "flatbuffer/tree.h"

/* An unknown field that may be an offset. */
typedef struct tq_guess {
    struct tq_guess *next;
    tq_tree_node *node;
    size_t at; /* offset of the field in the file */
    uint16_t slot;
    uint8_t depth; /* unknown tables that enclose it */
    bool is_union; /* the value of a union, which can only be an offset to a table */
} tq_guess;

typedef struct tq_reading {
    tq_tree *tree;
    tq_bytes file;
    uint64_t end; /* the limit of targets of unknown offsets, <= file.size */
    uint64_t nodes_left, cells_left, slots_left, bytes_left;
    tq_guess *guesses;
    uint8_t depth; /* of new guesses */
    tq_error *error; /* may be NULL */
} tq_reading;

/* Fails with TQ_TABLE_BUDGET at byte `at` of the file.  budget: the name of the exhausted budget, for the message. */
tq_status tq_reading_over_budget(tq_reading *r, size_t at, const char *budget);

/* A new node for a table of the file, with room for its stored fields; charges the budgets.  id: TQ_TABLE_NONE for a
   table that the rows do not know.  TQ_TABLE_BUDGET, TQ_NO_MEMORY. */
tq_status tq_reading_node(tq_reading *r, const tq_table *table, tq_table_id id, tq_tree_node **out);

/* The number of slots of the table's vtable; vtable_size >= 4. */
static inline unsigned tq_slot_count(const tq_table *table)
{
    return (table->vtable_size - 4u) / 2;
}

#endif
