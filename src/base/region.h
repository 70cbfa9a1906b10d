/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that is given out piece by piece and taken back all at once.
 */
#ifndef TQ_BASE_REGION_H
#define TQ_BASE_REGION_H

#include "base/alloc.h"

typedef struct tq_region {
    tq_allocator allocator;
    struct tq_region_chunk *chunks; /* the newest first; pieces come from it alone */
    size_t left;                    /* bytes of it that are not given out */
} tq_region;

void tq_region_open(const tq_allocator *allocator, tq_region *out);

/* count * size bytes, all zero and aligned to 16, which live until the region closes; fails with
   TQ_NO_MEMORY.  No bytes give a pointer that is not NULL. */
tq_status tq_region_get(tq_region *region, uint64_t count, size_t size, void *out, tq_error *error);

void tq_region_close(tq_region *region);

#endif
