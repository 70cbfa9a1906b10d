/* SPDX-License-Identifier: Apache-2.0
 *
 * Places in one run of memory for items that live for a while, such that two that live at the same time do not overlap.
 */
#ifndef TQ_RUNTIME_PLACES_H
#define TQ_RUNTIME_PLACES_H

#include "base/memory.h"

typedef struct tq_item {
    uint64_t size, offset; /* offset: what is to be found */
    int32_t first, last;   /* it lives from the one to the other, both included; first <= last */
    uint32_t index;        /* the caller's */
} tq_item;

/* Greedy by size.  The largest item comes first; of equal ones that which begins to live first, then the earlier in the
   list.  Each gets the smallest gap between the items that live with it, of equal gaps the lowest, or else the place
   behind them.  *total: the bytes up to the last end.
   Work is bounded by that of 16,000 items which all live at the same time; items beyond it share nothing.
   TQ_MEMORY_LIMIT where the sizes add up to more than any memory.  Memory to work with comes from the pool. */
tq_status tq_items_place(tq_item *items, uint32_t count, tq_pool *pool, uint64_t *total, tq_error *error);

#endif
