/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluating one operator; resetting the state of operators and variables.
 */
#include "base/denormals.h"
#include "base/stop.h"
#include "ops/check.h"
#include "runtime/run.h"

/* XNNPACK flushes denormal floats to 0 while it runs, not while it packs. */
static tq_status eval_flushed(tq_node *node, tq_error *error)
{
    const tq_denormals before = tq_denormals_mode();
    tq_denormals_restore(TQ_DENORMALS_ZERO);
    tq_status status = node->eval(node, error);
    tq_denormals_restore(before);
    return status;
}

tq_status tq_node_eval(tq_node *node, tq_error *error)
{
    if (tq_step_of(node)->writes_nothing)
        return TQ_OK;
    TQ_TRY(tq_step_prepack(tq_step_of(node), error));
    const tq_status status =
        node->numerics == TQ_NUMERICS_XNNPACK ? eval_flushed(node, error) : node->eval(node, error);
    return tq_run_heard(tq_graph_of(node)->run, status, error);
}

tq_status tq_node_shape_later(tq_node *node, tq_error *error)
{
    return node->shape_later ? tq_run_heard(tq_graph_of(node)->run, node->shape_later(node, error), error) : TQ_OK;
}

void tq_graph_reset_variables(tq_graph_run *graph)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        tq_tensor *tensor = &graph->tensors[i];
        if (tensor->storage != TQ_STORAGE_VARIABLE || !tensor->data)
            continue;
        int zero = tensor->type == TQ_TensorType_INT8 ? tq_zero_point_of(tensor) : 0;
        tq_fill(tensor->data, zero, tensor->bytes);
    }
    for (uint32_t k = 0; k < graph->step_count; k++) {
        tq_node *node = &graph->steps[k].node;
        if (node->reset)
            node->reset(node);
    }
}
