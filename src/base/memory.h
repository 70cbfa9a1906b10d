/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of a running model: blocks with reference counts, counted against a limit.  A view of a tensor holds a
 * reference, and so outlives its interpreter.
 */
#ifndef TQ_BASE_MEMORY_H
#define TQ_BASE_MEMORY_H

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/sanitized.h"

enum { TQ_ALIGNMENT = 64 };

typedef struct tq_pool tq_pool;

/* Zeroed memory, aligned to TQ_ALIGNMENT, of `size` bytes. */
typedef struct tq_block {
    void *data;
    size_t size;
    struct tq_block *next; /* in the owner's list */
    size_t spare;          /* free bytes at the end: tq_blocks_cut */
    tq_pool *pool;
    atomic_long references;
} tq_block;

/* A pool whose blocks hold at most `limit` bytes; 0: the memory of the machine.  TQ_NO_MEMORY. */
tq_status tq_pool_open(const tq_allocator *allocator, uint64_t limit, tq_pool **out, tq_error *error);
void tq_pool_close(tq_pool *pool); /* blocks live until they are released; NULL: nothing */

uint64_t tq_pool_used(const tq_pool *pool); /* bytes in its blocks */
uint64_t tq_pool_peak(const tq_pool *pool); /* the most bytes at any time */

/* Counts bytes in blocks of other pools against this limit; tq_pool_return undoes it.  On the owner's thread.
   TQ_MEMORY_LIMIT. */
tq_status tq_pool_borrow(tq_pool *pool, uint64_t size, tq_error *error);
void tq_pool_return(tq_pool *pool, uint64_t size);

/* A block with one reference; size: 0 and more.  TQ_MEMORY_LIMIT: the limit forbids it; TQ_NO_MEMORY. */
tq_status tq_block_new(tq_pool *pool, uint64_t size, tq_block **out, tq_error *error);
tq_block *tq_block_retain(tq_block *block); /* from any thread */
void tq_block_release(tq_block *block);     /* from any thread; NULL: nothing */

/* Adds a block of count * size bytes to a list, which starts as NULL and is released as a whole; *out: its data.
   Errors: of tq_block_new. */
tq_status tq_blocks_add(tq_block **list, tq_pool *pool, uint64_t count, size_t size, void *out, tq_error *error);

/* The same, but requests of at most TQ_CUT_BYTES share blocks; zeroed and aligned likewise. */
tq_status tq_blocks_cut(tq_block **list, tq_pool *pool, uint64_t count, size_t size, void *out, tq_error *error);

/* Not under the address sanitizer, which checks the ends of malloc's blocks alone. */
#if TQ_SANITIZED
enum { TQ_CUT_BYTES = 0 };
#else
enum { TQ_CUT_BYTES = 1024 };
#endif
void tq_blocks_release(tq_block **list);

#endif
