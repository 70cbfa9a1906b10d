/* SPDX-License-Identifier: Apache-2.0
 *
 * Offsets in one block of memory for items with lifetimes: two items that live at the same time do not overlap.
 */
#ifndef TQ_RUNTIME_ARENA_OFFSETS_H
#define TQ_RUNTIME_ARENA_OFFSETS_H

#include "base/memory.h"

typedef struct tq_arena_item {
    uint64_t size, offset; /* bytes; the offset is the result */
    int32_t first, last;   /* the item lives from the one to the other, both included; first <= last */
    uint32_t index;        /* the caller's */
} tq_arena_item;

/* Greedy by size, for `count` items, 0 and more.  Larger items come first; of equal sizes, the one that begins to live
   first; then the earlier in the list.  Each item gets the smallest gap between the items that live with it, of equal
   gaps the lowest, or else the offset behind them.  *total: the largest end of an item. Work is bounded by that of
   16,000 items which all live at the same time; further items share no memory. TQ_MEMORY_LIMIT: the sizes add up to
   more than INT64_MAX, or the pool's limit leaves no memory to work with. */
tq_status tq_arena_find_offsets(tq_arena_item *items, uint32_t count, tq_pool *pool, uint64_t *total, tq_error *error);

#endif
