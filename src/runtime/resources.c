/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/resources.h"

#include <string.h>

typedef struct entry {
    struct entry *next;
    tq_bytes container, name; /* in the file, which outlives the run */
    tq_tensor value;
    tq_block *data;
} entry;

/* A model has tens of variables: a list is enough. */
struct tq_resources {
    tq_pool *pool;
    tq_block *memory; /* list: the entries and this record */
    entry *first, *last;
    int32_t count;
};

tq_status tq_resources_open(tq_pool *pool, tq_resources **out, tq_error *error)
{
    tq_block *memory = NULL;
    tq_resources *resources;
    tq_status status = tq_blocks_add(&memory, pool, 1, sizeof *resources, &resources, error);
    if (status != TQ_OK)
        return status;
    resources->pool = pool;
    resources->memory = memory;
    *out = resources;
    return TQ_OK;
}

void tq_resources_close(tq_resources *resources)
{
    if (!resources)
        return;
    for (entry *e = resources->first; e; e = e->next)
        tq_block_release(e->data);
    tq_block *memory = resources->memory; /* holds *resources itself */
    tq_blocks_release(&memory);
}

static bool same(tq_bytes a, tq_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

tq_status tq_resource_id(tq_resources *resources, tq_bytes container, tq_bytes name, int32_t *out, tq_error *error)
{
    int32_t id = 0;
    for (entry *e = resources->first; e; e = e->next, id++)
        if (same(e->container, container) && same(e->name, name)) {
            *out = id;
            return TQ_OK;
        }
    entry *e;
    tq_status status = tq_blocks_add(&resources->memory, resources->pool, 1, sizeof *e, &e, error);
    if (status != TQ_OK)
        return status;
    e->container = container;
    e->name = name;
    if (resources->last)
        resources->last->next = e;
    else
        resources->first = e;
    resources->last = e;
    *out = resources->count++;
    return TQ_OK;
}

static entry *entry_of(const tq_resources *resources, int32_t id)
{
    entry *e = resources->first;
    if (id < 0 || id >= resources->count)
        return NULL;
    while (id-- > 0)
        e = e->next;
    return e;
}

const tq_tensor *tq_resource_value(const tq_resources *resources, int32_t id)
{
    const entry *e = entry_of(resources, id);
    return e ? &e->value : NULL;
}

tq_status tq_resource_assign(tq_resources *resources, int32_t id, const tq_tensor *value, tq_error *error)
{
    entry *e = entry_of(resources, id);
    if (!e)
        return tq_fail(error, TQ_BAD_DATA, TQ_NO_OFFSET, "%d is no resource of this model, which has %d", id,
                       resources->count);
    if (!e->data || e->data->size < value->bytes) {
        tq_block *block;
        tq_status status = tq_block_new(resources->pool, value->bytes, &block, error);
        if (status != TQ_OK)
            return status;
        tq_block_release(e->data);
        e->data = block;
    }
    e->value.type = value->type;
    e->value.shape = value->shape;
    e->value.bytes = value->bytes;
    e->value.data = e->data->data;
    memcpy(e->value.data, value->data, value->bytes);
    return TQ_OK;
}
