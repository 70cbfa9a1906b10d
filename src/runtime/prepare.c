/* SPDX-License-Identifier: Apache-2.0
 *
 * Making a graph ready: operators are prepared in order, constants are computed (fold.c), and other tensors get memory.
 * One pass finds all errors: it skips operators that depend on a failed one.
 */
#include <stdio.h>
#include <string.h>

#include "ops/check.h"
#include "ops/kernel_types.h"
#include "ops/scratch.h"
#include "runtime/unsupported.h"
#include "runtime/begin.h"
#include "runtime/node_call.h"
#include "runtime/run.h"

/* ---- reset to the file's state ---- */

static void clean_step(tq_graph_run *graph, tq_step *step)
{
    tq_step_drop_cached(graph, step, true);
    tq_blocks_release(&step->node.memory);
    tq_block_release(step->node.own_scratch);
    step->node.own_scratch = NULL;
    step->node.request = (tq_request){0};
    step->prepared_shapes = NULL; /* its memory was in step->node.memory */
    step->shape_changes = 0;
    step->node.eval = step->node.shape_later = NULL;
    step->node.reset = NULL;
    step->node.state = step->node.scratch = step->node.prepacked = NULL;
    step->node.foldable = step->node.in_place = false;
    step->in_table = false;
    step->looked_up = NULL;
    step->table = NULL; /* its memory was in step->node.memory or host.prepared */
    step->phase = TQ_NODE_FRESH;
}

static void reset_tensor(tq_graph_run *graph, uint32_t i)
{
    tq_tensor *tensor = &graph->tensors[i];
    tq_slot *slot = &graph->slots[i];
    tensor->later = false;
    tensor->mapped_from = NULL;
    tensor->type = (int32_t)tq_get_int(&tensor->table, TQ_Tensor_type);
    slot->producer = -1;
    slot->broken = slot->problem;
    slot->in_arena = slot->is_input = slot->is_output = false;
    if (slot->file_constant) {
        tensor->has_shape = true;
        return;
    }
    if (slot->cached)
        tq_slot_hold_earlier(graph, slot);
    tq_block_release(tensor->block);
    tensor->block = NULL;
    tensor->data = NULL;
    tensor->bytes = 0;
    tensor->storage = tq_get_int(&tensor->table, TQ_Tensor_is_variable) ? TQ_STORAGE_VARIABLE : TQ_STORAGE_ARENA;
    tensor->has_shape = tensor->storage == TQ_STORAGE_VARIABLE;
    if (slot->resized)
        tensor->shape = slot->given;
    else if (!slot->problem) {
        tq_vector dims = tq_get_vector(&tensor->table, TQ_Tensor_shape);
        tensor->shape = (tq_shape){.rank = dims.count > TQ_DIMS ? 0 : (int32_t)dims.count};
        for (int d = 0; d < tensor->shape.rank; d++)
            tensor->shape.dims[d] = tq_vector_i32(&dims, (size_t)d);
    }
}

/* ---- problems ---- */

typedef struct pass {
    tq_graph_run *graph;
    tq_error first; /* status TQ_OK: none yet */
} pass;

static void note(pass *p, const tq_error *error)
{
    char text[300];
    if (p->first.status == TQ_OK)
        p->first = *error;
    if (p->graph->index)
        snprintf(text, sizeof text, "subgraph %u: %s", p->graph->index, error->text);
    else
        snprintf(text, sizeof text, "%s", error->text);
    tq_run_report(p->graph->run, text);
}

static void break_step(pass *p, tq_step *step, const tq_error *error)
{
    step->phase = TQ_NODE_BROKEN;
    for (int i = 0; i < step->node.out_count; i++)
        if (step->node.out[i])
            p->graph->slots[step->node.out[i]->index].broken = true;
    if (error)
        note(p, error);
}

/* ---- producers of tensors ---- */

static void mark_ends(pass *p, const tq_vector *indices, bool inputs)
{
    tq_graph_run *graph = p->graph;
    for (uint32_t i = 0; i < indices->count; i++) {
        int32_t tensor = tq_vector_i32(indices, i);
        tq_error error;
        if (tensor < 0 || (uint32_t)tensor >= graph->tensor_count) {
            if (inputs && tensor == -1) /* old converters write inputs that are left out */
                continue;
            tq_fail(&error, TQ_BAD_GRAPH, TQ_NO_OFFSET, "%s %u of the subgraph is tensor %d; it has %u tensors",
                    inputs ? "input" : "output", i, tensor, graph->tensor_count);
            note(p, &error);
            continue;
        }
        tq_slot *slot = &graph->slots[tensor];
        if (inputs) {
            slot->is_input = true;
            graph->tensors[tensor].has_shape = true;
        } else {
            slot->is_output = true;
        }
    }
}

/* An input of an operator that no operator writes holds zeros: converters leave such tensors where the operator does
   not read them. */
static void mark_orphans(tq_graph_run *graph)
{
    for (uint32_t k = 0; k < graph->step_count; k++)
        for (int i = 0; i < graph->steps[k].node.out_count; i++)
            if (graph->steps[k].node.out[i])
                graph->slots[graph->steps[k].node.out[i]->index].producer = -2; /* some step; claim_outputs sets it */
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        tq_slot *slot = &graph->slots[i];
        slot->is_orphan = slot->producer == -1 && !slot->is_output && graph->tensors[i].storage == TQ_STORAGE_ARENA &&
                          !graph->tensors[i].has_shape;
        graph->tensors[i].has_shape |= slot->is_orphan;
        slot->producer = -1;
    }
}

/* Whether the step may write its outputs: each must be an ordinary tensor that no other step writes.  Not a variable:
   the operators with state in it were prepared for its shape. */
static tq_status claim_outputs(tq_graph_run *graph, tq_step *step, tq_error *error)
{
    tq_node *node = &step->node;
    for (int i = 0; i < node->out_count; i++) {
        if (!node->out[i])
            continue;
        tq_slot *slot = &graph->slots[node->out[i]->index];
        if (slot->file_constant)
            return tq_output_fail(node, i, error, "is a constant; an operator cannot write to it");
        if (slot->is_input)
            return tq_output_fail(node, i, error, "is an input of the subgraph; an operator cannot write to it");
        if (node->out[i]->storage == TQ_STORAGE_VARIABLE)
            return tq_output_fail(node, i, error, "is a variable; an operator cannot have it as an output");
        if (slot->producer >= 0)
            return tq_output_fail(node, i, error, "is written by operator %d already", slot->producer);
        for (int k = 0; k < node->in_count; k++)
            if (node->in[k] == node->out[i])
                return tq_output_fail(node, i, error, "is input %d of the operator too", k);
        slot->producer = (int32_t)node->index;
    }
    return TQ_OK;
}

static tq_status check_known(tq_step *step, tq_error *error)
{
    tq_node *node = &step->node;
    if (!node->op) {
        const tq_builtin_row *row = tq_builtin(node->row.code);
        tq_bytes custom = node->row.custom_name;
        if (node->row.code == TQ_BuiltinOperator_CUSTOM)
            return tq_fail(error, TQ_UNSUPPORTED, TQ_NO_OFFSET,
                           "Encountered unresolved custom op: %.*s. Operator %u %s",
                           custom.size > 80 ? 80 : (int)custom.size, custom.data ? (const char *)custom.data : "",
                           node->index, tq_unsupported_text(custom));
        return tq_fail(error, TQ_UNSUPPORTED, TQ_NO_OFFSET,
                       "Didn't find op for builtin opcode '%s' version '%d'. Operator %u is not one that tq runs",
                       row ? row->name : "?", node->row.version, node->index);
    }
    if (step->unbound) {
        return tq_op_fail(node, error, TQ_BAD_GRAPH, "an input or output is a tensor that does not exist");
    }
    return node->wrong_operands ? tq_check_operands(node, error) : TQ_OK;
}

/* The state of a step's inputs: 0 ready; 1 some shapes depend on data; -1 broken, by an error here or in an earlier
   operator. */
static int inspect_inputs(tq_graph_run *graph, tq_step *step, tq_error *error)
{
    tq_node *node = &step->node;
    int wait = 0;
    error->status = TQ_OK;
    for (int i = 0; i < node->in_count; i++) {
        if (!node->in[i])
            continue;
        const tq_slot *slot = &graph->slots[node->in[i]->index];
        if (slot->broken)
            return -1;
        if (node->in[i]->later) {
            wait = 1;
        } else if (!node->in[i]->has_shape) {
            tq_input_fail(node, i, error, "is written by no operator before this one");
            return -1;
        }
    }
    return wait;
}

/* ---- one operator ---- */

/* Gives outputs of unknown shape dynamic storage; checks that prepare set all others. */
static tq_status settle_outputs(tq_step *step, tq_error *error)
{
    tq_node *node = &step->node;
    if (!node->eval)
        return tq_op_fail(node, error, TQ_UNSUPPORTED, "tq does not run it on these types");
    for (int i = 0; i < node->out_count; i++) {
        if (!node->out[i])
            continue;
        if (node->out[i]->later)
            node->out[i]->storage = TQ_STORAGE_DYNAMIC;
        else if (!node->out[i]->has_shape)
            return tq_output_fail(node, i, error, "got no shape: the operator has fewer outputs");
    }
    return TQ_OK;
}

/* Whether no output has elements.  The operator need not run then, whatever its other dimensions are.  The shape of an
   output that depends on data is that of the last run. */
static bool writes_no_element(const tq_node *node)
{
    if ((node->op->flags & TQ_OP_IMPURE) || node->op->context || node->reset)
        return false;
    for (int i = 0; i < node->out_count; i++) {
        const tq_tensor *out = node->out[i];
        if (out && (out->storage == TQ_STORAGE_DYNAMIC || out->type == TQ_TensorType_STRING || tq_tensor_count(out)))
            return false;
    }
    return node->out_count > 0;
}

static tq_status prepare_now(tq_graph_run *graph, tq_step *step, tq_error *error)
{
    if (!(step->node.op->flags & TQ_OP_NO_FLOATS))
        TQ_TRY(tq_step_compute_inputs(graph, step, error));
    graph->host.in_prepare = true;
    step->phase = TQ_NODE_READY;
    tq_status status = tq_node_call(&step->node, step->node.op->prepare, error);
    graph->host.in_prepare = false;
    TQ_TRY(status);
    TQ_TRY(settle_outputs(step, error));
    step->writes_nothing = writes_no_element(&step->node);
    TQ_TRY(tq_step_count(graph, step, error));
    TQ_TRY(tq_step_fold(graph, step, error));
    uint64_t spent = 0;
    return step->phase == TQ_NODE_READY ? TQ_OK : tq_step_spend(graph, step, &spent, error);
}

static void wait_for_data(tq_step *step)
{
    step->phase = TQ_NODE_LATE;
    step->writes_nothing = false;
    for (int i = 0; i < step->node.out_count; i++)
        if (step->node.out[i]) {
            step->node.out[i]->later = true;
            step->node.out[i]->storage = TQ_STORAGE_DYNAMIC;
        }
}

static tq_status prepare_step(pass *p, tq_step *step, tq_error *error)
{
    tq_graph_run *graph = p->graph;
    tq_error problem = {0};
    graph->at = step->node.index;
    tq_status status = check_known(step, &problem);
    if (status == TQ_OK)
        status = claim_outputs(graph, step, &problem);
    if (status == TQ_OK) {
        int inputs = inspect_inputs(graph, step, &problem);
        if (inputs < 0) {
            break_step(p, step, problem.status == TQ_OK ? NULL : &problem);
            return TQ_OK;
        }
        if (step->backend.numerics != TQ_NUMERICS_XNNPACK) /* its delegate leaves the file's types */
            tq_give_output_types(&step->node);
        step->flips = tq_other_types(&step->node);
        if (inputs > 0) {
            wait_for_data(step);
            return TQ_OK;
        }
        status = prepare_now(graph, step, &problem);
    }
    if (tq_ends_the_pass(status)) {
        if (error)
            *error = problem;
        return status;
    }
    if (status != TQ_OK)
        break_step(p, step, &problem);
    return TQ_OK;
}

/* ---- the graph ---- */

static void check_outputs(pass *p)
{
    tq_graph_run *graph = p->graph;
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        const tq_slot *slot = &graph->slots[i];
        tq_error error;
        if (!slot->is_output || slot->broken || graph->tensors[i].later || graph->tensors[i].has_shape)
            continue;
        tq_fail(&error, TQ_BAD_GRAPH, TQ_NO_OFFSET, "tensor %u is an output of the subgraph, and no operator writes it",
                i);
        note(p, &error);
    }
}

static tq_status give_memory(tq_graph_run *graph, tq_error *error)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        TQ_TRY(tq_run_poll(graph->run, error));
        tq_tensor *tensor = &graph->tensors[i];
        if (!tensor->has_shape || tq_is_constant(tensor) || tensor->storage == TQ_STORAGE_DYNAMIC)
            continue;
        size_t element = tq_element_bytes(tensor->type);
        tensor->bytes = element * tq_tensor_count(tensor);
        if (element == 0)
            tensor->storage = TQ_STORAGE_DYNAMIC; /* strings: the setter allocates their memory */
        else if (tensor->storage == TQ_STORAGE_VARIABLE)
            TQ_TRY(tq_tensor_allocate(tensor, graph->run->pool, tensor->bytes, error));
    }
    TQ_TRY(tq_graph_find_cached(graph, error));
    tq_graph_find_tables(graph);
    return tq_graph_plan(graph, error);
}

/* tq_graph_allocate, for a graph that is busy. */
static tq_status allocate(tq_graph_run *graph, tq_error *error)
{
    tq_run *run = graph->run;
    pass p = {.graph = graph};
    TQ_TRY(tq_graph_check_again(graph, error));
    graph->ready = graph->has_run = graph->has_once = false;
    graph->work = 0;
    for (uint32_t k = 0; k < graph->step_count; k++) {
        TQ_TRY(tq_run_poll(run, error));
        clean_step(graph, &graph->steps[k]);
    }
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        TQ_TRY(tq_run_poll(run, error));
        reset_tensor(graph, i);
    }
    tq_blocks_release(&graph->host.prepared);
    tq_block_release(graph->arena);
    graph->arena = NULL;
    mark_ends(&p, &graph->subgraph.inputs, true);
    mark_ends(&p, &graph->subgraph.outputs, false);
    mark_orphans(graph);
    for (uint32_t k = 0; k < graph->step_count; k++) {
        TQ_TRY(tq_run_poll(run, error));
        TQ_TRY(prepare_step(&p, &graph->steps[k], error));
    }
    check_outputs(&p);
    if (p.first.status != TQ_OK || run->report_base) {
        if (p.first.status == TQ_OK)
            tq_fail(&p.first, TQ_BAD_GRAPH, TQ_NO_OFFSET, "%.200s", run->report);
        if (error)
            *error = p.first;
        return p.first.status;
    }
    TQ_TRY(give_memory(graph, error));
    tq_graph_reset_variables(graph);
    TQ_TRY(tq_graph_fill_tables(graph, error));
    TQ_TRY(tq_run_heard(run, TQ_OK, error));
    graph->ready = true;
    return TQ_OK;
}

tq_status tq_graph_allocate(tq_graph_run *graph, tq_error *error)
{
    if (graph->ready)
        return TQ_OK;
    TQ_TRY(tq_graph_begin(graph, error));
    graph->run->allocated = true;
    tq_graph_begin_prepare(graph);
    tq_status status = allocate(graph, error);
    tq_graph_end_prepare(graph);
    for (uint32_t k = 0; k < graph->step_count; k++)
        tq_step_drop_earlier(graph, &graph->steps[k]);
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->slots[i].earlier)
            tq_slot_drop_earlier(graph, &graph->slots[i]);
    tq_graph_end(graph);
    return status;
}

tq_status tq_graph_resize(tq_graph_run *graph, uint32_t tensor, const tq_shape *shape, tq_error *error)
{
    uint64_t count = 1;
    if (tensor >= graph->tensor_count)
        return tq_fail(error, TQ_BAD_INDEX, TQ_NO_OFFSET, "tensor %u of %u", tensor, graph->tensor_count);
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0)
            return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "dimension %d is %d; it needs to be 0 or more", i,
                           shape->dims[i]);
        if (shape->dims[i] && count > (UINT64_C(1) << 48) / (uint32_t)shape->dims[i])
            return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "the shape has more elements than any memory holds");
        count *= shape->dims[i] ? (uint32_t)shape->dims[i] : 1;
    }
    if (graph->busy)
        return tq_fail(error, TQ_BAD_GRAPH, TQ_NO_OFFSET, "subgraph %u is running", graph->index);
    if (tq_shape_equal(&graph->tensors[tensor].shape, shape))
        return TQ_OK;
    if (tq_is_constant(&graph->tensors[tensor]) && graph->slots[tensor].file_constant)
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                       "Attempting to resize a fixed-size tensor: tensor %u is a constant", tensor);
    tq_slot *slot = &graph->slots[tensor];
    slot->resized = true;
    slot->given = *shape;
    graph->tensors[tensor].shape = *shape;
    graph->ready = false;
    if (!graph->run->allocated) {
        graph->tensors[tensor].resized = true;
        return tq_graph_choose_backends(graph, error);
    }
    return TQ_OK;
}

/* ---- while the model runs ---- */

static bool has_prepared_shapes(const tq_step *step)
{
    for (int i = 0; i < step->node.in_count; i++) {
        const tq_tensor *in = step->node.in[i];
        if (in && !tq_is_constant(in) && !tq_shape_equal(&step->prepared_shapes[i], &in->shape))
            return false;
    }
    return true;
}

static tq_status find_cached_late(tq_graph_run *graph, tq_step *step, tq_error *error)
{
    tq_error why = {0};
    tq_status status = tq_step_find_cached(graph, step, &why);
    return status == TQ_OK ? TQ_OK : tq_op_fail(&step->node, error, status, "%s", why.text);
}

static tq_status prepare_late(tq_graph_run *graph, tq_step *step, tq_error *error)
{
    tq_node *node = &step->node;
    tq_run_flush(graph->run, false);
    clean_step(graph, step);
    step->phase = TQ_NODE_LATE;
    for (int i = 0; i < node->out_count; i++)
        if (node->out[i]) {
            node->out[i]->later = false;
            node->out[i]->has_shape = false;
        }
    tq_status status = tq_node_call(node, node->op->prepare, error);
    if (status == TQ_OK)
        status = settle_outputs(step, error);
    if (status == TQ_OK && node->request.pack)
        status = find_cached_late(graph, step, error);
    tq_step_drop_earlier(graph, step);
    for (int i = 0; i < node->out_count; i++)
        if (node->out[i]) {
            node->out[i]->later = true;
            node->out[i]->storage = TQ_STORAGE_DYNAMIC;
        }
    TQ_TRY(status);
    tq_shape *shapes;
    TQ_TRY(tq_node_memory(node, (uint64_t)node->in_count, sizeof *shapes, &shapes, error));
    for (int i = 0; i < node->in_count; i++)
        if (node->in[i])
            shapes[i] = node->in[i]->shape;
    step->prepared_shapes = shapes;
    if (node->reset)
        node->reset(node);
    return TQ_OK;
}

tq_status tq_step_prepare_late(tq_graph_run *graph, tq_step *step, tq_error *error)
{
    if (!step->prepared_shapes || !has_prepared_shapes(step))
        TQ_TRY(prepare_late(graph, step, error));
    step->shape_changes = graph->host.shape_changes;
    return TQ_OK;
}
