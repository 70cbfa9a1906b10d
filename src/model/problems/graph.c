/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of the flow of tensors in a subgraph: its inputs and outputs; and that operators, which run in the file's
 * order, read only tensors that have a value and write only tensors that may be written.
 */
#include "model/problems/checks.h"

static bool in_range(const tq_checker *checker, int32_t tensor)
{
    return tensor >= 0 && (uint32_t)tensor < checker->subgraph.tensors.count;
}

/* ---- inputs and outputs of the subgraph ---- */

static void check_list(tq_checker *checker, const tq_vector *list, tq_location_kind kind, unsigned flag,
                       const char *role)
{
    for (uint32_t i = 0; i < list->count; i++) {
        int32_t tensor = tq_vector_i32(list, i);
        tq_location location = tq_location_in(checker, kind, 0, i);
        if (!in_range(checker, tensor)) {
            tq_report(checker, TQ_PROBLEM_GRAPH_INDEX, location, "the tensor is %d; the subgraph has %u", tensor,
                      checker->subgraph.tensors.count);
            continue;
        }
        if (checker->flags[tensor] & flag)
            tq_report(checker, TQ_PROBLEM_GRAPH_DUPLICATE, location, "tensor %d is another %s of the subgraph, too",
                      tensor, role);
        if (flag == TQ_TENSOR_INPUT && checker->flags[tensor] & TQ_TENSOR_CONSTANT)
            tq_report(checker, TQ_PROBLEM_INPUT_CONSTANT, location,
                      "tensor %d has data in the file, which a caller cannot replace", tensor);
        checker->flags[tensor] |= (uint8_t)flag;
    }
}

/* ---- operators ---- */

static void note_writers(tq_checker *checker)
{
    for (uint32_t i = 0; i < checker->subgraph.operators.count; i++) {
        tq_table op = tq_vector_table(&checker->subgraph.operators, i);
        tq_vector outputs = tq_get_vector(&op, TQ_Operator_outputs);
        for (uint32_t slot = 0; slot < outputs.count; slot++) {
            int32_t tensor = tq_vector_i32(&outputs, slot);
            if (in_range(checker, tensor) && !checker->writers[tensor])
                checker->writers[tensor] = i + 1;
        }
    }
}

static bool is_custom(const tq_checker *checker, uint32_t op)
{
    int64_t code = tq_model_operator(checker->model, &checker->subgraph, op).code;
    return code == TQ_BuiltinOperator_CUSTOM || !tq_builtin(code);
}

static void check_read(tq_checker *checker, uint32_t op, uint32_t slot, uint32_t tensor)
{
    checker->readers[tensor] = op + 1;
    if (checker->flags[tensor] & (TQ_TENSOR_GIVEN | TQ_TENSOR_INPUT | TQ_TENSOR_WRITTEN))
        return;
    tq_location location = tq_location_in(checker, TQ_LOCATION_OPERATOR_INPUT, op, slot);
    uint32_t writer = checker->writers[tensor];
    if (!writer && !is_custom(checker, op)) /* operators of accelerators have scratch memory among their inputs */
        tq_report(checker, TQ_PROBLEM_NEVER_WRITTEN, location,
                  "tensor %u is read, but is no input, constant or variable, and no operator writes it", tensor);
    if (writer > op + 1)
        tq_report(checker, TQ_PROBLEM_WRITTEN_LATER, location,
                  "tensor %u is read here, and first written by operator %u", tensor, writer - 1);
    if (writer != op + 1) /* an operator that reads its own output is IN_AND_OUT, reported with its outputs */
        checker->flags[tensor] |= TQ_TENSOR_GIVEN;
}

static void check_write(tq_checker *checker, uint32_t op, uint32_t slot, uint32_t tensor)
{
    tq_location location = tq_location_in(checker, TQ_LOCATION_OPERATOR_OUTPUT, op, slot);
    unsigned flags = checker->flags[tensor];
    if (checker->readers[tensor] == op + 1)
        tq_report(checker, TQ_PROBLEM_IN_AND_OUT, location, "tensor %u is also an input of the operator", tensor);
    if (flags & TQ_TENSOR_CONSTANT)
        tq_report(checker, TQ_PROBLEM_CONSTANT_WRITTEN, location, "tensor %u has data in the file", tensor);
    else if (flags & TQ_TENSOR_INPUT)
        tq_report(checker, TQ_PROBLEM_INPUT_WRITTEN, location, "tensor %u is an input of the subgraph", tensor);
    if (flags & TQ_TENSOR_WRITTEN)
        tq_report(checker, TQ_PROBLEM_WRITTEN_TWICE, location, "tensor %u was written before, first by operator %u",
                  tensor, checker->writers[tensor] - 1);
    checker->flags[tensor] |= TQ_TENSOR_WRITTEN;
}

static void run(tq_checker *checker, uint32_t index)
{
    tq_table op = tq_vector_table(&checker->subgraph.operators, index);
    tq_vector inputs = tq_get_vector(&op, TQ_Operator_inputs), outputs = tq_get_vector(&op, TQ_Operator_outputs);
    for (uint32_t slot = 0; slot < inputs.count; slot++) {
        int32_t tensor = tq_vector_i32(&inputs, slot);
        if (in_range(checker, tensor))
            check_read(checker, index, slot, (uint32_t)tensor);
    }
    for (uint32_t slot = 0; slot < outputs.count; slot++) {
        int32_t tensor = tq_vector_i32(&outputs, slot);
        if (in_range(checker, tensor))
            check_write(checker, index, slot, (uint32_t)tensor);
    }
}

static void check_given(tq_checker *checker)
{
    for (uint32_t i = 0; i < checker->subgraph.outputs.count; i++) {
        int32_t tensor = tq_vector_i32(&checker->subgraph.outputs, i);
        if (in_range(checker, tensor) &&
            !(checker->flags[tensor] & (TQ_TENSOR_GIVEN | TQ_TENSOR_INPUT | TQ_TENSOR_WRITTEN)))
            tq_report(checker, TQ_PROBLEM_NEVER_WRITTEN, tq_location_in(checker, TQ_LOCATION_SUBGRAPH_OUTPUT, 0, i),
                      "tensor %d is given back, but is no input, constant or variable, and no operator writes it",
                      tensor);
    }
}

void tq_check_flow(tq_checker *checker)
{
    if (!checker->subgraph.tensors.at || !checker->subgraph.operators.at)
        tq_report(checker, TQ_PROBLEM_SUBGRAPH_PARTS, tq_location_in(checker, TQ_LOCATION_SUBGRAPH, 0, 0),
                  "there is no list of %s; it may be empty, but not missing",
                  checker->subgraph.tensors.at ? "operators" : "tensors");
    check_list(checker, &checker->subgraph.inputs, TQ_LOCATION_SUBGRAPH_INPUT, TQ_TENSOR_INPUT, "input");
    check_list(checker, &checker->subgraph.outputs, TQ_LOCATION_SUBGRAPH_OUTPUT, TQ_TENSOR_OUTPUT, "output");
    note_writers(checker);
    for (uint32_t i = 0; i < checker->subgraph.operators.count && !checker->stopped; i++)
        run(checker, i);
    check_given(checker);
}
