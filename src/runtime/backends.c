/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels that each operator of a graph follows (delegate/backends.h).
 */
#include "delegate/chains.h"
#include "ops/check.h"
#include "runtime/begin.h"
#include "runtime/run.h"

/* Marks the graph outputs that LiteRT leaves unwritten: the delegate unpacks them, and no node that it refuses reads
   them.  Their values never reach the caller's memory. */
static void note_unwritten(tq_graph_run *graph)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        graph->slots[i].unread = true;
        graph->slots[i].unwritten = false;
    }
    for (uint32_t k = 0; k < graph->step_count; k++) {
        const tq_node *node = &graph->steps[k].node;
        bool taken = node->numerics == TQ_NUMERICS_XNNPACK || tq_backend_unpacks(node);
        for (int i = 0; !taken && i < node->in_count; i++)
            if (node->in[i])
                graph->slots[node->in[i]->index].unread = false;
    }
    for (uint32_t i = 0; i < graph->subgraph.outputs.count; i++) {
        int32_t tensor = tq_vector_i32(&graph->subgraph.outputs, i);
        if (tensor >= 0 && (uint32_t)tensor < graph->tensor_count && graph->slots[tensor].unread)
            graph->slots[tensor].unwritten = true;
    }
}

const char *tq_step_litert_failure(const tq_graph_run *graph, const tq_step *step)
{
    if (tq_backend_unpacks(&step->node) && graph->slots[step->node.out[0]->index].unwritten)
        return tq_backend_unwritten;
    return tq_backend_litert_failure(&step->node, step->backend.numerics, graph->run->options.numerics);
}

/* In the file's order: the output of a node that unpacks a constant is constant for later nodes. */
tq_status tq_graph_choose_backends(tq_graph_run *graph, tq_error *error)
{
    for (uint32_t k = 0; k < graph->step_count; k++) {
        TQ_TRY(tq_run_poll(graph->run, error));
        tq_step *step = &graph->steps[k];
        tq_node *node = &step->node;
        step->backend = tq_backend_choose(node, graph->run->options.numerics);
        node->numerics = step->backend.numerics;
        if (tq_backend_unpacks(node))
            node->out[0]->unpacked = true;
    }
    if (graph->run->options.numerics != TQ_NUMERICS_XNNPACK)
        return TQ_OK;
    note_unwritten(graph);
    TQ_TRY(tq_run_poll(graph->run, error));
    const tq_chain_graph chains = {(tq_node *)graph->steps, sizeof(tq_step),         graph->step_count, graph->tensors,
                                   graph->tensor_count,     graph->subgraph.outputs, &graph->run->stop};
    tq_chains_find(&chains, graph->run->options.preserve_all);
    return tq_run_poll(graph->run, error);
}
