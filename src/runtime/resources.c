/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/resources.h"

#include <string.h>

#include "base/sort.h"
#include "base/stop.h"

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
    tq_hashtable *tables;
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
    for (tq_hashtable *t = resources->tables; t; t = t->next) {
        tq_block_release(t->key_block);
        tq_block_release(t->value_block);
        tq_block_release(t->place_block);
    }
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
    if (value->bytes)
        tq_copy(e->value.data, value->data, value->bytes);
    return TQ_OK;
}

/* ---- hash tables ---- */

tq_hashtable *tq_hashtable_of(const tq_resources *resources, int32_t number)
{
    tq_hashtable *t = resources->tables;
    while (t && t->number != number)
        t = t->next;
    return t;
}

tq_status tq_hashtable_declare(tq_resources *resources, int32_t number, int32_t key_type, int32_t value_type,
                               tq_error *error)
{
    tq_hashtable *t = tq_hashtable_of(resources, number);
    if (t)
        return TQ_OK;
    tq_status status = tq_blocks_add(&resources->memory, resources->pool, 1, sizeof *t, &t, error);
    if (status != TQ_OK)
        return status;
    t->number = number;
    t->key_type = key_type;
    t->value_type = value_type;
    t->next = resources->tables;
    resources->tables = t;
    return TQ_OK;
}

static int64_t integer_key(const tq_hashtable *t, uint32_t place)
{
    return ((const int64_t *)t->key_block->data)[place];
}

/* Compares the key at a place with another: below 0, 0 or above 0, as for memcmp. */
static int compare_key(const tq_hashtable *t, uint32_t place, tq_bytes string, int64_t integer)
{
    if (t->key_type != TQ_TensorType_STRING) {
        int64_t key = integer_key(t, place);
        return key < integer ? -1 : key > integer;
    }
    tq_bytes key = tq_strings_item(&t->strings, place);
    size_t common = key.size < string.size ? key.size : string.size;
    int order = common ? memcmp(key.data, string.data, common) : 0;
    return order ? order : key.size < string.size ? -1 : key.size > string.size;
}

static int compare_places(const tq_hashtable *t, uint32_t a, uint32_t b)
{
    if (t->key_type == TQ_TensorType_STRING)
        return compare_key(t, a, tq_strings_item(&t->strings, b), 0);
    return compare_key(t, a, (tq_bytes){NULL, 0}, integer_key(t, b));
}

static bool comes_before(const void *context, uint32_t a, uint32_t b)
{
    int order = compare_places(context, a, b);
    return order ? order < 0 : a < b;
}

static tq_status copy_of(tq_pool *pool, const tq_tensor *tensor, tq_block **out, tq_error *error)
{
    tq_block *block;
    tq_status status = tq_block_new(pool, tensor->bytes, &block, error);
    if (status != TQ_OK)
        return status;
    if (tensor->bytes > 0)
        tq_copy(block->data, tensor->data, tensor->bytes);
    tq_block_release(*out); /* of an attempt that failed */
    *out = block;
    return TQ_OK;
}

static tq_status open_strings(tq_hashtable *t, size_t count, tq_error *error)
{
    const tq_block *block = t->key_type == TQ_TensorType_STRING ? t->key_block : t->value_block;
    tq_status status = tq_strings_open((tq_bytes){block->data, block->size}, &t->strings, error);
    if (status == TQ_OK && t->strings.count < count)
        status = tq_fail(error, TQ_BAD_STRINGS, TQ_NO_OFFSET, "a string tensor of %zu elements holds %u", count,
                         t->strings.count);
    return status;
}

tq_status tq_hashtable_fill(tq_resources *resources, tq_hashtable *t, const tq_tensor *keys, const tq_tensor *values,
                            tq_error *error)
{
    size_t count = tq_tensor_count(keys);
    tq_status status = copy_of(resources->pool, keys, &t->key_block, error);
    if (status == TQ_OK)
        status = copy_of(resources->pool, values, &t->value_block, error);
    if (status == TQ_OK)
        status = open_strings(t, count, error);
    tq_block *places = NULL;
    if (status == TQ_OK)
        status = tq_block_new(resources->pool, (uint64_t)count * sizeof *t->places, &places, error);
    if (status != TQ_OK)
        return status;
    t->place_block = places;
    t->places = places->data;
    for (size_t i = 0; i < count; i++)
        t->places[i] = (uint32_t)i;
    tq_sort_places(t->places, count, comes_before, t);
    TQ_EACH(i, count)
        if (t->count == 0 || compare_places(t, t->places[t->count - 1], t->places[i]) != 0)
            t->places[t->count++] = t->places[i];
    if (tq_stop_now()) { /* the table stays empty, and is filled another time */
        tq_block_release(places);
        t->place_block = NULL;
        t->places = NULL;
        t->count = 0;
        return TQ_INTERRUPTED;
    }
    t->filled = true;
    return TQ_OK;
}

int64_t tq_hashtable_find(const tq_hashtable *t, tq_bytes string, int64_t integer)
{
    uint32_t low = 0, high = t->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare_key(t, t->places[middle], string, integer);
        if (order == 0)
            return t->places[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}
