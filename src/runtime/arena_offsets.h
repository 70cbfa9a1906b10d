/* SPDX-License-Identifier: Apache-2.0
 *
 * Offsets in one block of memory for items with lifetimes: two items that live at the same time do not overlap.
 */
#ifndef TQ_RUNTIME_ARENA_OFFSETS_H
#define TQ_RUNTIME_ARENA_OFFSETS_H

#include "base/memory.h"

typedef struct tq_arena_item {
    uint64_t size, offset; /* bytes; offset: the result */
    int32_t first, last;   /* the lifetime, both ends included; first <= last */
    uint32_t index;        /* of the caller; not read */
} tq_arena_item;

/* Sets the offsets of `count` >= 0 items, greedily by size.  Order: larger items first; of equal sizes the one with the
   least `first`; then the earlier in the list.  An item gets the smallest gap that fits between the items that live at
   the same time, of equal gaps the lowest, otherwise the offset behind them.  *total: the largest end of an item,
   bytes. Work is bounded by that of 16,000 items with one common lifetime; further items share no memory.
   TQ_MEMORY_LIMIT: the sizes add up to more than INT64_MAX, or the pool's limit leaves no memory for the search;
   TQ_NO_MEMORY. */
tq_status tq_arena_find_offsets(tq_arena_item *items, uint32_t count, tq_pool *pool, uint64_t *total, tq_error *error);

#endif
