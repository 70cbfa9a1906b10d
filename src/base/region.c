/* SPDX-License-Identifier: Apache-2.0 */
#include "base/region.h"

#include <string.h>

#include "base/checked.h"

/* Chunks double in size from LEAST_CHUNK to MOST_CHUNK; a larger piece gets a chunk of its own size. */
enum { ALIGNMENT = 16, LEAST_CHUNK = 4096, MOST_CHUNK = 1 << 20 };

typedef struct tq_region_chunk {
    struct tq_region_chunk *next;
    size_t size; /* bytes behind the header */
} chunk;

_Static_assert(sizeof(chunk) <= ALIGNMENT, "a header takes one unit of alignment");

void tq_region_open(const tq_allocator *allocator, tq_region *out)
{
    *out = (tq_region){.allocator = *allocator};
}

static tq_status add_chunk(tq_region *region, uint64_t needed, tq_error *error)
{
    uint64_t size = region->chunks ? 2 * (uint64_t)region->chunks->size : LEAST_CHUNK;
    chunk *made;
    if (size > MOST_CHUNK)
        size = MOST_CHUNK;
    if (size < needed)
        size = needed;
    tq_status status = tq_allocate(&region->allocator, size + ALIGNMENT, 1, &made, error);
    if (status != TQ_OK)
        return status;
    *made = (chunk){region->chunks, (size_t)size};
    region->chunks = made;
    region->left = (size_t)size;
    return TQ_OK;
}

tq_status tq_region_get(tq_region *region, uint64_t count, size_t size, void *out, tq_error *error)
{
    uint64_t bytes;
    if (!tq_mul_u64(count, size, &bytes) || bytes > PTRDIFF_MAX - 2 * ALIGNMENT)
        return tq_fail(error, TQ_NO_MEMORY, TQ_NO_OFFSET, "no memory for %llu items of %llu bytes",
                       (unsigned long long)count, (unsigned long long)size);
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!region->chunks || bytes > region->left) {
        tq_status status = add_chunk(region, bytes, error);
        if (status != TQ_OK)
            return status;
    }
    void *piece = (uint8_t *)region->chunks + ALIGNMENT + (region->chunks->size - region->left);
    region->left -= (size_t)bytes;
    memcpy(out, &piece, sizeof piece);
    return TQ_OK;
}

void tq_region_close(tq_region *region)
{
    while (region->chunks) {
        chunk *next = region->chunks->next;
        tq_release(&region->allocator, region->chunks);
        region->chunks = next;
    }
    region->left = 0;
}
