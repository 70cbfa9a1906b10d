/* SPDX-License-Identifier: Apache-2.0
 *
 * A chain is a sequence of functions of one 8-bit tensor whose results are 8-bit values again.  XNNPACK evaluates the
 * operators' own kernels for all 256 values once, and replaces the chain by this table.  The results do not depend on
 * the table, with one exception: a MUL of a tensor with itself.  By itself XNNPACK computes a square with another
 * rounding; in a table it multiplies.
 *
 * In the file's order, each operator that is in no table yet begins a chain.  The next link is the reader of the last
 * link's result, as long as this tensor has one reader only and is no output of the graph, and the reader is a function
 * of tensors of the chain and of constants of one element.  A fused activation is a link of its own.  A table has at
 * most 10 links.  Links after the last one with an 8-bit result are dropped, and a single link is no chain.  All links
 * lie in one partition, since each waits for the one before only.  Where all tensors are preserved, every operator is a
 * partition.
 * Source: XNNPACK 75db3c09, src/subgraph.c (xnn_subgraph_fuse_unary_quantized_into_lut).
 */
#include "delegate/chains.h"

#include "delegate/backends.h"

enum { MOST_LINKS = 10 };

typedef struct link {
    tq_node *node;
    bool clamps; /* the link is the node's fused activation */
} link;

typedef struct chain {
    link links[MOST_LINKS];
    int count;
    const tq_tensor *known[3 * MOST_LINKS]; /* inputs and outputs of the links */
    int known_count;
} chain;

enum { NO_READER = -1, SEVERAL_READERS = -2 }; /* tensor->reader, else a node's index */

static tq_node *node_at(const tq_chain_graph *graph, uint32_t k)
{
    return (tq_node *)((char *)graph->nodes + k * graph->node_stride);
}

static void find_readers(const tq_chain_graph *graph)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        graph->tensors[i].reader = NO_READER;
    for (uint32_t k = 0; k < graph->node_count; k++) {
        const tq_node *node = node_at(graph, k);
        for (int i = 0; i < node->in_count; i++) {
            if (!node->in[i])
                continue;
            int32_t *reader = &node->in[i]->reader;
            *reader = *reader == NO_READER || *reader == (int32_t)k ? (int32_t)k : SEVERAL_READERS;
        }
    }
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        int32_t tensor = tq_vector_i32(&graph->outputs, i);
        if (tensor >= 0 && (uint32_t)tensor < graph->tensor_count)
            graph->tensors[tensor].reader = SEVERAL_READERS;
    }
}

static bool is_known(const chain *c, const tq_tensor *t)
{
    for (int i = 0; i < c->known_count; i++)
        if (c->known[i] == t)
            return true;
    return false;
}

/* Whether `at` can be the next link; *input: the tensor that it reads. */
static bool fits(const chain *c, link at, const tq_tensor **input)
{
    const tq_node *node = at.node;
    if (node->numerics != TQ_NUMERICS_XNNPACK)
        return false;
    tq_backend_kind kind = tq_backend_elementwise(node, input);
    if (at.clamps) {
        *input = node->out[0];
        return kind != TQ_BACKEND_OTHER;
    }
    return kind == TQ_BACKEND_UNARY ||
           (kind == TQ_BACKEND_BINARY && is_known(c, node->in[0]) && is_known(c, node->in[1]));
}

static void append(chain *c, link at)
{
    const tq_node *node = at.node;
    c->links[c->count++] = at;
    for (int i = 0; i < 2 && i < node->in_count && !at.clamps; i++)
        c->known[c->known_count++] = node->in[i];
    c->known[c->known_count++] = node->out[0];
}

static bool find_next(const tq_chain_graph *graph, link at, link *next)
{
    if (!at.clamps && tq_backend_clamps(at.node)) {
        *next = (link){at.node, true};
        return true;
    }
    int32_t reader = at.node->out[0]->reader;
    if (reader < 0)
        return false;
    *next = (link){node_at(graph, (uint32_t)reader), false};
    return true;
}

static bool is_8_bit(const tq_tensor *t)
{
    return t->type == TQ_TensorType_INT8 || t->type == TQ_TensorType_UINT8;
}

static bool *mark_of(link at)
{
    return at.clamps ? &at.node->clamp_tabulated : &at.node->tabulated;
}

/* Marks the links of the chain that begins with `first`, unless that is in a table already. */
static void follow(const tq_chain_graph *graph, link first)
{
    chain c = {.count = 0};
    const tq_tensor *input;
    if (*mark_of(first) || !fits(&c, first, &input) || !is_8_bit(input))
        return;
    append(&c, first);
    for (link next; c.count < MOST_LINKS && find_next(graph, c.links[c.count - 1], &next) && fits(&c, next, &input);)
        append(&c, next);
    while (c.count > 1 && !is_8_bit(c.links[c.count - 1].node->out[0]))
        c.count--;
    for (int i = 0; i < c.count && c.count > 1; i++)
        *mark_of(c.links[i]) = true;
}

void tq_chains_find(const tq_chain_graph *graph, bool preserve_all)
{
    for (uint32_t k = 0; k < graph->node_count; k++)
        node_at(graph, k)->tabulated = node_at(graph, k)->clamp_tabulated = false;
    if (preserve_all)
        return;
    find_readers(graph);
    for (uint32_t k = 0; k < graph->node_count && !tq_stop_ask(graph->stop); k++) {
        tq_node *node = node_at(graph, k);
        follow(graph, (link){node, false});
        if (tq_backend_clamps(node))
            follow(graph, (link){node, true});
    }
}
