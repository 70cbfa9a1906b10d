/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields that the rows do not know; tree.h has the rule for them, and the cases that it cannot keep.
 */
#ifndef TQ_FLATBUFFER_UNKNOWN_H
#define TQ_FLATBUFFER_UNKNOWN_H

#include "flatbuffer/reading.h"

/* Puts the inline bytes of all slots of `table` that the rows of node->id do not know into the node, and adds those
   that may be offsets to r->guesses.  TQ_NO_MEMORY. */
tq_status tq_read_unknown_slots(tq_reading *r, const tq_table *table, tq_tree_node *node);

/* Follows the guesses that are offsets by the rule.  Called once, when all fields that the rows know have been read.
   TQ_TABLE_BUDGET, TQ_NO_MEMORY. */
tq_status tq_resolve_guesses(tq_reading *r);

#endif
