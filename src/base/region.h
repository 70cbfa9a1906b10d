/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that is allocated piece by piece and released all at once.
 */
#ifndef TQ_BASE_REGION_H
#define TQ_BASE_REGION_H

#include "base/alloc.h"

typedef struct tq_region {
    tq_allocator allocator;
    struct tq_region_chunk *chunks; /* newest first; pieces are cut from the newest */
    size_t left;                    /* free bytes of the newest */
} tq_region;

/* An empty region; copies *allocator. */
void tq_region_open(const tq_allocator *allocator, tq_region *out);

/* *out: count * size zeroed bytes, aligned to 16, until the region closes; not NULL for 0 bytes.  TQ_NO_MEMORY. */
tq_status tq_region_get(tq_region *region, uint64_t count, size_t size, void *out, tq_error *error);

/* Releases every piece; the region is empty again. */
void tq_region_close(tq_region *region);

#endif
