/* SPDX-License-Identifier: Apache-2.0
 *
 * VAR_HANDLE, READ_VARIABLE and ASSIGN_VARIABLE: resource variables.
 * Source: LiteRT f6745779, tflite/kernels/var_handle.cc, read_variable.cc, assign_variable.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "runtime/prepare_functions.h"
#include "runtime/resources.h"
#include "runtime/run.h"

static tq_resources *resources_of(const tq_node *node)
{
    return tq_graph_of(node)->run->resources;
}

/* Checks that input 0 is a handle. */
static tq_status check_handle(const tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(RESOURCE), error));
    return tq_tensor_count(node->in[0]) ? TQ_OK : tq_input_fail(node, 0, error, "has no elements; it needs one handle");
}

/* ---- VAR_HANDLE ---- */

static tq_status eval_handle(tq_node *node, tq_error *error)
{
    (void)error;
    memcpy(node->out[0]->data, node->state, sizeof(int32_t));
    return TQ_OK;
}

tq_status tq_prepare_var_handle(tq_node *node, tq_error *error)
{
    int32_t *id;
    tq_shape scalar = {0};
    TQ_TRY(tq_check_output(node, 0, TQ_T(RESOURCE), error));
    TQ_TRY(tq_node_state(node, sizeof *id, &id, error));
    tq_bytes container, name;
    tq_resource_name(node, &container, &name);
    *id = tq_resource_id(resources_of(node), container, name);
    node->eval = eval_handle;
    node->foldable = true;
    return tq_output_shape(node, 0, &scalar, error);
}

/* ---- READ_VARIABLE ---- */

static tq_status eval_read(tq_node *node, tq_error *error)
{
    int32_t id = *(const int32_t *)node->in[0]->data;
    const tq_tensor *value = tq_resource_value(resources_of(node), id);
    tq_tensor *out = node->out[0];
    if (!value || !value->data)
        return tq_op_fail(node, error, TQ_BAD_DATA, "variable %d has no value: nothing was assigned to it", id);
    if (value->type != out->type)
        return tq_op_fail(node, error, TQ_BAD_DATA, "variable %d holds %s; the output is %s", id,
                          tq_type_name(value->type), tq_type_name(out->type));
    TQ_TRY(tq_output_bytes(node, 0, &value->shape, value->bytes, error));
    tq_copy(out->data, value->data, value->bytes);
    return TQ_OK;
}

tq_status tq_prepare_read_variable(tq_node *node, tq_error *error)
{
    TQ_TRY(check_handle(node, error));
    tq_output_later(node, 0);
    node->eval = eval_read;
    return TQ_OK;
}

/* ---- ASSIGN_VARIABLE ---- */

static tq_status eval_assign(tq_node *node, tq_error *error)
{
    tq_error inner;
    int32_t id = *(const int32_t *)node->in[0]->data;
    tq_status status = tq_resource_assign(resources_of(node), id, node->in[1], &inner);
    return status == TQ_OK ? TQ_OK : tq_op_fail(node, error, status, "%s", inner.text);
}

tq_status tq_prepare_assign_variable(tq_node *node, tq_error *error)
{
    TQ_TRY(check_handle(node, error));
    node->eval = eval_assign;
    return TQ_OK;
}
