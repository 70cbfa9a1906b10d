/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of reading a file into a tree, for the files that do it: tree_read.c (fields that the rows know), unknown.c
 * (fields that they do not know) and claims.c.
 *
 * The verifier has seen all but Model.buffers, but the bytes may be mapped from a file that changes: every read is
 * checked again.  Budgets bound the walk, as in verify.h: nodes   size / 2 + 2048: the verifier's size / 4 + 1024, and
 * as many buffers cells   size + 64 Ki.  A field that is reached once takes a byte at least slots   16 * size + 1 Mi of
 * vtables looked at bytes   4 * size + 16 MiB, of unknown vectors
 */
#ifndef TQ_FLATBUFFER_READING_H
#define TQ_FLATBUFFER_READING_H

#include "flatbuffer/tree.h"

/* An unknown field that may be an offset. */
typedef struct tq_guess {
    struct tq_guess *next;
    tq_tree_node *node;
    size_t at; /* of the field, in the file */
    uint16_t slot;
    uint8_t depth; /* unknown tables around it */
    bool is_union; /* the value of a union: an offset to a table, whatever else it looks like */
} tq_guess;

typedef struct tq_reading {
    tq_tree *tree;
    tq_bytes file;
    uint64_t end; /* unknown offsets lead below it; at most file.size */
    uint64_t nodes_left, cells_left, slots_left, bytes_left;
    tq_guess *guesses;
    uint8_t depth; /* of the guesses that are made now */
    tq_error *error; /* may be NULL */
} tq_reading;

/* Fails with TQ_TABLE_BUDGET; `what` names the budget that is spent, `at` is the byte where it was. */
tq_status tq_reading_over_budget(tq_reading *r, size_t at, const char *what);

/* A node for a table of the file, with room for the fields that it stores, paid from the budgets.  id: TQ_TABLE_NONE
   for a table that the rows do not know.  TQ_TABLE_BUDGET, TQ_NO_MEMORY. */
tq_status tq_reading_node(tq_reading *r, const tq_table *table, tq_table_id id, tq_tree_node **out);

/* Slots of the table's vtable, which has at least the 4 bytes of its header. */
static inline unsigned tq_slot_count(const tq_table *table)
{
    return (table->vtable_size - 4u) / 2;
}

#endif
