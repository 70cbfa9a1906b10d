/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <string.h>
#ifndef _WIN32
#include <unistd.h>
#endif

#include "base/checked.h"

struct tq_pool {
    tq_allocator allocator;
    uint64_t limit;
    atomic_ullong used, peak;
    uint64_t borrowed; /* read and written on the owner's thread alone */
    atomic_long references; /* one of the owner, one a block */
};

static uint64_t machine_memory(void)
{
#if defined(_SC_PHYS_PAGES) && defined(_SC_PAGESIZE)
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (pages > 0 && size > 0)
        return (uint64_t)pages * (uint64_t)size;
#endif
    return UINT64_MAX;
}

tq_status tq_pool_open(const tq_allocator *allocator, uint64_t limit, tq_pool **out, tq_error *error)
{
    tq_pool *pool;
    tq_status status = tq_allocate(allocator, 1, sizeof *pool, &pool, error);
    if (status != TQ_OK)
        return status;
    pool->allocator = *allocator;
    pool->limit = limit ? limit : machine_memory();
    atomic_init(&pool->references, 1);
    *out = pool;
    return TQ_OK;
}

static void pool_release(tq_pool *pool)
{
    if (atomic_fetch_sub(&pool->references, 1) == 1) {
        tq_allocator allocator = pool->allocator;
        tq_release(&allocator, pool);
    }
}

void tq_pool_close(tq_pool *pool)
{
    if (pool)
        pool_release(pool);
}

uint64_t tq_pool_used(const tq_pool *pool)
{
    return atomic_load(&((tq_pool *)pool)->used);
}

uint64_t tq_pool_peak(const tq_pool *pool)
{
    return atomic_load(&((tq_pool *)pool)->peak);
}

static bool fits(const tq_pool *pool, uint64_t used, uint64_t more)
{
    return tq_add_u64(used, pool->borrowed, &used) && tq_add_u64(used, more, &used) && used <= pool->limit;
}

static tq_status no_room(const tq_pool *pool, uint64_t size, tq_error *error)
{
    return tq_fail(error, TQ_MEMORY_LIMIT, TQ_NO_OFFSET,
                   "%llu bytes more would pass the limit of %llu (max_memory), of which %llu are in use",
                   (unsigned long long)size, (unsigned long long)pool->limit,
                   (unsigned long long)(tq_pool_used(pool) + pool->borrowed));
}

tq_status tq_pool_borrow(tq_pool *pool, uint64_t size, tq_error *error)
{
    if (!fits(pool, tq_pool_used(pool), size))
        return no_room(pool, size, error);
    pool->borrowed += size;
    return TQ_OK;
}

void tq_pool_return(tq_pool *pool, uint64_t size)
{
    pool->borrowed -= size;
}

/* Counts `size` bytes; false where they would pass the limit. */
static bool count(tq_pool *pool, uint64_t size)
{
    uint64_t before = atomic_fetch_add(&pool->used, size), now = before + size;
    if (!fits(pool, before, size)) {
        atomic_fetch_sub(&pool->used, size);
        return false;
    }
    unsigned long long peak = atomic_load(&pool->peak);
    while (peak < now && !atomic_compare_exchange_weak(&pool->peak, &peak, now))
        ;
    return true;
}

static size_t with_header(uint64_t size)
{
    return sizeof(tq_block) + TQ_ALIGNMENT + (size_t)size;
}

tq_status tq_block_new(tq_pool *pool, uint64_t size, tq_block **out, tq_error *error)
{
    if (size > PTRDIFF_MAX - 2 * TQ_ALIGNMENT - sizeof(tq_block) || !count(pool, size))
        return no_room(pool, size, error);
    void *memory;
    tq_status status = tq_allocate_sized(&pool->allocator, with_header(size), &memory, error);
    if (status != TQ_OK) {
        atomic_fetch_sub(&pool->used, size);
        return status;
    }
    tq_block *block = memory;
    uintptr_t after = (uintptr_t)(block + 1);
    block->data = (void *)((after + TQ_ALIGNMENT - 1) & ~(uintptr_t)(TQ_ALIGNMENT - 1));
    block->size = (size_t)size;
    block->pool = pool;
    atomic_init(&block->references, 1);
    atomic_fetch_add(&pool->references, 1);
    *out = block;
    return TQ_OK;
}

tq_block *tq_block_retain(tq_block *block)
{
    atomic_fetch_add(&block->references, 1);
    return block;
}

void tq_block_release(tq_block *block)
{
    if (!block || atomic_fetch_sub(&block->references, 1) != 1)
        return;
    tq_pool *pool = block->pool;
    atomic_fetch_sub(&pool->used, block->size);
    tq_release_sized(&pool->allocator, block, with_header(block->size));
    pool_release(pool);
}

tq_status tq_blocks_add(tq_block **list, tq_pool *pool, uint64_t count, size_t size, void *out, tq_error *error)
{
    tq_block *block = NULL;
    uint64_t bytes;
    if (!tq_mul_u64(count, size, &bytes))
        bytes = UINT64_MAX;
    tq_status status = tq_block_new(pool, bytes, &block, error);
    if (status != TQ_OK)
        return status;
    block->next = *list;
    *list = block;
    memcpy(out, &block->data, sizeof block->data);
    return TQ_OK;
}

/* The size of the next shared block: twice the last, within bounds. */
static uint64_t next_size(const tq_block *last)
{
    enum { FIRST = 2048, MOST = 32768 };
    const uint64_t twice = last ? 2 * (uint64_t)last->size : 0;
    return twice < FIRST ? FIRST : twice > MOST ? MOST : twice;
}

tq_status tq_blocks_cut(tq_block **list, tq_pool *pool, uint64_t count, size_t size, void *out, tq_error *error)
{
    uint64_t bytes;
    if (!tq_mul_u64(count, size, &bytes) || bytes == 0 || bytes > TQ_CUT_BYTES)
        return tq_blocks_add(*list && (*list)->spare ? &(*list)->next : list, pool, count, size, out, error);
    bytes = (bytes + TQ_ALIGNMENT - 1) / TQ_ALIGNMENT * TQ_ALIGNMENT;
    void *data;
    if (!*list || (*list)->spare < bytes) {
        tq_status status = tq_blocks_add(list, pool, 1, next_size(*list), &data, error);
        if (status != TQ_OK)
            return status;
        (*list)->spare = (*list)->size;
    }
    data = (char *)(*list)->data + ((*list)->size - (*list)->spare);
    (*list)->spare -= bytes;
    memcpy(out, &data, sizeof data);
    return TQ_OK;
}

void tq_blocks_release(tq_block **list)
{
    while (*list) {
        tq_block *block = *list;
        *list = block->next;
        tq_block_release(block);
    }
}
