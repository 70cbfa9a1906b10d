/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of one operator: its code, its tensors' indices and number, and which options it has.  The
 * checks of what options and constants say follow from here.
 */
#include "model/arity.h"
#include "model/problems/walk.h"
#include "model/tensor.h"
#include "model/types.h"

static const uint16_t without_options[] = {
#define NEEDS_NO_OPTIONS(op) TQ_BuiltinOperator_##op,
#include "model/arity.def"
};

/* ---- what other checks ask of an operator ---- */

tq_table tq_node_input(const tq_walk *walk, const tq_node *node, uint32_t slot)
{
    int32_t tensor = slot < node->inputs.count ? tq_vector_i32(&node->inputs, slot) : -1;
    if (tensor < 0 || (uint32_t)tensor >= walk->subgraph.tensors.count)
        return (tq_table){walk->model->file, 0, 0, 0};
    return tq_vector_table(&walk->subgraph.tensors, (size_t)tensor);
}

tq_place tq_node_place(const tq_walk *walk, const tq_node *node, uint32_t slot)
{
    return tq_place_in(walk, TQ_PLACE_OPERATOR_INPUT, node->index, slot);
}

tq_known_shape tq_known_shape_of(const tq_walk *walk, const tq_vector *tensors, uint32_t slot)
{
    int32_t index = slot < tensors->count ? tq_vector_i32(tensors, slot) : -1;
    tq_known_shape out = {0};
    if (index < 0 || (uint32_t)index >= walk->subgraph.tensors.count)
        return out;
    tq_table tensor = tq_vector_table(&walk->subgraph.tensors, (size_t)index);
    out.shape = tq_get_vector(&tensor, TQ_Tensor_shape);
    out.signature = tq_get_vector(&tensor, TQ_Tensor_shape_signature);
    out.constant = walk->flags[index] & TQ_TENSOR_CONSTANT;
    /* Without has_rank, no dimensions may mean a scalar or that nothing is known. */
    out.known = out.shape.count || out.constant || tq_get_int(&tensor, TQ_Tensor_has_rank);
    return out;
}

int64_t tq_known_dimension(const tq_known_shape *shape, uint32_t i)
{
    bool open = !shape->constant && shape->signature.count == shape->shape.count && tq_vector_i32(&shape->signature, i) < 0;
    return i < shape->shape.count && !open ? tq_vector_i32(&shape->shape, i) : -1;
}

bool tq_known_count(const tq_known_shape *shape, uint64_t *out)
{
    for (uint32_t i = 0; i < shape->shape.count; i++)
        if (tq_known_dimension(shape, i) < 0)
            return false;
    return shape->known && tq_shape_count(&shape->shape, out, NULL) == TQ_OK;
}

bool tq_node_integers(tq_walk *walk, const tq_node *node, uint32_t slot, tq_integers *out)
{
    tq_table tensor = tq_node_input(walk, node, slot);
    const tq_type_row *type = tq_type(tq_get_int(&tensor, TQ_Tensor_type));
    tq_vector shape = tq_get_vector(&tensor, TQ_Tensor_shape);
    tq_bytes bytes;
    uint64_t count;
    if (!tensor.at || !type || type->kind != TQ_KIND_INTEGER || type->bits < 8 || tq_get_table(&tensor, TQ_Tensor_sparsity).at)
        return false;
    if (tq_tensor_bytes(walk->model, &tensor, &bytes, NULL) != TQ_OK || !bytes.data ||
        tq_shape_count(&shape, &count, NULL) != TQ_OK)
        return false;
    unsigned size = type->bits / 8;
    if (count > bytes.size / size || !tq_walk_spend(walk, count * size, tq_node_place(walk, node, slot)))
        return false;
    *out = (tq_integers){bytes.data, count, size, type->low < 0};
    return true;
}

int64_t tq_integer(const tq_integers *integers, uint64_t i)
{
    const uint8_t *at = integers->data + i * integers->size;
    switch (integers->size) {
    case 1:
        return integers->is_signed ? (int8_t)*at : *at;
    case 2:
        return integers->is_signed ? (int16_t)tq_load_u16(at) : tq_load_u16(at);
    case 4:
        return integers->is_signed ? (int32_t)tq_load_u32(at) : (int64_t)tq_load_u32(at);
    default: /* unsigned values above 2^63 count as negative: both are outside every range */
        return (int64_t)tq_load_u64(at);
    }
}

bool tq_pads_at(const tq_integers *pads, uint64_t i, uint64_t *out)
{
    int64_t front = tq_integer(pads, 2 * i), back = tq_integer(pads, 2 * i + 1);
    *out = (uint64_t)front + (uint64_t)back; /* two numbers below 2^63 */
    return front >= 0 && back >= 0;
}

void tq_run_checks(tq_walk *walk, const tq_node *node, const tq_node_check *checks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (checks[i].op == node->op.code)
            checks[i].check(walk, node);
}

/* ---- tensors ---- */

static bool among(const uint16_t *ops, size_t count, int64_t op)
{
    for (size_t i = 0; i < count; i++)
        if (ops[i] == op)
            return true;
    return false;
}

static void check_index(tq_walk *walk, int32_t tensor, tq_place place)
{
    if (tensor < -1 || (tensor >= 0 && (uint32_t)tensor >= walk->subgraph.tensors.count))
        tq_report(walk, TQ_PROBLEM_TENSOR_INDEX, place,
                  "the tensor is %d; the subgraph has %u", tensor, walk->subgraph.tensors.count);
}

static void check_inputs(tq_walk *walk, const tq_node *node)
{
    for (uint32_t slot = 0; slot < node->inputs.count; slot++) {
        int32_t tensor = tq_vector_i32(&node->inputs, slot);
        tq_place place = tq_node_place(walk, node, slot);
        check_index(walk, tensor, place);
        if (tensor == -1 && !tq_arity_optional_input(&node->op, slot))
            tq_report(walk, TQ_PROBLEM_OPTIONAL_INPUT, place, "the input is left out (-1); the operator needs it");
        if (tensor < 0 || (uint32_t)tensor >= walk->subgraph.tensors.count)
            continue;
        if (tq_arity_is_state(&node->op, slot) && !(walk->flags[tensor] & TQ_TENSOR_VARIABLE))
            tq_report(walk, TQ_PROBLEM_NOT_VARIABLE, place, "tensor %d holds the operator's state; it needs is_variable", tensor);
    }
}

static void check_outputs(tq_walk *walk, const tq_node *node)
{
    for (uint32_t slot = 0; slot < node->outputs.count; slot++) {
        int32_t tensor = tq_vector_i32(&node->outputs, slot);
        tq_place place = tq_place_in(walk, TQ_PLACE_OPERATOR_OUTPUT, node->index, slot);
        check_index(walk, tensor, place);
        if (tensor == -1 && !tq_arity_optional_output(&node->op))
            tq_report(walk, TQ_PROBLEM_OPTIONAL_OUTPUT, place, "the output is left out (-1); the operator needs it");
    }
    tq_vector intermediates = tq_get_vector(&node->op.table, TQ_Operator_intermediates);
    for (uint32_t slot = 0; slot < intermediates.count; slot++)
        check_index(walk, tq_vector_i32(&intermediates, slot),
                    tq_place_in(walk, TQ_PLACE_OPERATOR_INTERMEDIATE, node->index, slot));
    tq_vector mutating = tq_get_vector(&node->op.table, TQ_Operator_mutating_variable_inputs);
    if (mutating.count > node->inputs.count)
        tq_report(walk, TQ_PROBLEM_MUTATING_COUNT, tq_node_whole(walk, node),
                  "mutating_variable_inputs has %u items; the operator has %u inputs", mutating.count, node->inputs.count);
}

/* ---- how many ---- */

static void check_arity(tq_walk *walk, const tq_node *node)
{
    char needed[TQ_ARITY_TEXT];
    tq_arity_fit fit = tq_arity_check(&node->op, node->inputs.count, node->outputs.count, needed);
    if (fit == TQ_ARITY_INPUTS)
        tq_report(walk, TQ_PROBLEM_INPUT_COUNT, tq_node_whole(walk, node),
                  "the operator has %u inputs; it takes %s", node->inputs.count, needed);
    else if (fit == TQ_ARITY_OUTPUTS)
        tq_report(walk, TQ_PROBLEM_OUTPUT_COUNT, tq_node_whole(walk, node),
                  "the operator has %u outputs; with its %u inputs it gives %s",
                  node->outputs.count, node->inputs.count, needed);
}

/* ---- options ---- */

static bool needs_options(int64_t op, tq_table_id id)
{
    bool has_fields = id != TQ_TABLE_NONE && tq_tables[id].first != tq_tables[id + 1].first;
    return has_fields && !among(without_options, sizeof without_options / sizeof *without_options, op);
}

/* Finds the options that belong to the operator; those of another operator count as absent. */
static void find_options(tq_walk *walk, tq_node *node)
{
    static const struct {
        tq_field_id field;
        tq_union_id members;
    } unions[] = {
        {TQ_Operator_builtin_options, TQ_UNION_BuiltinOptions},
        {TQ_Operator_builtin_options_2, TQ_UNION_BuiltinOptions2},
    };
    const tq_builtin_row *row = tq_builtin(node->op.code);
    tq_place place = tq_node_whole(walk, node);
    tq_table_id expected = row ? row->options : TQ_TABLE_NONE;
    bool told = false;
    node->options = (tq_options){expected, {walk->model->file, 0, 0, 0}};
    for (size_t i = 0; i < sizeof unions / sizeof *unions; i++) {
        tq_union value = tq_get_union(&node->op.table, unions[i].field);
        tq_table_id found = tq_union_member(unions[i].members, value.type);
        if (!value.type)
            continue;
        if (found == TQ_TABLE_NONE) {
            tq_report(walk, TQ_PROBLEM_UNION_UNKNOWN, place,
                      "the options are of type %u of %s, which this schema does not know", value.type,
                      tq_union_name(unions[i].members));
            told = true;
        } else if (row && found != expected && node->op.code != TQ_BuiltinOperator_CUSTOM) {
            tq_report(walk, TQ_PROBLEM_OPTIONS_TYPE, place, "the options are %s; the operator's are %s", tq_tables[found].name,
                      expected == TQ_TABLE_NONE ? "none" : tq_tables[expected].name);
            told = true;
        } else if (found == expected && value.value.at) {
            node->options.table = value.value;
        }
    }
    if (!told && !node->options.table.at && needs_options(node->op.code, expected))
        tq_report(walk, TQ_PROBLEM_OPTIONS_MISSING, place,
                  "the operator has no %s; all of them have their defaults", tq_tables[expected].name);
}

void tq_check_operator(tq_walk *walk, uint32_t index)
{
    tq_node node = {.index = index, .op = tq_model_operator(walk->model, &walk->subgraph, index)};
    tq_place place = tq_place_in(walk, TQ_PLACE_OPERATOR, index, 0);
    node.inputs = tq_get_vector(&node.op.table, TQ_Operator_inputs);
    node.outputs = tq_get_vector(&node.op.table, TQ_Operator_outputs);
    int64_t code = tq_get_int(&node.op.table, TQ_Operator_opcode_index);
    if (code >= walk->model->operator_codes.count)
        tq_report(walk, TQ_PROBLEM_OPCODE_INDEX, place,
                  "the operator code is %lld of %u", (long long)code, walk->model->operator_codes.count);
    tq_bytes custom;
    tq_error error;
    if (tq_operator_custom_options(&node.op, &custom, &error) != TQ_OK)
        tq_report(walk, TQ_PROBLEM_CUSTOM_OPTIONS_RANGE, place,
                  "at offset %llu, %s", (unsigned long long)error.offset, error.text);
    check_inputs(walk, &node);
    check_outputs(walk, &node);
    check_arity(walk, &node);
    find_options(walk, &node);
    tq_check_options(walk, &node);
    tq_check_constants(walk, &node);
    tq_check_convolutions(walk, &node);
    tq_check_shapes(walk, &node);
    tq_check_sizes(walk, &node);
    tq_check_calls(walk, &node);
}
