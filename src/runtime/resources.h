/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that all subgraphs of a model share: resource variables, one for each (container, shared_name), by the id that
 * VAR_HANDLE returns, and hash tables, by table_id, an option of HASHTABLE.
 */
#ifndef TQ_RUNTIME_RESOURCES_H
#define TQ_RUNTIME_RESOURCES_H

#include "model/tensor.h"
#include "runtime/run.h"

typedef struct tq_resources tq_resources;

/* A new index of the variables and hash tables of all VAR_HANDLE and HASHTABLE of an open run.  TQ_NO_MEMORY,
   TQ_MEMORY_LIMIT, TQ_INTERRUPTED. */
tq_status tq_resources_open(const tq_run *run, tq_resources **out, tq_error *error);

/* Releases the index and all values.  NULL: does nothing. */
void tq_resources_close(tq_resources *resources);

/* The id of a variable: 0, 1, 2 ... in the order of first calls; the same for equal names.  -1: no VAR_HANDLE has the
   name. */
int32_t tq_resource_id(tq_resources *resources, tq_bytes container, tq_bytes name);

/* The names in the options of a VAR_HANDLE node, and table_id in those of a HASHTABLE node. */
void tq_resource_name(const tq_node *node, tq_bytes *container, tq_bytes *name);
int32_t tq_hashtable_id(const tq_node *node);

/* The value of a variable: type, shape, bytes and data; data NULL before the first assignment.  NULL: no such id. */
const tq_tensor *tq_resource_value(const tq_resources *resources, int32_t id);

/* Copies a tensor's type, shape and data to the variable.  TQ_BAD_DATA: no such id; TQ_NO_MEMORY, TQ_MEMORY_LIMIT. */
tq_status tq_resource_assign(tq_resources *resources, int32_t id, const tq_tensor *value, tq_error *error);

/* A table from INT64 to STRING or from STRING to INT64, which is filled once. */
typedef struct tq_hashtable {
    int32_t table_id;
    int32_t key_type, value_type;
    bool filled;
    tq_block *key_block, *value_block, *order_block; /* copies of the tensors; `order` */
    tq_strings strings; /* the keys or the values: those of type STRING */
    uint32_t *order;   /* [count]: indices of elements, ascending by key, each key once */
    uint32_t count;
} tq_hashtable;

/* Sets the types of a table, unless they are set; does nothing without a table of that id. */
void tq_hashtable_declare(tq_resources *resources, int32_t table_id, int32_t key_type, int32_t value_type);

/* The table of that id; NULL: none, or its types are not set. */
tq_hashtable *tq_hashtable_of(const tq_resources *resources, int32_t table_id);

/* Fills an empty table.  keys and values have its types and equal numbers of elements; of equal keys the first counts.
   TQ_BAD_STRINGS, TQ_NO_MEMORY, TQ_MEMORY_LIMIT, TQ_INTERRUPTED. */
tq_status tq_hashtable_fill(tq_resources *resources, tq_hashtable *table, const tq_tensor *keys,
                            const tq_tensor *values, tq_error *error);

/* The index of the value of a key, `string` or `integer` by key_type; -1: no such key. */
int64_t tq_hashtable_find(const tq_hashtable *table, tq_bytes string, int64_t integer);

#endif
