/* SPDX-License-Identifier: Apache-2.0
 *
 * Places in one run of memory for what lives for a while, such that two that live at the same time do not overlap.
 */
#ifndef TQ_RUNTIME_PLACES_H
#define TQ_RUNTIME_PLACES_H

#include "runtime/memory.h"

typedef struct tq_item {
    uint64_t size, offset; /* offset: what is to be found */
    int32_t first, last;   /* it lives from the one to the other, with both; first <= last */
    uint32_t index;        /* the caller's */
} tq_item;

/* Greedy by size: the largest first (of equal ones that which lives first, then in their order), each in the smallest gap
   between those that live with it, of equal ones the lowest, else behind them.  *total: the bytes up to the last end.
   Beyond so much work as 16,000 items that all live at the same time make, those that are left share nothing.
   TQ_MEMORY_LIMIT where the sizes add up to more than any memory; what working takes comes from the pool. */
tq_status tq_items_place(tq_item *items, uint32_t count, tq_pool *pool, uint64_t *total, tq_error *error);

#endif
