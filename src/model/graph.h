/* SPDX-License-Identifier: Apache-2.0
 *
 * The producer and the consumers of each tensor of a subgraph, found once for all tensors.
 *
 * Compressed rows: one array holds all consumers, tensor after tensor, and `ends` holds the end of each tensor's row.
 * The graph ignores -1 and indices out of range.  Time and memory are linear in the number of tensors and of operator
 * inputs and outputs.
 */
#ifndef TQ_MODEL_GRAPH_H
#define TQ_MODEL_GRAPH_H

#include "model/model.h"

typedef struct tq_graph {
    tq_allocator allocator;
    uint32_t tensor_count;
    uint64_t edge_count; /* < 2^32 */
    uint32_t *producers; /* [tensor_count]: the first operator that writes the tensor, plus 1; 0: none */
    uint32_t *ends;      /* [tensor_count + 1]: [i + 1] is the end of tensor i's row in `consumers`; [0] is 0 */
    uint32_t *consumers; /* [edge_count]: indices of operators, tensor after tensor */
} tq_graph;

/* A new graph, which does not refer to the subgraph; tq_graph_free releases it.  TQ_NO_MEMORY; TQ_BYTE_BUDGET: 2^32
   edges or more. */
tq_status tq_graph_build(const tq_subgraph *subgraph, const tq_allocator *allocator, tq_graph *out, tq_error *error);
void tq_graph_free(tq_graph *graph);

/* The first operator with the tensor among its outputs; -1: none.  tensor: any value. */
int64_t tq_graph_producer(const tq_graph *graph, int64_t tensor);

/* The `count` operators with the tensor among their inputs, each once, ascending.  tensor: any value. */
const uint32_t *tq_graph_consumers(const tq_graph *graph, int64_t tensor, uint32_t *count);

#endif
