/* SPDX-License-Identifier: Apache-2.0
 *
 * IF, WHILE, STABLEHLO_CASE, CALL_ONCE and STABLEHLO_COMPOSITE: operators that run other subgraphs.
 *
 * Prepare sets the shapes of outputs where all subgraphs give the same shapes; otherwise they are set after each run.
 * Source: LiteRT f6745779, tflite/kernels/if.cc, while.cc, stablehlo_case.cc, call_once.cc,
 * stablehlo_composite.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "runtime/begin.h"
#include "runtime/call.h"
#include "runtime/prepare_functions.h"

/* ---- outputs of callees as outputs of the node ---- */

static tq_status check_results(tq_node *node, tq_graph_run *callee, tq_error *error)
{
    if ((uint32_t)node->out_count != callee->subgraph.outputs.count)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %d outputs; subgraph %u has %u", node->out_count,
                          callee->index, callee->subgraph.outputs.count);
    for (int i = 0; i < node->out_count; i++) {
        const tq_tensor *from = tq_callee_output(callee, i);
        if (node->out[i] && from && from->type != node->out[i]->type)
            return tq_output_fail(node, i, error, "has type %s; output %d of subgraph %u is %s",
                                  tq_type_name(node->out[i]->type), i, callee->index, tq_type_name(from->type));
    }
    return TQ_OK;
}

/* The shape of output i of an allocated callee; NULL: it depends on data. */
static const tq_shape *known_shape(tq_graph_run *callee, int i)
{
    const tq_tensor *tensor = tq_callee_output(callee, i);
    bool known = tensor && tensor->has_shape && !tensor->later && tensor->storage != TQ_STORAGE_DYNAMIC;
    return known ? &tensor->shape : NULL;
}

/* Sets the output shapes of a node whose results come from one of several callees. */
static tq_status shape_results(tq_node *node, tq_graph_run *const *callees, int count, tq_error *error)
{
    for (int i = 0; i < node->out_count; i++) {
        const tq_shape *shape = known_shape(callees[0], i);
        for (int k = 1; shape && k < count; k++) {
            const tq_shape *other = known_shape(callees[k], i);
            shape = other && tq_shape_equal(shape, other) ? shape : NULL;
        }
        if (shape)
            TQ_TRY(tq_output_shape(node, i, shape, error));
        else
            tq_output_later(node, i);
    }
    return TQ_OK;
}

static tq_status check_condition(tq_node *node, const tq_tensor *condition, const char *noun, tq_error *error)
{
    if (condition && condition->type == TQ_TensorType_BOOL && tq_tensor_count(condition) == 1)
        return TQ_OK;
    return tq_op_fail(node, error, TQ_BAD_OPERATOR, "%s is %s with %llu elements; it needs to be one BOOL", noun,
                      condition ? tq_type_name(condition->type) : "missing",
                      condition ? (unsigned long long)tq_tensor_count(condition) : 0);
}

static bool is_true(const tq_tensor *condition)
{
    return *(const uint8_t *)condition->data != 0;
}

/* ---- IF ---- */

typedef struct branches {
    tq_graph_run *callees[2]; /* then, else */
} branches;

static tq_status eval_if(tq_node *node, tq_error *error)
{
    branches *state = node->state;
    tq_graph_run *callee = state->callees[is_true(node->in[0]) ? 0 : 1];
    TQ_TRY(tq_call(node, callee, node->in + 1, node->in_count - 1, error));
    return tq_call_results(node, callee, error);
}

tq_status tq_prepare_if(tq_node *node, tq_error *error)
{
    branches *state;
    TQ_TRY(check_condition(node, node->in[0], "input 0, the condition,", error));
    TQ_TRY(tq_node_state(node, sizeof *state, &state, error));
    TQ_TRY(tq_callee(node, tq_get_int(&node->options.table, TQ_IfOptions_then_subgraph_index), "then_subgraph_index",
                     &state->callees[0], error));
    TQ_TRY(tq_callee(node, tq_get_int(&node->options.table, TQ_IfOptions_else_subgraph_index), "else_subgraph_index",
                     &state->callees[1], error));
    for (int i = 0; i < 2; i++) {
        TQ_TRY(tq_call_prepare(node, state->callees[i], node->in + 1, node->in_count - 1, error));
        TQ_TRY(check_results(node, state->callees[i], error));
    }
    node->eval = eval_if;
    return shape_results(node, state->callees, 2, error);
}

/* ---- WHILE ---- */

typedef struct loop {
    tq_graph_run *condition, *body;
} loop;

/* The loop's variables live in the node's outputs. */
static tq_status take_inputs(tq_node *node, tq_error *error)
{
    for (int i = 0; i < node->in_count; i++) {
        if (node->out[i]->storage == TQ_STORAGE_DYNAMIC)
            TQ_TRY(tq_output_bytes(node, i, &node->in[i]->shape, node->in[i]->bytes, error));
        tq_copy(node->out[i]->data, node->in[i]->data, node->in[i]->bytes);
    }
    return TQ_OK;
}

static tq_status eval_while(tq_node *node, tq_error *error)
{
    loop *state = node->state;
    TQ_TRY(take_inputs(node, error));
    for (;;) {
        TQ_TRY(tq_call(node, state->condition, node->out, node->out_count, error));
        const tq_tensor *condition = tq_callee_output(state->condition, 0);
        TQ_TRY(check_condition(node, condition, "the condition's result", error));
        if (!is_true(condition))
            return TQ_OK;
        uint64_t spent = 0; /* each iteration counts, even of a body without operators */
        TQ_TRY(tq_run_poll(tq_graph_of(node)->run, error));
        TQ_TRY(tq_step_spend(tq_graph_of(node), tq_step_of(node), &spent, error));
        TQ_TRY(tq_call(node, state->body, node->out, node->out_count, error));
        TQ_TRY(tq_call_results(node, state->body, error));
    }
}

/* Outputs have the inputs' shapes where the body does not change shapes. */
static tq_status shape_loop(tq_node *node, tq_graph_run *body, tq_error *error)
{
    bool same = true;
    for (int i = 0; i < node->in_count; i++) {
        const tq_shape *shape = known_shape(body, i);
        same &= shape && tq_shape_equal(shape, &node->in[i]->shape);
    }
    for (int i = 0; i < node->in_count; i++) {
        if (same)
            TQ_TRY(tq_output_shape(node, i, &node->in[i]->shape, error));
        else
            tq_output_later(node, i);
    }
    return TQ_OK;
}

/* One output for each input: the outputs hold the loop's variables. */
static tq_status check_loop_outputs(const tq_node *node, tq_error *error)
{
    if (node->out_count != node->in_count)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %d outputs; with %d inputs it needs as many",
                          node->out_count, node->in_count);
    for (int i = 0; i < node->out_count; i++)
        if (!node->out[i])
            return tq_output_fail(node, i, error, "is left out (-1); tq keeps the loop's variable in it");
    return TQ_OK;
}

tq_status tq_prepare_while(tq_node *node, tq_error *error)
{
    loop *state;
    int count = node->in_count;
    TQ_TRY(check_loop_outputs(node, error));
    TQ_TRY(tq_node_state(node, sizeof *state, &state, error));
    TQ_TRY(tq_callee(node, tq_get_int(&node->options.table, TQ_WhileOptions_cond_subgraph_index), "cond_subgraph_index",
                     &state->condition, error));
    TQ_TRY(tq_callee(node, tq_get_int(&node->options.table, TQ_WhileOptions_body_subgraph_index), "body_subgraph_index",
                     &state->body, error));
    for (int i = 0; i < count; i++)
        TQ_TRY(tq_check_output_like(node, i, i, error));
    TQ_TRY(tq_call_prepare(node, state->condition, node->in, count, error));
    if (state->condition->subgraph.outputs.count != 1)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "the condition, subgraph %u, has %u outputs; it needs 1",
                          state->condition->index, state->condition->subgraph.outputs.count);
    TQ_TRY(tq_call_prepare(node, state->body, node->in, count, error));
    TQ_TRY(check_results(node, state->body, error));
    node->eval = eval_while;
    return shape_loop(node, state->body, error);
}

/* ---- STABLEHLO_CASE ---- */

typedef struct choice {
    int count;
    tq_graph_run **callees;
} choice;

/* An index out of range means the last branch. */
static tq_status eval_case(tq_node *node, tq_error *error)
{
    const choice *state = node->state;
    int32_t index = *(const int32_t *)node->in[0]->data;
    tq_graph_run *callee = state->callees[index < 0 || index >= state->count ? state->count - 1 : index];
    TQ_TRY(tq_call(node, callee, node->in + 1, node->in_count - 1, error));
    return tq_call_results(node, callee, error);
}

tq_status tq_prepare_case(tq_node *node, tq_error *error)
{
    choice *state;
    tq_vector branches = tq_get_vector(&node->options.table, TQ_StablehloCaseOptions_branch_subgraph_indices);
    TQ_TRY(tq_check_input(node, 0, TQ_T(INT32), error));
    if (tq_tensor_count(node->in[0]) != 1)
        return tq_input_fail(node, 0, error, "has %zu elements; it needs 1", tq_tensor_count(node->in[0]));
    if (branches.count < 1 || branches.count > INT16_MAX)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %u branches; it needs 1 to %d", branches.count, INT16_MAX);
    TQ_TRY(tq_node_state(node, sizeof *state, &state, error));
    TQ_TRY(tq_node_memory(node, branches.count, sizeof *state->callees, &state->callees, error));
    state->count = (int)branches.count;
    for (int i = 0; i < state->count; i++) {
        TQ_TRY(
            tq_callee(node, tq_vector_i32(&branches, (size_t)i), "branch_subgraph_indices", &state->callees[i], error));
        TQ_TRY(tq_call_prepare(node, state->callees[i], node->in + 1, node->in_count - 1, error));
        TQ_TRY(check_results(node, state->callees[i], error));
    }
    node->eval = eval_case;
    return shape_results(node, state->callees, state->count, error);
}

/* ---- CALL_ONCE ---- */

static tq_status eval_call_once(tq_node *node, tq_error *error)
{
    tq_graph_run *callee = node->state;
    if (callee->called_once)
        return TQ_OK;
    TQ_TRY(tq_call(node, callee, NULL, 0, error));
    callee->called_once = true;
    return TQ_OK;
}

tq_status tq_prepare_call_once(tq_node *node, tq_error *error)
{
    tq_graph_run *callee;
    TQ_TRY(tq_callee(node, tq_get_int(&node->options.table, TQ_CallOnceOptions_init_subgraph_index),
                     "init_subgraph_index", &callee, error));
    TQ_TRY(tq_call_prepare(node, callee, NULL, 0, error));
    node->state = callee;
    node->eval = eval_call_once;
    return TQ_OK;
}

/* ---- STABLEHLO_COMPOSITE ---- */

static tq_status eval_composite(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_call(node, node->state, node->in, node->in_count, error));
    return tq_call_results(node, node->state, error);
}

tq_status tq_prepare_composite(tq_node *node, tq_error *error)
{
    tq_graph_run *callee;
    TQ_TRY(tq_callee(node, tq_get_int(&node->options.table, TQ_StableHLOCompositeOptions_decomposition_subgraph_index),
                     "decomposition_subgraph_index", &callee, error));
    TQ_TRY(tq_call_prepare(node, callee, node->in, node->in_count, error));
    TQ_TRY(check_results(node, callee, error));
    node->state = callee;
    node->eval = eval_composite;
    return shape_results(node, &callee, 1, error);
}
