/* SPDX-License-Identifier: Apache-2.0
 *
 * Values beside the tensors of a model, which its subgraphs share: resource variables, by the id that
 * VAR_HANDLE gives out, one for each (container, shared_name), and hash tables, by the number in the file.
 */
#ifndef TQ_RUNTIME_RESOURCES_H
#define TQ_RUNTIME_RESOURCES_H

#include "model/tensor.h"
#include "runtime/run.h"

typedef struct tq_resources tq_resources;

/* An index of the variables and hash tables that the operators of an open run's graphs name. */
tq_status tq_resources_open(const tq_run *run, tq_resources **out, tq_error *error);
void tq_resources_close(tq_resources *resources); /* NULL: nothing */

/* The id of a name; the same for the same name, and rising in the order of asking.  -1: no VAR_HANDLE names it. */
int32_t tq_resource_id(tq_resources *resources, tq_bytes container, tq_bytes name);

/* The variable that a VAR_HANDLE names, and the table that a HASHTABLE names. */
void tq_resource_name(const tq_node *node, tq_bytes *container, tq_bytes *name);
int32_t tq_hashtable_id(const tq_node *node);

/* A variable's value: type, shape, bytes and data; data NULL before anything was assigned to it.
   NULL: there is no such id. */
const tq_tensor *tq_resource_value(const tq_resources *resources, int32_t id);

/* Copies a tensor's type, shape and data into the variable.  TQ_BAD_DATA: no such id. */
tq_status tq_resource_assign(tq_resources *resources, int32_t id, const tq_tensor *value, tq_error *error);

/* A table of INT64 to STRING or STRING to INT64, which is filled once. */
typedef struct tq_hashtable {
    int32_t number;
    int32_t key_type, value_type;
    bool filled;
    tq_block *key_block, *value_block, *place_block; /* copies of the tensors, and places of their elements */
    tq_strings strings; /* the keys or the values, whichever are STRING */
    uint32_t *places;   /* [count]: in the order of the keys, which are all different */
    uint32_t count;
} tq_hashtable;

/* Gives the table of a number its types, unless it has some. */
void tq_hashtable_declare(tq_resources *resources, int32_t number, int32_t key_type, int32_t value_type);

/* NULL: there is none. */
tq_hashtable *tq_hashtable_of(const tq_resources *resources, int32_t number);

/* Fills a table that is empty from tensors of its types and of the same number of elements; of equal keys the first
   stays. TQ_BAD_STRINGS. */
tq_status tq_hashtable_fill(tq_resources *resources, tq_hashtable *table, const tq_tensor *keys,
                            const tq_tensor *values, tq_error *error);

/* Where the value of a key is: of the string, or of the integer.  -1: it is no key. */
int64_t tq_hashtable_find(const tq_hashtable *table, tq_bytes string, int64_t integer);

#endif
