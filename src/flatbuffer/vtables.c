/* SPDX-License-Identifier: Apache-2.0
 *
 * The vtables of a plan, each once: an open hash table in the plan's region, at most three quarters full.
 */
#include "flatbuffer/writer_internal.h"

uint64_t tq_hash_bytes(const uint8_t *bytes, size_t size)
{
    uint64_t hash = size;
    for (; size >= 8; bytes += 8, size -= 8)
        hash = (hash ^ tq_load_u64(bytes)) * UINT64_C(0x9E3779B97F4A7C15), hash ^= hash >> 29;
    for (; size; bytes++, size--)
        hash = (hash ^ *bytes) * UINT64_C(0x9E3779B97F4A7C15), hash ^= hash >> 29;
    return hash;
}

static tq_vtable **find_vtable(tq_plan *plan, uint64_t hash, const uint8_t *bytes, size_t size)
{
    size_t entry = (size_t)hash & (plan->vtable_room - 1);
    for (;; entry = (entry + 1) & (plan->vtable_room - 1)) {
        tq_vtable *found = plan->vtables[entry];
        if (!found || (found->hash == hash && found->size == size && memcmp(found->bytes, bytes, size) == 0))
            return &plan->vtables[entry];
    }
}

static tq_status grow_vtables(tq_plan *plan, tq_error *error)
{
    if (4 * plan->vtable_count < 3 * plan->vtable_room)
        return TQ_OK;
    size_t old_room = plan->vtable_room;
    tq_vtable **old = plan->vtables, **entries;
    tq_status status = tq_region_get(&plan->region, old_room ? 2 * old_room : 256, sizeof *entries, &entries, error);
    if (status != TQ_OK)
        return status;
    plan->vtables = entries;
    plan->vtable_room = old_room ? 2 * old_room : 256;
    for (size_t i = 0; i < old_room; i++)
        if (old[i])
            *find_vtable(plan, old[i]->hash, old[i]->bytes, old[i]->size) = old[i];
    return TQ_OK;
}

tq_status tq_vtable_intern(tq_plan *plan, const uint8_t *bytes, uint16_t size, tq_vtable **out, tq_error *error)
{
    tq_status status = grow_vtables(plan, error);
    if (status != TQ_OK)
        return status;
    uint64_t hash = tq_hash_bytes(bytes, size);
    tq_vtable **entry = find_vtable(plan, hash, bytes, size);
    if (!*entry) {
        tq_vtable *made;
        status = tq_region_get(&plan->region, 1, sizeof *made + size, &made, error);
        if (status != TQ_OK)
            return status;
        made->hash = hash;
        made->size = size;
        memcpy(made->bytes, bytes, size);
        *entry = made;
        plan->vtable_count++;
    }
    *out = *entry;
    return TQ_OK;
}
