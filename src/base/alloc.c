/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#include "base/sanitized.h"
/* Not under the address sanitizer, which checks the ends of malloc's blocks alone. */
#if !defined(_WIN32) && !TQ_SANITIZED
#include <sys/mman.h>
#endif

#include "base/checked.h"
#include "base/pages.h"

static void *default_allocate(void *context, size_t size)
{
    (void)context;
    return calloc(1, size);
}

static void default_release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

#ifdef MAP_ANONYMOUS
static void *map_pages(void *context, size_t size)
{
    (void)context;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    tq_pages_prefer_large(memory, size);
    return memory;
}

static void unmap_pages(void *context, void *memory, size_t size)
{
    (void)context;
    munmap(memory, size);
}
#else
#define map_pages NULL
#define unmap_pages NULL
#endif

const tq_allocator tq_default_allocator = {default_allocate, default_release, NULL, map_pages, unmap_pages};

tq_status tq_allocate(const tq_allocator *allocator, uint64_t count, size_t size, void *out, tq_error *error)
{
    uint64_t bytes;
    void *memory = NULL;
    if (tq_mul_u64(count, size, &bytes) && bytes <= PTRDIFF_MAX)
        memory = allocator->allocate(allocator->context, bytes ? (size_t)bytes : 1);
    if (!memory)
        return tq_fail(error, TQ_NO_MEMORY, TQ_NO_OFFSET, "no memory for %llu items of %llu bytes",
                       (unsigned long long)count, (unsigned long long)size);
    memcpy(out, &memory, sizeof memory);
    return TQ_OK;
}

void tq_release(const tq_allocator *allocator, void *memory)
{
    allocator->release(allocator->context, memory);
}

static bool takes_pages(const tq_allocator *allocator, size_t size)
{
    return allocator->allocate_pages && size >= TQ_PAGES_FROM;
}

tq_status tq_allocate_sized(const tq_allocator *allocator, size_t size, void *out, tq_error *error)
{
    if (!takes_pages(allocator, size))
        return tq_allocate(allocator, 1, size, out, error);
    void *memory = allocator->allocate_pages(allocator->context, size);
    if (!memory)
        return tq_fail(error, TQ_NO_MEMORY, TQ_NO_OFFSET, "no memory for %llu bytes", (unsigned long long)size);
    memcpy(out, &memory, sizeof memory);
    return TQ_OK;
}

void tq_release_sized(const tq_allocator *allocator, void *memory, size_t size)
{
    if (takes_pages(allocator, size))
        allocator->release_pages(allocator->context, memory, size);
    else
        tq_release(allocator, memory);
}
