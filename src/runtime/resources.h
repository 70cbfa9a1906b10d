/* SPDX-License-Identifier: Apache-2.0
 *
 * What lives beside the tensors of a model, and is shared by its subgraphs: resource variables, by the id that
 * VAR_HANDLE gives out, one for each (container, shared_name).
 */
#ifndef TQ_RUNTIME_RESOURCES_H
#define TQ_RUNTIME_RESOURCES_H

#include "ops/tensor.h"
#include "runtime/memory.h"

typedef struct tq_resources tq_resources;

tq_status tq_resources_open(tq_pool *pool, tq_resources **out, tq_error *error);
void tq_resources_close(tq_resources *resources); /* NULL: nothing */

/* The id of a name; the same for the same name. */
tq_status tq_resource_id(tq_resources *resources, tq_bytes container, tq_bytes name, int32_t *out, tq_error *error);

/* A variable's value: type, shape, bytes and data; data NULL before anything was assigned to it.
   NULL: there is no such id. */
const tq_tensor *tq_resource_value(const tq_resources *resources, int32_t id);

/* Copies a tensor's type, shape and data into the variable.  TQ_BAD_DATA: no such id. */
tq_status tq_resource_assign(tq_resources *resources, int32_t id, const tq_tensor *value, tq_error *error);

#endif
