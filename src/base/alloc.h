/* SPDX-License-Identifier: Apache-2.0
 *
 * Where memory comes from: passed in, so that a test can make the nth allocation fail.
 */
#ifndef TQ_BASE_ALLOC_H
#define TQ_BASE_ALLOC_H

#include "base/status.h"

typedef struct tq_allocator {
    void *(*allocate)(void *context, size_t size); /* bytes that are all zero; NULL: no memory */
    void (*release)(void *context, void *memory);  /* takes NULL */
    void *context;
} tq_allocator;

/* calloc, which gets large blocks from the system zeroed and touches none of them; free. */
extern const tq_allocator tq_default_allocator;

/* count * size bytes, all zero; fails with TQ_NO_MEMORY.  No bytes give a pointer that is not NULL. */
tq_status tq_allocate(const tq_allocator *allocator, uint64_t count, size_t size, void *out, tq_error *error);
void tq_release(const tq_allocator *allocator, void *memory);

#endif
