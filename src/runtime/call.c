/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/call.h"

#include <stdio.h>
#include <string.h>

#include "ops/check.h"

tq_status tq_callee(tq_node *node, int64_t index, const char *option, tq_graph_run **out, tq_error *error)
{
    tq_run *run = tq_graph_of(node)->run;
    if (index < 0 || index >= run->graph_count)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "%s is %lld; the model has %u subgraphs", option,
                          (long long)index, run->graph_count);
    *out = &run->graphs[index];
    return TQ_OK;
}

static tq_tensor *input_of(tq_graph_run *callee, int i)
{
    int32_t index = tq_vector_i32(&callee->subgraph.inputs, (size_t)i);
    return index >= 0 && (uint32_t)index < callee->tensor_count ? &callee->tensors[index] : NULL;
}

tq_tensor *tq_callee_output(tq_graph_run *callee, int i)
{
    if ((uint32_t)i >= callee->subgraph.outputs.count)
        return NULL;
    int32_t index = tq_vector_i32(&callee->subgraph.outputs, (size_t)i);
    return index >= 0 && (uint32_t)index < callee->tensor_count ? &callee->tensors[index] : NULL;
}

/* Adds the subgraph to an error, unless a subgraph that it calls has done so. */
static tq_status within(tq_graph_run *callee, tq_status status, tq_error *error)
{
    char text[sizeof error->text];
    if (status == TQ_OK || !error || strncmp(error->text, "subgraph ", 9) == 0)
        return status;
    memcpy(text, error->text, sizeof text);
    text[sizeof text - 1] = 0;
    snprintf(error->text, sizeof error->text, "subgraph %u: %.230s", callee->index, text);
    return status;
}

static tq_status check_arguments(tq_node *node, tq_graph_run *callee, tq_tensor *const *arguments, int count,
                                 tq_error *error)
{
    if ((uint32_t)count != callee->subgraph.inputs.count)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "gives subgraph %u %d inputs; it has %u", callee->index, count,
                          callee->subgraph.inputs.count);
    for (int i = 0; i < count; i++) {
        const tq_tensor *input = input_of(callee, i);
        if (!arguments[i] || !input)
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "input %d of subgraph %u is left out", i, callee->index);
        if (tq_is_constant(input))
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "input %d of subgraph %u is a constant", i, callee->index);
        if (input->type != arguments[i]->type)
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "input %d of subgraph %u is %s; the operator gives it %s",
                              i, callee->index, tq_type_name(input->type), tq_type_name(arguments[i]->type));
    }
    return TQ_OK;
}

tq_status tq_call_prepare(tq_node *node, tq_graph_run *callee, tq_tensor *const *arguments, int count, tq_error *error)
{
    TQ_TRY(check_arguments(node, callee, arguments, count, error));
    bool ready = callee->ready;
    for (int i = 0; ready && i < count; i++)
        ready = tq_shape_equal(&input_of(callee, i)->shape, &arguments[i]->shape);
    if (ready)
        return TQ_OK;
    if (callee->busy)
        return tq_op_fail(node, error, TQ_BAD_GRAPH, "subgraph %u calls itself", callee->index);
    for (int i = 0; i < count; i++)
        TQ_TRY(tq_graph_resize(callee, input_of(callee, i)->index, &arguments[i]->shape, error));
    return within(callee, tq_graph_allocate(callee, error), error);
}

tq_status tq_call(tq_node *node, tq_graph_run *callee, tq_tensor *const *arguments, int count, tq_error *error)
{
    TQ_TRY(tq_call_prepare(node, callee, arguments, count, error));
    for (int i = 0; i < count; i++) {
        tq_tensor *input = input_of(callee, i);
        if (input->storage == TQ_STORAGE_DYNAMIC)
            TQ_TRY(tq_tensor_allocate(input, callee->run->pool, arguments[i]->bytes, error));
        tq_copy(input->data, arguments[i]->data, input->bytes);
    }
    return within(callee, tq_graph_invoke_range(callee, 0, callee->step_count, error), error);
}

tq_status tq_call_results(tq_node *node, tq_graph_run *callee, tq_error *error)
{
    for (int i = 0; i < node->out_count; i++) {
        const tq_tensor *from = tq_callee_output(callee, i);
        tq_tensor *to = node->out[i];
        if (!to)
            continue;
        if (!from || !from->data)
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "output %d of subgraph %u has no value", i, callee->index);
        if (to->storage == TQ_STORAGE_DYNAMIC)
            TQ_TRY(tq_output_bytes(node, i, &from->shape, from->bytes, error));
        if (to->bytes != from->bytes)
            return tq_op_fail(node, error, TQ_BAD_DATA, "output %d of subgraph %u has %llu bytes; it needs %llu", i,
                              callee->index, (unsigned long long)from->bytes, (unsigned long long)to->bytes);
        tq_copy(to->data, from->data, from->bytes);
    }
    return TQ_OK;
}
