/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators that write and read each tensor of a subgraph, found once for all tensors.
 *
 * Compressed rows: all consumers stand in one array, tensor after tensor, and `ends` says where the
 * row of each tensor ends.  Indices out of range and -1 take part in nothing.  Building takes time and
 * memory linear in the number of tensors and of operator inputs and outputs.
 */
#ifndef TQ_MODEL_GRAPH_H
#define TQ_MODEL_GRAPH_H

#include "model/model.h"

typedef struct tq_graph {
    tq_allocator allocator;
    uint32_t tensor_count;
    uint64_t edge_count;
    uint32_t *producers; /* [tensor_count]: the first operator that writes the tensor, plus 1; 0: none */
    uint32_t *ends;      /* [tensor_count + 1]: [i + 1] is the end of tensor i's row in `consumers`; [0] is 0 */
    uint32_t *consumers; /* [edge_count]: operators, tensor after tensor */
} tq_graph;

/* Fails with TQ_NO_MEMORY, and with TQ_BYTE_BUDGET for 2^32 edges or more.  tq_graph_free ends the graph;
   the subgraph need not outlive it. */
tq_status tq_graph_build(const tq_subgraph *subgraph, const tq_allocator *allocator, tq_graph *out, tq_error *error);
void tq_graph_free(tq_graph *graph);

/* The first operator that lists the tensor as an output; -1: none, or there is no such tensor. */
int64_t tq_graph_producer(const tq_graph *graph, int64_t tensor);

/* The operators that list the tensor as an input, each once, ascending; `count` of them. */
const uint32_t *tq_graph_consumers(const tq_graph *graph, int64_t tensor, uint32_t *count);

#endif
