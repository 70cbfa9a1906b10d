/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

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

const tq_allocator tq_default_allocator = {default_allocate, default_release, NULL};

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
