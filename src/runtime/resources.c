/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/resources.h"

#include <string.h>

#include "base/sort.h"
#include "base/stop.h"
#include "ops/check.h"

typedef struct entry {
    tq_bytes container, name; /* bytes of the file, which outlives the run */
    int32_t id;               /* -1: none yet (tq_resource_id) */
    tq_tensor value;
    tq_block *data;
} entry;

struct tq_resources {
    tq_pool *pool;
    tq_block *memory;      /* list: all arrays, and this record */
    entry *entries;        /* one for each VAR_HANDLE of the model */
    tq_hashtable *tables;  /* one for each HASHTABLE; key_type -1: not declared */
    uint32_t *names;       /* [name_count]: indices of `entries`, ascending by name, each name once */
    uint32_t *table_ids;     /* [table_id_count]: indices of `tables`, ascending by table_id, each id once */
    uint32_t *by_id;       /* [count]: indices of `entries` */
    uint32_t entry_count, table_count, name_count, table_id_count;
    int32_t count;
};

/* ---- the index, built once: files may have any number of variables and tables ---- */

void tq_resource_name(const tq_node *node, tq_bytes *container, tq_bytes *name)
{
    *container = tq_get_string(&node->options.table, TQ_VarHandleOptions_container);
    *name = tq_get_string(&node->options.table, TQ_VarHandleOptions_shared_name);
}

int32_t tq_hashtable_id(const tq_node *node)
{
    return (int32_t)tq_get_int(&node->options.table, TQ_HashtableOptions_table_id);
}

static int compare_bytes(tq_bytes a, tq_bytes b)
{
    const size_t common = a.size < b.size ? a.size : b.size;
    const int order = common && a.data != b.data ? memcmp(a.data, b.data, common) : 0;
    return order ? order : a.size < b.size ? -1 : a.size > b.size;
}

static int compare_names(const entry *e, tq_bytes container, tq_bytes name)
{
    const int order = compare_bytes(e->name, name);
    return order ? order : compare_bytes(e->container, container);
}

static bool name_before(const void *context, uint32_t a, uint32_t b)
{
    const tq_resources *r = context;
    const int order = compare_names(&r->entries[a], r->entries[b].container, r->entries[b].name);
    return order ? order < 0 : a < b;
}

static bool table_id_before(const void *context, uint32_t a, uint32_t b)
{
    const tq_resources *r = context;
    return r->tables[a].table_id != r->tables[b].table_id ? r->tables[a].table_id < r->tables[b].table_id : a < b;
}

static void count_nodes(tq_resources *r, const tq_graph_run *graph)
{
    for (uint32_t k = 0; k < graph->step_count; k++) {
        r->entry_count += graph->steps[k].node.row.code == TQ_BuiltinOperator_VAR_HANDLE;
        r->table_count += graph->steps[k].node.row.code == TQ_BuiltinOperator_HASHTABLE;
    }
}

static void list_nodes(tq_resources *r, const tq_graph_run *graph)
{
    for (uint32_t k = 0; k < graph->step_count; k++) {
        const tq_node *node = &graph->steps[k].node;
        if (node->row.code == TQ_BuiltinOperator_VAR_HANDLE) {
            tq_resource_name(node, &r->entries[r->entry_count].container, &r->entries[r->entry_count].name);
            r->entries[r->entry_count].id = -1;
            r->names[r->entry_count] = r->entry_count;
            r->entry_count++;
        }
        if (node->row.code == TQ_BuiltinOperator_HASHTABLE) {
            r->tables[r->table_count].table_id = tq_hashtable_id(node);
            r->tables[r->table_count].key_type = -1;
            r->table_ids[r->table_count] = r->table_count;
            r->table_count++;
        }
    }
}

static void sort_names(tq_resources *r)
{
    tq_sort_indices(r->names, r->entry_count, name_before, r);
    for (uint32_t i = 0; i < r->entry_count; i++) {
        const entry *e = &r->entries[r->names[i]];
        if (r->name_count == 0 || compare_names(&r->entries[r->names[r->name_count - 1]], e->container, e->name) != 0)
            r->names[r->name_count++] = r->names[i];
    }
}

static void sort_table_ids(tq_resources *r)
{
    tq_sort_indices(r->table_ids, r->table_count, table_id_before, r);
    for (uint32_t i = 0; i < r->table_count; i++)
        if (r->table_id_count == 0 ||
            r->tables[r->table_ids[r->table_id_count - 1]].table_id != r->tables[r->table_ids[i]].table_id)
            r->table_ids[r->table_id_count++] = r->table_ids[i];
}

static tq_status fill(tq_resources *r, const tq_run *run, tq_error *error)
{
    for (uint32_t i = 0; i < run->graph_count; i++)
        count_nodes(r, &run->graphs[i]);
    const uint32_t entries = r->entry_count, tables = r->table_count;
    r->entry_count = r->table_count = 0; /* tq_resources_close reads them */
    TQ_TRY(tq_blocks_add(&r->memory, r->pool, entries, sizeof *r->entries, &r->entries, error));
    TQ_TRY(tq_blocks_add(&r->memory, r->pool, tables, sizeof *r->tables, &r->tables, error));
    TQ_TRY(tq_blocks_add(&r->memory, r->pool, entries, sizeof *r->names, &r->names, error));
    TQ_TRY(tq_blocks_add(&r->memory, r->pool, entries, sizeof *r->by_id, &r->by_id, error));
    TQ_TRY(tq_blocks_add(&r->memory, r->pool, tables, sizeof *r->table_ids, &r->table_ids, error));
    for (uint32_t i = 0; i < run->graph_count; i++)
        list_nodes(r, &run->graphs[i]);
    sort_names(r);
    sort_table_ids(r);
    return TQ_OK;
}

tq_status tq_resources_open(const tq_run *run, tq_resources **out, tq_error *error)
{
    tq_block *memory = NULL;
    tq_resources *resources;
    TQ_TRY(tq_blocks_add(&memory, run->pool, 1, sizeof *resources, &resources, error));
    resources->pool = run->pool;
    resources->memory = memory;
    tq_status status = fill(resources, run, error);
    if (status == TQ_OK)
        *out = resources;
    else
        tq_resources_close(resources);
    return status;
}

void tq_resources_close(tq_resources *resources)
{
    if (!resources)
        return;
    for (uint32_t i = 0; i < resources->entry_count; i++)
        tq_block_release(resources->entries[i].data);
    for (uint32_t i = 0; i < resources->table_count; i++) {
        tq_hashtable *t = &resources->tables[i];
        tq_block_release(t->key_block);
        tq_block_release(t->value_block);
        tq_block_release(t->order_block);
    }
    tq_block *memory = resources->memory; /* holds *resources itself */
    tq_blocks_release(&memory);
}

/* ---- variables ---- */

int32_t tq_resource_id(tq_resources *resources, tq_bytes container, tq_bytes name)
{
    uint32_t low = 0, high = resources->name_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        entry *e = &resources->entries[resources->names[middle]];
        const int order = compare_names(e, container, name);
        if (order == 0) {
            if (e->id < 0) {
                resources->by_id[resources->count] = resources->names[middle];
                e->id = resources->count++;
            }
            return e->id;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static entry *entry_of(const tq_resources *resources, int32_t id)
{
    return id >= 0 && id < resources->count ? &resources->entries[resources->by_id[id]] : NULL;
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
    if (!tq_shape_equal(&e->value.shape, &value->shape))
        e->value.shape = value->shape;
    e->value.bytes = value->bytes;
    e->value.data = e->data->data;
    if (value->bytes)
        tq_copy(e->value.data, value->data, value->bytes);
    return TQ_OK;
}

/* ---- hash tables ---- */

static tq_hashtable *table_of(const tq_resources *resources, int32_t table_id)
{
    uint32_t low = 0, high = resources->table_id_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        tq_hashtable *t = &resources->tables[resources->table_ids[middle]];
        if (t->table_id == table_id)
            return t;
        if (t->table_id < table_id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

tq_hashtable *tq_hashtable_of(const tq_resources *resources, int32_t table_id)
{
    tq_hashtable *t = table_of(resources, table_id);
    return t && t->key_type >= 0 ? t : NULL;
}

void tq_hashtable_declare(tq_resources *resources, int32_t table_id, int32_t key_type, int32_t value_type)
{
    tq_hashtable *t = table_of(resources, table_id);
    if (!t || t->key_type >= 0)
        return;
    t->key_type = key_type;
    t->value_type = value_type;
}

static int64_t integer_key(const tq_hashtable *t, uint32_t index)
{
    return ((const int64_t *)t->key_block->data)[index];
}

/* Compares key `index` of the table with another key, as memcmp: < 0, 0 or > 0. */
static int compare_key(const tq_hashtable *t, uint32_t index, tq_bytes string, int64_t integer)
{
    if (t->key_type != TQ_TensorType_STRING) {
        int64_t key = integer_key(t, index);
        return key < integer ? -1 : key > integer;
    }
    tq_bytes key = tq_strings_item(&t->strings, index);
    size_t common = key.size < string.size ? key.size : string.size;
    int order = common ? memcmp(key.data, string.data, common) : 0;
    return order ? order : key.size < string.size ? -1 : key.size > string.size;
}

static int compare_entries(const tq_hashtable *t, uint32_t a, uint32_t b)
{
    if (t->key_type == TQ_TensorType_STRING)
        return compare_key(t, a, tq_strings_item(&t->strings, b), 0);
    return compare_key(t, a, (tq_bytes){NULL, 0}, integer_key(t, b));
}

static bool comes_before(const void *context, uint32_t a, uint32_t b)
{
    int order = compare_entries(context, a, b);
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
    tq_block_release(*out); /* of a failed attempt */
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
    tq_block *order = NULL;
    if (status == TQ_OK)
        status = tq_block_new(resources->pool, (uint64_t)count * sizeof *t->order, &order, error);
    if (status != TQ_OK)
        return status;
    t->order_block = order;
    t->order = order->data;
    for (size_t i = 0; i < count; i++)
        t->order[i] = (uint32_t)i;
    tq_sort_indices(t->order, count, comes_before, t);
    TQ_EACH (i, count)
        if (t->count == 0 || compare_entries(t, t->order[t->count - 1], t->order[i]) != 0)
            t->order[t->count++] = t->order[i];
    if (tq_stop_now()) { /* the table stays empty, and can be filled again */
        tq_block_release(order);
        t->order_block = NULL;
        t->order = NULL;
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
        int order = compare_key(t, t->order[middle], string, integer);
        if (order == 0)
            return t->order[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}
