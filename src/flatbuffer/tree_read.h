/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that read a tree share: tree_read.c, for what the rows know, unknown.c and claims.c.
 */
#ifndef TQ_FLATBUFFER_TREE_READ_H
#define TQ_FLATBUFFER_TREE_READ_H

#include "flatbuffer/tree.h"

/* An unknown field that may be an offset. */
typedef struct tq_guess {
    struct tq_guess *next;
    tq_node *node;
    size_t at; /* of the field */
    uint16_t slot;
    uint8_t depth; /* unknown tables around it */
    bool is_union; /* then it is an offset, to a table */
} tq_guess;

typedef struct tq_reading {
    tq_tree *tree;
    tq_bytes file;
    uint64_t end;
    uint64_t nodes_left, cells_left, slots_left, bytes_left;
    tq_guess *guesses;
    uint8_t depth; /* of the guesses that are made */
    tq_error *error;
} tq_reading;

/* A node for a table of the file with room for `cells`, paid from the budgets. */
tq_status tq_reading_node(tq_reading *r, const tq_table *table, tq_table_id id, tq_node **out);

static inline unsigned tq_slot_count(const tq_table *table)
{
    return (table->vtable_size - 4u) / 2;
}

/* Puts the inline bytes of all slots of `table` that the rows of node->id do not know into the node,
   and remembers those that may be offsets as guesses. */
tq_status tq_read_unknown_slots(tq_reading *r, const tq_table *table, tq_node *node);

/* Follows the guesses that are good, once all that is known has been read. */
tq_status tq_resolve_guesses(tq_reading *r);

#endif
