/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields that the rows do not know; tree.h has the rule and its errors.
 */
#ifndef TQ_FLATBUFFER_UNKNOWN_H
#define TQ_FLATBUFFER_UNKNOWN_H

#include "flatbuffer/reading.h"

/* Adds a cell of inline bytes to `node` for each slot of `table` that the rows of node->id do not know, and a guess to
   r->guesses for each such slot that may be an offset.  TQ_NO_MEMORY, TQ_TABLE_BUDGET. */
tq_status tq_read_unknown_slots(tq_reading *r, const tq_table *table, tq_tree_node *node);

/* Reads the targets of all guesses that are offsets by the rule.  Called once, after all fields that the rows know.
   TQ_TABLE_BUDGET, TQ_NO_MEMORY. */
tq_status tq_resolve_guesses(tq_reading *r);

#endif
