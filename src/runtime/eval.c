/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluating one operator; resetting the state of operators and variables.
 */
#include "base/stop.h"
#include "ops/check.h"
#include "runtime/begin.h"
#include "runtime/node_call.h"
#include "runtime/run.h"

tq_status tq_node_eval(tq_node *node, tq_error *error)
{
    tq_step *step = tq_step_of(node);
    tq_run *run = tq_graph_of(node)->run;
    if (step->writes_nothing)
        return TQ_OK;
    if (step->to_pack)
        TQ_TRY(tq_step_prepack(step, error));
    if (!(node->op->flags & TQ_OP_COPIES))
        tq_run_flush(run, node->numerics ==
                              TQ_NUMERICS_XNNPACK); /* XNNPACK flushes them while it runs, not while it packs */
    return tq_node_call(node, node->eval, error);
}

tq_status tq_node_shape_later(tq_node *node, tq_error *error)
{
    tq_run *run = tq_graph_of(node)->run;
    if (!node->shape_later)
        return TQ_OK;
    tq_run_flush(run, false);
    return tq_node_call(node, node->shape_later, error);
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
