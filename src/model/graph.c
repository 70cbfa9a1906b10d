/* SPDX-License-Identifier: Apache-2.0 */
#include "model/graph.h"

typedef void visit(tq_graph *graph, uint32_t op, uint32_t tensor);

/* Calls `call` for each tensor in `field` (inputs or outputs) of each operator, operators ascending. */
static void walk(const tq_subgraph *subgraph, tq_field_id field, tq_graph *graph, visit *call)
{
    for (uint32_t op = 0; op < subgraph->operators.count; op++) {
        tq_table table = tq_vector_table(&subgraph->operators, op);
        tq_vector tensors = tq_get_vector(&table, field);
        for (uint32_t i = 0; i < tensors.count; i++) {
            int32_t tensor = tq_vector_i32(&tensors, i);
            if (tensor >= 0 && (uint32_t)tensor < graph->tensor_count)
                call(graph, op, (uint32_t)tensor);
        }
    }
}

/* Whether the tensor is the first of its kind in this operator.  Until note_producer fills it, `producers` holds the
   last visited operator + 1. */
static bool first_visit(tq_graph *graph, uint32_t op, uint32_t tensor)
{
    bool first = graph->producers[tensor] != op + 1;
    graph->producers[tensor] = op + 1;
    return first;
}

/* Counts at [tensor + 2], so that the prefix sum at [tensor + 1] is the start of the tensor's row. */
static void count_consumer(tq_graph *graph, uint32_t op, uint32_t tensor)
{
    if (first_visit(graph, op, tensor)) {
        graph->ends[tensor + 2]++;
        graph->edge_count++;
    }
}

/* ends[tensor + 1] moves from the start of the row to its end while the row fills.  The check keeps the write in bounds
   if the file has changed since the count. */
static void note_consumer(tq_graph *graph, uint32_t op, uint32_t tensor)
{
    if (first_visit(graph, op, tensor) && graph->ends[tensor + 1] < graph->edge_count)
        graph->consumers[graph->ends[tensor + 1]++] = op;
}

static void note_producer(tq_graph *graph, uint32_t op, uint32_t tensor)
{
    if (!graph->producers[tensor])
        graph->producers[tensor] = op + 1;
}

static void reset_visits(tq_graph *graph)
{
    memset(graph->producers, 0, graph->tensor_count * sizeof *graph->producers);
}

static tq_status fill(const tq_subgraph *subgraph, tq_graph *graph, tq_error *error)
{
    walk(subgraph, TQ_Operator_inputs, graph, count_consumer);
    if (graph->edge_count > UINT32_MAX)
        return tq_fail(error, TQ_BYTE_BUDGET, TQ_NO_OFFSET, "%llu operator inputs; a graph holds less than 2^32",
                       (unsigned long long)graph->edge_count);
    tq_status status =
        tq_allocate(&graph->allocator, graph->edge_count, sizeof *graph->consumers, &graph->consumers, error);
    if (status != TQ_OK)
        return status;
    for (uint32_t tensor = 0; tensor < graph->tensor_count; tensor++)
        graph->ends[tensor + 1] += graph->ends[tensor];
    reset_visits(graph);
    walk(subgraph, TQ_Operator_inputs, graph, note_consumer);
    reset_visits(graph);
    walk(subgraph, TQ_Operator_outputs, graph, note_producer);
    return TQ_OK;
}

tq_status tq_graph_build(const tq_subgraph *subgraph, const tq_allocator *allocator, tq_graph *out, tq_error *error)
{
    tq_graph graph = {.allocator = *allocator, .tensor_count = subgraph->tensors.count};
    uint64_t count = graph.tensor_count;
    tq_status status = tq_allocate(allocator, count, sizeof *graph.producers, &graph.producers, error);
    if (status == TQ_OK)
        status = tq_allocate(allocator, count + 2, sizeof *graph.ends, &graph.ends, error);
    if (status == TQ_OK)
        status = fill(subgraph, &graph, error);
    if (status == TQ_OK)
        *out = graph;
    else
        tq_graph_free(&graph);
    return status;
}

void tq_graph_free(tq_graph *graph)
{
    tq_release(&graph->allocator, graph->producers);
    tq_release(&graph->allocator, graph->ends);
    tq_release(&graph->allocator, graph->consumers);
    graph->producers = graph->ends = graph->consumers = NULL;
    graph->tensor_count = graph->edge_count = 0;
}

int64_t tq_graph_producer(const tq_graph *graph, int64_t tensor)
{
    if (tensor < 0 || tensor >= graph->tensor_count)
        return -1;
    return (int64_t)graph->producers[tensor] - 1;
}

const uint32_t *tq_graph_consumers(const tq_graph *graph, int64_t tensor, uint32_t *count)
{
    *count = 0;
    if (tensor < 0 || tensor >= graph->tensor_count || graph->ends[tensor] > graph->ends[tensor + 1])
        return graph->consumers;
    *count = graph->ends[tensor + 1] - graph->ends[tensor];
    return graph->consumers + graph->ends[tensor];
}
