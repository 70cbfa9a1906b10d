/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of 256 bytes in place of DEQUANTIZE, functions of one float each, and QUANTIZE of 8-bit values: converters
 * leave an operator without an 8-bit kernel so (SIN, EXP, ELU).
 *
 * Each element of the result is a function of one byte.  The operators of the chain compute it for all bytes when the
 * graph is allocated, so that a table has their bits.  Only where no kernel depends on the element's place: not
 * TFLite's optimized kernels, whose last elements follow other formulas.  Runs of single operators, and interpreters
 * that keep all tensors, run the chain.  XNNPACK has such tables too (delegate/chains.h).
 */
#include <string.h>

#include "kernels/arrays/lookup.h"
#include "ops/check.h"
#include "ops/parallel.h"
#include "runtime/begin.h"
#include "runtime/run.h"

enum {
    MOST_LINKS = 8,
    BYTES = 256,
    LEAST = 1024, /* elements: a table of fewer takes longer to fill than some runs save */
    COST = 30     /* picoseconds for an element */
};

static bool is_8_bit(const tq_tensor *t)
{
    return (t->type == TQ_TensorType_INT8 || t->type == TQ_TensorType_UINT8) && t->quantization.count == 1;
}

/* ---- before the arena is planned ---- */

static void count_readers(tq_graph_run *graph)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        graph->slots[i].readers = graph->slots[i].is_output;
    for (uint32_t k = 0; k < graph->step_count; k++) {
        const tq_node *node = &graph->steps[k].node;
        for (int i = 0; i < node->in_count; i++)
            if (node->in[i])
                graph->slots[node->in[i]->index].readers++;
    }
}

static bool can_be_link(const tq_step *step)
{
    const tq_node *node = &step->node;
    return step->phase == TQ_NODE_READY && node->numerics != TQ_NUMERICS_OPTIMIZED && node->in_count == 1 &&
           node->out_count == 1 && node->in[0] && node->out[0] && node->in[0]->storage == TQ_STORAGE_ARENA &&
           node->out[0]->storage == TQ_STORAGE_ARENA;
}

/* The step that computes a float tensor which no other operator reads; NULL: there is none. */
static tq_step *only_source(const tq_graph_run *graph, const tq_tensor *t)
{
    const tq_slot *slot = &graph->slots[t->index];
    return t->type == TQ_TensorType_FLOAT32 && slot->readers == 1 && slot->producer >= 0 ? &graph->steps[slot->producer]
                                                                                         : NULL;
}

/* The steps of the chain that ends with `step`, from the last on: a number of them, 0 without a chain. */
static int find_chain(const tq_graph_run *graph, tq_step *step, tq_step *links[MOST_LINKS])
{
    if (step->node.row.code != TQ_BuiltinOperator_QUANTIZE || !can_be_link(step) || !is_8_bit(step->node.out[0]) ||
        tq_tensor_count(step->node.out[0]) < LEAST)
        return 0;
    links[0] = step;
    for (int n = 1; n < MOST_LINKS; n++) {
        tq_step *before = only_source(graph, links[n - 1]->node.in[0]);
        if (!before || !can_be_link(before))
            return 0;
        links[n] = before;
        if (before->node.row.code == TQ_BuiltinOperator_DEQUANTIZE) {
            const tq_tensor *in = before->node.in[0];
            return n > 1 && is_8_bit(in) && !graph->slots[in->index].is_input ? n + 1 : 0;
        }
        if (before->node.op->prepare != tq_prepare_unary)
            return 0;
    }
    return 0;
}

void tq_graph_find_tables(tq_graph_run *graph)
{
    tq_step *links[MOST_LINKS];
    if (graph->run->options.preserve_all)
        return;
    count_readers(graph);
    for (uint32_t k = 0; k < graph->step_count; k++) {
        const int count = find_chain(graph, &graph->steps[k], links);
        if (!count)
            continue;
        links[0]->looked_up = links[count - 1]->node.in[0];
        for (int i = 1; i < count; i++)
            links[i]->in_table = true;
    }
}

/* ---- when it is ---- */

/* The chain's operators on all bytes, in the place of the tensors' first elements. */
static tq_status fill(tq_graph_run *graph, tq_step *const *links, int count, tq_error *error)
{
    uint8_t *in = links[count - 1]->node.in[0]->data;
    tq_status status = TQ_OK;
    for (int i = 0; i < BYTES; i++)
        in[i] = (uint8_t)i;
    for (int i = count - 1; i >= 0 && status == TQ_OK; i--)
        status = tq_node_eval(&links[i]->node, error);
    tq_run_flush(graph->run, false);
    if (status == TQ_OK)
        status = tq_node_memory(&links[0]->node, BYTES, 1, &links[0]->table, error);
    if (status == TQ_OK)
        memcpy(links[0]->table, links[0]->node.out[0]->data, BYTES);
    memset(in, 0, BYTES);
    for (int i = 0; i < count; i++)
        memset(links[i]->node.out[0]->data, 0, links[i]->node.out[0]->bytes);
    return status;
}

tq_status tq_graph_fill_tables(tq_graph_run *graph, tq_error *error)
{
    tq_step *links[MOST_LINKS];
    for (uint32_t k = 0; k < graph->step_count; k++) {
        tq_step *step = &graph->steps[k];
        const int count = step->looked_up ? find_chain(graph, step, links) : 0;
        if (!count)
            continue;
        graph->at = k;
        const tq_status status = fill(graph, links, count, error);
        if (tq_ends_the_pass(status))
            return status;
        for (int i = 1; i < count && status != TQ_OK; i++) /* some bytes are an error, which a run may not meet */
            links[i]->in_table = false;
    }
    return TQ_OK;
}

/* ---- in a run ---- */

typedef struct job {
    const uint8_t *table, *in;
    uint8_t *out;
} job;

static void look_up(void *context, size_t begin, size_t end)
{
    const job *j = context;
    tq_lookup_bytes(j->table, j->in + begin, j->out + begin, end - begin);
}

void tq_step_look_up(const tq_step *step)
{
    job j = {step->table, step->looked_up->data, step->node.out[0]->data};
    tq_parallel_work(tq_tensor_count(step->node.out[0]), 64, COST, step->node.threads, look_up, &j);
}
