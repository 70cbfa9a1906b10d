/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of elementwise operators that XNNPACK computes as one lookup table.
 */
#ifndef TQ_DELEGATE_CHAINS_H
#define TQ_DELEGATE_CHAINS_H

#include "flatbuffer/table.h"
#include "ops/op.h"

/* The operators and tensors of a graph. */
typedef struct tq_chain_graph {
    tq_node *nodes;     /* in the file's order */
    size_t node_stride; /* bytes from one node to the next, >= sizeof(tq_node) */
    uint32_t node_count;
    tq_tensor *tensors; /* in the file's order: tensors[i].index == i */
    uint32_t tensor_count;
    tq_vector outputs; /* of the subgraph: int32 tensor indices, as the file has them */
    tq_stop *stop;     /* asked before each node */
} tq_chain_graph;

/* Sets node->tabulated and node->clamp_tabulated of all nodes, and tensor->reader of all tensors.  The caller has set
   node->numerics of all nodes (tq_backend_choose).  preserve_all: the interpreter keeps all tensors; then there is no
   chain.  Returns early, with some marks missing, where graph->stop says so: the caller asks it again. */
void tq_chains_find(const tq_chain_graph *graph, bool preserve_all);

#endif
