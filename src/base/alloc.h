/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocators.  Callers pass one in, so that a test can make the nth allocation fail.
 */
#ifndef TQ_BASE_ALLOC_H
#define TQ_BASE_ALLOC_H

#include "base/status.h"

typedef struct tq_allocator {
    void *(*allocate)(void *context, size_t size); /* zeroed bytes, size > 0; NULL: no memory */
    void (*release)(void *context, void *memory);  /* takes NULL */
    void *context;
    /* The same for blocks of TQ_PAGES_FROM bytes and more; release_pages takes the block's size.  NULL: `allocate`
       gives such blocks. */
    void *(*allocate_pages)(void *context, size_t size);
    void (*release_pages)(void *context, void *memory, size_t size);
} tq_allocator;

enum { TQ_PAGES_FROM = 1 << 17 }; /* bytes: a larger block is worth its own system calls */

/* calloc and free; pages from the system where possible: new pages are zero, and calloc would clear every byte of a
   large block that was used before. */
extern const tq_allocator tq_default_allocator;

/* *out: count * size zeroed bytes; not NULL for 0 bytes.  out: the address of a pointer.  TQ_NO_MEMORY. */
tq_status tq_allocate(const tq_allocator *allocator, uint64_t count, size_t size, void *out, tq_error *error);
/* memory: of tq_allocate, or NULL. */
void tq_release(const tq_allocator *allocator, void *memory);

/* The same for memory that is released with its size. */
tq_status tq_allocate_sized(const tq_allocator *allocator, size_t size, void *out, tq_error *error);
void tq_release_sized(const tq_allocator *allocator, void *memory, size_t size);

#endif
