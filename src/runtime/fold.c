/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators whose inputs are all constant are computed once; their outputs become constants.
 *
 * Most are computed right after their prepare.  Models with 16-bit or sparse weights compute megabytes of floats from
 * them.  Preparing does not wait for these: they are computed when the first run begins, or when the prepare of another
 * operator reads their values.
 */
#include "ops/check.h"
#include "runtime/begin.h"
#include "runtime/node_call.h"
#include "runtime/run.h"

/* ---- computing at once ---- */

static bool is_foldable(const tq_step *step)
{
    const tq_node *node = &step->node;
    if ((node->op->flags & TQ_OP_IMPURE) || node->out_count == 0)
        return false;
    for (int i = 0; i < node->in_count && !node->foldable; i++)
        if (node->in[i] && !tq_is_constant(node->in[i]))
            return false;
    return node->foldable || node->in_count > 0;
}

static tq_status compute_now(tq_graph_run *graph, tq_step *step, tq_error *error)
{
    tq_node *node = &step->node;
    for (int i = 0; i < node->out_count; i++)
        if (node->out[i] && node->out[i]->has_shape)
            TQ_TRY(tq_tensor_allocate(node->out[i], graph->run->pool, node->out[i]->bytes, error));
    TQ_TRY(tq_block_new(graph->run->pool, node->request.scratch_bytes, &node->own_scratch, error));
    node->scratch = node->own_scratch->data;
    TQ_TRY(tq_node_memory(node, node->request.prepacked_bytes, 1, &node->prepacked, error));
    TQ_TRY(tq_node_shape_later(node, error));
    if (node->request.pack)
        tq_node_pack(node);
    const tq_status status = tq_node_eval(node, error);
    tq_run_flush(graph->run, false);
    return status;
}

/* Computes the outputs of an operator of constants.  An operator whose data fail (a zero divisor in a branch that is
   never taken) stays an operator of the run. */
static tq_status fold(tq_graph_run *graph, tq_step *step, tq_error *error)
{
    tq_node *node = &step->node;
    const tq_status status = compute_now(graph, step, error);
    const bool done = status == TQ_OK;
    for (int i = 0; i < node->out_count; i++) {
        if (!node->out[i])
            continue;
        tq_tensor *out = node->out[i];
        if (done) {
            out->storage = TQ_STORAGE_CONSTANT;
            out->later = false;
        } else if (!out->later) {
            tq_block_release(out->block);
            out->block = NULL;
            out->data = NULL;
        } else {
            out->has_shape = false;
        }
    }
    tq_block_release(node->own_scratch);
    node->own_scratch = NULL;
    node->scratch = node->prepacked = NULL;
    if (done) {
        tq_blocks_release(&node->memory);
        step->phase = TQ_NODE_FOLDED;
        tq_step_share_folded(graph, step);
    }
    return tq_ends_the_pass(status) ? status : TQ_OK;
}

/* ---- computing when the first run begins ---- */

enum {
    ONCE_BYTES = 1024, /* smaller outputs are computed in prepare */
    ONCE_DEPTH = 4     /* the longest chain of such operators; DENSIFY, DEQUANTIZE is one of 2 */
};

static bool is_float(const tq_tensor *tensor)
{
    return tensor->type == TQ_TensorType_FLOAT32 || tensor->type == TQ_TensorType_FLOAT16;
}

/* The step that computes the input in the first run; NULL: none. */
static tq_step *waits_for(const tq_graph_run *graph, const tq_tensor *input)
{
    int32_t producer = input ? graph->slots[input->index].producer : -1;
    return producer >= 0 && graph->steps[producer].phase == TQ_NODE_ONCE ? &graph->steps[producer] : NULL;
}

static uint8_t depth_of(const tq_graph_run *graph, const tq_step *step)
{
    uint8_t depth = 0;
    for (int i = 0; i < step->node.in_count; i++) {
        const tq_step *before = waits_for(graph, step->node.in[i]);
        depth = before && before->depth > depth ? before->depth : depth;
    }
    return depth + 1;
}

static bool can_wait(const tq_graph_run *graph, const tq_step *step)
{
    const tq_node *node = &step->node;
    const tq_tensor *out = node->out_count == 1 ? node->out[0] : NULL;
    return (node->op->flags & TQ_OP_NO_FLOATS) && !node->shape_later && !node->request.scratch_bytes &&
           !node->request.prepacked_bytes && out && depth_of(graph, step) <= ONCE_DEPTH && out->has_shape &&
           is_float(out) && out->bytes >= ONCE_BYTES && !graph->slots[out->index].is_output;
}

/* The recursion is at most ONCE_DEPTH deep. */
tq_status tq_step_compute_inputs(tq_graph_run *graph, tq_step *step, tq_error *error)
{
    for (int i = 0; i < step->node.in_count; i++) {
        tq_step *before = waits_for(graph, step->node.in[i]);
        if (!before)
            continue;
        TQ_TRY(tq_step_compute_inputs(graph, before, error));
        before->phase = TQ_NODE_READY;
        before->node.out[0]->storage = TQ_STORAGE_ARENA;
        TQ_TRY(fold(graph, before, error));
    }
    return TQ_OK;
}

tq_status tq_step_fold(tq_graph_run *graph, tq_step *step, tq_error *error)
{
    if (!is_foldable(step))
        return TQ_OK;
    if (can_wait(graph, step)) {
        step->depth = depth_of(graph, step);
        step->phase = TQ_NODE_ONCE;
        step->node.out[0]->storage = TQ_STORAGE_CONSTANT;
        graph->has_once = true;
        return TQ_OK;
    }
    TQ_TRY(tq_step_compute_inputs(graph, step, error));
    return fold(graph, step, error);
}

tq_status tq_graph_compute_once(tq_graph_run *graph, tq_error *error)
{
    for (uint32_t k = 0; graph->has_once && k < graph->step_count; k++) {
        tq_step *step = &graph->steps[k];
        graph->at = k;
        if (step->phase != TQ_NODE_ONCE)
            continue;
        bool again;
        if (tq_shared_begin(step->cached, &again)) {
            tq_status status = tq_run_heard(graph->run, step->node.eval(&step->node, error), error);
            tq_shared_end(step->cached, status == TQ_OK);
            TQ_TRY(status);
        }
        TQ_TRY(tq_run_heard(graph->run, TQ_OK, error)); /* another interpreter may still fill the item */
        step->phase = TQ_NODE_FOLDED;
    }
    graph->has_once = false;
    return TQ_OK;
}
