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
    /* The same for blocks of TQ_PAGES_FROM bytes and more, whose size the caller gives again to release them; NULL:
       such blocks come from `allocate`, too. */
    void *(*allocate_pages)(void *context, size_t size);
    void (*release_pages)(void *context, void *memory, size_t size);
} tq_allocator;

enum { TQ_PAGES_FROM = 1 << 17 }; /* bytes from which a block is worth system calls of its own */

/* calloc and free; pages from the system, where it gives them: those are zero before anything touches them, where
   calloc clears every byte of a large block that it has handed out before. */
extern const tq_allocator tq_default_allocator;

/* count * size bytes, all zero; fails with TQ_NO_MEMORY.  No bytes give a pointer that is not NULL. */
tq_status tq_allocate(const tq_allocator *allocator, uint64_t count, size_t size, void *out, tq_error *error);
void tq_release(const tq_allocator *allocator, void *memory);

/* The same for memory whose size is told again when it is released. */
tq_status tq_allocate_sized(const tq_allocator *allocator, size_t size, void *out, tq_error *error);
void tq_release_sized(const tq_allocator *allocator, void *memory, size_t size);

#endif
