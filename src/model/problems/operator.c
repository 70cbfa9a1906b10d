/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of one operator: its code, the indices and the number of its tensors, and the type of its options.  It calls
 * the checks of the values of options and constants.
 */
#include "model/arity.h"
#include "model/problems/checks.h"

static const uint16_t without_options[] = {
#define NEEDS_NO_OPTIONS(op) TQ_BuiltinOperator_##op,
#include "model/arity.def"
};

/* ---- tensors ---- */

static bool among(const uint16_t *ops, size_t count, int64_t op)
{
    for (size_t i = 0; i < count; i++)
        if (ops[i] == op)
            return true;
    return false;
}

static void check_index(tq_checker *checker, int32_t tensor, tq_location location)
{
    if (tensor < -1 || (tensor >= 0 && (uint32_t)tensor >= checker->subgraph.tensors.count))
        tq_report(checker, TQ_PROBLEM_TENSOR_INDEX, location, "the tensor is %d; the subgraph has %u", tensor,
                  checker->subgraph.tensors.count);
}

static void check_inputs(tq_checker *checker, const tq_checked_node *node)
{
    for (uint32_t slot = 0; slot < node->inputs.count; slot++) {
        int32_t tensor = tq_vector_i32(&node->inputs, slot);
        tq_location location = tq_checked_location(checker, node, slot);
        check_index(checker, tensor, location);
        if (tensor == -1 && !tq_arity_optional_input(&node->op, slot))
            tq_report(checker, TQ_PROBLEM_OPTIONAL_INPUT, location,
                      "the input is left out (-1); the operator needs it");
        if (tensor < 0 || (uint32_t)tensor >= checker->subgraph.tensors.count)
            continue;
        if (tq_arity_is_state(&node->op, slot) && !(checker->flags[tensor] & TQ_TENSOR_VARIABLE))
            tq_report(checker, TQ_PROBLEM_NOT_VARIABLE, location,
                      "tensor %d holds the operator's state; it needs is_variable", tensor);
    }
}

static void check_outputs(tq_checker *checker, const tq_checked_node *node)
{
    for (uint32_t slot = 0; slot < node->outputs.count; slot++) {
        int32_t tensor = tq_vector_i32(&node->outputs, slot);
        tq_location location = tq_location_in(checker, TQ_LOCATION_OPERATOR_OUTPUT, node->index, slot);
        check_index(checker, tensor, location);
        if (tensor == -1 && !tq_arity_optional_output(&node->op))
            tq_report(checker, TQ_PROBLEM_OPTIONAL_OUTPUT, location,
                      "the output is left out (-1); the operator needs it");
    }
    tq_vector intermediates = tq_get_vector(&node->op.table, TQ_Operator_intermediates);
    for (uint32_t slot = 0; slot < intermediates.count; slot++)
        check_index(checker, tq_vector_i32(&intermediates, slot),
                    tq_location_in(checker, TQ_LOCATION_OPERATOR_INTERMEDIATE, node->index, slot));
    tq_vector mutating = tq_get_vector(&node->op.table, TQ_Operator_mutating_variable_inputs);
    if (mutating.count > node->inputs.count)
        tq_report(checker, TQ_PROBLEM_MUTATING_COUNT, tq_checked_operator(checker, node),
                  "mutating_variable_inputs has %u items; the operator has %u inputs", mutating.count,
                  node->inputs.count);
}

/* ---- number of tensors ---- */

static void check_arity(tq_checker *checker, const tq_checked_node *node)
{
    char needed[TQ_ARITY_TEXT];
    tq_arity_fit fit = tq_arity_check(&node->op, node->inputs.count, node->outputs.count, needed);
    if (fit == TQ_ARITY_INPUTS)
        tq_report(checker, TQ_PROBLEM_INPUT_COUNT, tq_checked_operator(checker, node),
                  "the operator has %u inputs; it takes %s", node->inputs.count, needed);
    else if (fit == TQ_ARITY_OUTPUTS)
        tq_report(checker, TQ_PROBLEM_OUTPUT_COUNT, tq_checked_operator(checker, node),
                  "the operator has %u outputs; with its %u inputs it gives %s", node->outputs.count,
                  node->inputs.count, needed);
}

/* ---- options ---- */

static bool needs_options(int64_t op, tq_table_id id)
{
    bool has_fields = id != TQ_TABLE_NONE && tq_tables[id].first != tq_tables[id + 1].first;
    return has_fields && !among(without_options, sizeof without_options / sizeof *without_options, op);
}

/* Finds the operator's options; options of another operator count as absent. */
static void find_options(tq_checker *checker, tq_checked_node *node)
{
    const tq_builtin_row *row = tq_builtin(node->op.code);
    tq_location location = tq_checked_operator(checker, node);
    tq_table_id expected = row ? row->options : TQ_TABLE_NONE;
    bool reported = false;
    node->options = (tq_options){expected, {checker->model->file, 0, 0, 0}};
    for (int i = 0; i < TQ_OPTION_UNIONS; i++) {
        tq_union value = tq_get_union(&node->op.table, tq_option_unions[i].field);
        tq_table_id found = tq_union_member(tq_option_unions[i].members, value.type);
        if (!value.type)
            continue;
        if (found == TQ_TABLE_NONE) {
            tq_report(checker, TQ_PROBLEM_UNION_UNKNOWN, location,
                      "the options are of type %u of %s, which this schema does not know", value.type,
                      tq_union_name(tq_option_unions[i].members));
            reported = true;
        } else if (row && found != expected && node->op.code != TQ_BuiltinOperator_CUSTOM) {
            tq_report(checker, TQ_PROBLEM_OPTIONS_TYPE, location, "the options are %s; the operator's are %s",
                      tq_tables[found].name, expected == TQ_TABLE_NONE ? "none" : tq_tables[expected].name);
            reported = true;
        } else if (found == expected && value.value.at) {
            node->options.table = value.value;
        }
    }
    if (!reported && !node->options.table.at && needs_options(node->op.code, expected))
        tq_report(checker, TQ_PROBLEM_OPTIONS_MISSING, location,
                  "the operator has no %s; all of them have their defaults", tq_tables[expected].name);
}

void tq_check_operator(tq_checker *checker, uint32_t index)
{
    tq_checked_node node = {.index = index, .op = tq_model_operator(checker->model, &checker->subgraph, index)};
    tq_location location = tq_location_in(checker, TQ_LOCATION_OPERATOR, index, 0);
    node.inputs = tq_get_vector(&node.op.table, TQ_Operator_inputs);
    node.outputs = tq_get_vector(&node.op.table, TQ_Operator_outputs);
    int64_t code = tq_get_int(&node.op.table, TQ_Operator_opcode_index);
    if (code >= checker->model->operator_codes.count)
        tq_report(checker, TQ_PROBLEM_OPCODE_INDEX, location, "the operator code is %lld of %u", (long long)code,
                  checker->model->operator_codes.count);
    tq_bytes custom;
    tq_error error;
    if (tq_operator_custom_options(&node.op, &custom, &error) != TQ_OK)
        tq_report(checker, TQ_PROBLEM_CUSTOM_OPTIONS_RANGE, location, "at offset %llu, %s",
                  (unsigned long long)error.offset, error.text);
    check_inputs(checker, &node);
    check_outputs(checker, &node);
    check_arity(checker, &node);
    find_options(checker, &node);
    tq_check_options(checker, &node);
    tq_check_constants(checker, &node);
    tq_check_convolutions(checker, &node);
    tq_check_shapes(checker, &node);
    tq_check_sizes(checker, &node);
    tq_check_calls(checker, &node);
}
