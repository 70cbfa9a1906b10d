/* SPDX-License-Identifier: Apache-2.0
 *
 * Which operators XNNPACK makes one table of.
 *
 * Of a chain of functions of one 8-bit tensor whose results are codes of 8 bits again, XNNPACK tabulates all 256 values
 * with the operators' own kernels, so that it does not matter to their results whether they are in a table; but one: a
 * MUL of a tensor with itself is a square elsewhere, with another rounding, and is multiplied here.
 *
 * In the file's order, each operator that is in no table yet begins a chain: its reader is the next link, as long as
 * each tensor has one reader only and is no output of the graph, and the reader is a function of what the chain has so
 * far and of constants of one element.  A fused activation is a link of its own.  A table has at most 10 links; those
 * behind the last one that gives codes of 8 bits are left out, and one link alone is none.  Links lie in one partition,
 * since each waits for nothing but the one before.  Where all tensors are preserved, every operator is a partition.
 * Source: XNNPACK 75db3c09, src/subgraph.c (xnn_subgraph_fuse_unary_quantized_into_lut).
 */
#include "ops/check.h"
#include "runtime/run.h"

enum { MOST_LINKS = 10 };

typedef struct link {
    tq_step *step;
    bool clamps; /* its fused activation */
} link;

typedef struct chain {
    link links[MOST_LINKS];
    int count;
    const tq_tensor *known[3 * MOST_LINKS]; /* what links read and write */
    int known_count;
} chain;

static void count_readers(tq_graph_run *graph)
{
    enum { NONE = -1, SEVERAL = -2 };
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        graph->slots[i].reader = NONE;
    for (uint32_t k = 0; k < graph->step_count; k++) {
        const tq_node *node = &graph->steps[k].node;
        for (int i = 0; i < node->in_count; i++) {
            if (!node->in[i])
                continue;
            tq_slot *slot = &graph->slots[node->in[i]->index];
            slot->reader = slot->reader == NONE || slot->reader == (int32_t)k ? (int32_t)k : SEVERAL;
        }
    }
    for (uint32_t i = 0; i < graph->subgraph.outputs.count; i++) {
        int32_t tensor = tq_vector_i32(&graph->subgraph.outputs, i);
        if (tensor >= 0 && (uint32_t)tensor < graph->tensor_count)
            graph->slots[tensor].reader = SEVERAL;
    }
}

static bool is_known(const chain *c, const tq_tensor *t)
{
    for (int i = 0; i < c->known_count; i++)
        if (c->known[i] == t)
            return true;
    return false;
}

/* Whether the link can follow what the chain has; *input: what it reads. */
static bool fits(const chain *c, link at, const tq_tensor **input)
{
    const tq_node *node = &at.step->node;
    if (node->numerics != TQ_NUMERICS_XNNPACK)
        return false;
    tq_backend_shape shape = tq_backend_element(node, input);
    if (at.clamps) {
        *input = node->out[0];
        return shape != TQ_BACKEND_OTHER;
    }
    return shape == TQ_BACKEND_UNARY ||
           (shape == TQ_BACKEND_BINARY && is_known(c, node->in[0]) && is_known(c, node->in[1]));
}

static void append(chain *c, link at)
{
    const tq_node *node = &at.step->node;
    c->links[c->count++] = at;
    for (int i = 0; i < 2 && i < node->in_count && !at.clamps; i++)
        c->known[c->known_count++] = node->in[i];
    c->known[c->known_count++] = node->out[0];
}

static bool find_next(tq_graph_run *graph, link at, link *next)
{
    if (!at.clamps && tq_backend_clamps(&at.step->node)) {
        *next = (link){at.step, true};
        return true;
    }
    int32_t reader = graph->slots[at.step->node.out[0]->index].reader;
    if (reader < 0)
        return false;
    *next = (link){&graph->steps[reader], false};
    return true;
}

static bool is_byte(const tq_tensor *t)
{
    return t->type == TQ_TensorType_INT8 || t->type == TQ_TensorType_UINT8;
}

/* The chain that begins with a link, and its table. */
static void follow(tq_graph_run *graph, link first)
{
    chain c = {.count = 0};
    const tq_tensor *input;
    if ((first.clamps ? first.step->clamp_in_table : first.step->in_table) || !fits(&c, first, &input) || !is_byte(input))
        return;
    append(&c, first);
    for (link next; c.count < MOST_LINKS && find_next(graph, c.links[c.count - 1], &next) && fits(&c, next, &input);)
        append(&c, next);
    while (c.count > 1 && !is_byte(c.links[c.count - 1].step->node.out[0]))
        c.count--;
    for (int i = 0; i < c.count && c.count > 1; i++)
        *(c.links[i].clamps ? &c.links[i].step->clamp_in_table : &c.links[i].step->in_table) = true;
}

tq_status tq_graph_find_chains(tq_graph_run *graph, tq_error *error)
{
    for (uint32_t k = 0; k < graph->step_count; k++)
        graph->steps[k].in_table = graph->steps[k].clamp_in_table = graph->steps[k].node.tabulated = false;
    if (graph->run->options.preserve_all)
        return TQ_OK;
    count_readers(graph);
    for (uint32_t k = 0; k < graph->step_count; k++) {
        TQ_TRY(tq_run_poll(graph->run, error));
        tq_step *step = &graph->steps[k];
        follow(graph, (link){step, false});
        if (tq_backend_clamps(&step->node))
            follow(graph, (link){step, true});
    }
    for (uint32_t k = 0; k < graph->step_count; k++)
        graph->steps[k].node.tabulated = graph->steps[k].in_table;
    return TQ_OK;
}
