/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of a running model: blocks that are counted against a limit, and that live as long as anyone
 * holds them, so that a view of a tensor outlives the interpreter that it came from.
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
    struct tq_block *next; /* for the owner's list */
    size_t spare;          /* so many bytes at the end are free: tq_blocks_cut */
    tq_pool *pool;
    atomic_long references;
} tq_block;

/* A pool whose blocks hold `limit` bytes at most; 0: as many as the machine gives. */
tq_status tq_pool_open(const tq_allocator *allocator, uint64_t limit, tq_pool **out, tq_error *error);
void tq_pool_close(tq_pool *pool); /* its blocks live on until they are released; NULL: nothing */

uint64_t tq_pool_used(const tq_pool *pool); /* by its blocks */
uint64_t tq_pool_peak(const tq_pool *pool);

/* Counts bytes of other pools' blocks that the owner uses too, so that the limit holds for all that it uses.
   TQ_MEMORY_LIMIT. */
tq_status tq_pool_borrow(tq_pool *pool, uint64_t size, tq_error *error);
void tq_pool_return(tq_pool *pool, uint64_t size);

/* A block with one reference.  TQ_MEMORY_LIMIT where the limit is in the way, TQ_NO_MEMORY. */
tq_status tq_block_new(tq_pool *pool, uint64_t size, tq_block **out, tq_error *error);
tq_block *tq_block_retain(tq_block *block); /* from any thread */
void tq_block_release(tq_block *block);     /* from any thread; NULL: nothing */

/* A list of blocks that one owner releases together; starts as NULL. */
tq_status tq_blocks_add(tq_block **list, tq_pool *pool, uint64_t count, size_t size, void *out, tq_error *error);

/* The same, zeroed and aligned like blocks; but requests of at most TQ_CUT_BYTES share blocks. */
tq_status tq_blocks_cut(tq_block **list, tq_pool *pool, uint64_t count, size_t size, void *out, tq_error *error);

/* Not under the address sanitizer, which sees reads past the end of a block of malloc only. */
#if TQ_SANITIZED
enum { TQ_CUT_BYTES = 0 };
#else
enum { TQ_CUT_BYTES = 1024 };
#endif
void tq_blocks_release(tq_block **list);

#endif
