/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of control flow: the subgraphs that operators call exist, have the right numbers of inputs and outputs, and
 * do not call themselves.
 */
#include "model/problems/checks.h"
#include "model/tensor.h"

typedef enum count_rule { SAME, ALL_BUT_ONE, NO, ONE, ANY } count_rule;

typedef struct callee_row {
    uint16_t op, table, field;
    uint8_t inputs, outputs; /* count_rule */
} callee_row;

static const callee_row callees[] = {
#define CALLEE(op, table, field, inputs, outputs) \
    {TQ_BuiltinOperator_##op, TQ_TABLE_##table, TQ_##table##_##field, inputs, outputs},
#include "model/callees.def"
#undef CALLEE
};

enum { ROWS = sizeof callees / sizeof *callees };

static bool is_vector(const callee_row *row)
{
    return tq_fields[row->field].shape == TQ_SHAPE_VEC_SCALAR;
}

/* Item `item` of a row's field; false: there is none. */
static bool callee_at(const callee_row *row, const tq_table *options, uint32_t item, int64_t *out)
{
    tq_vector vector = is_vector(row) ? tq_get_vector(options, (tq_field_id)row->field) : (tq_vector){.count = 1};
    if (item >= vector.count)
        return false;
    *out = is_vector(row) ? tq_vector_i32(&vector, item) : tq_get_int(options, (tq_field_id)row->field);
    return true;
}

/* ---- one operator ---- */

static bool fits(uint8_t rule, uint32_t count, uint32_t of_operator)
{
    switch ((count_rule)rule) {
    case SAME: return count == of_operator;
    case ALL_BUT_ONE: return (uint64_t)count + 1 == of_operator;
    case NO: return count == 0;
    case ONE: return count == 1;
    case ANY: break;
    }
    return true;
}

static void check_endless(tq_checker *checker, const tq_checked_node *node, const callee_row *row,
                          const tq_subgraph *condition)
{
    bool is_condition =
        row->field == TQ_WhileOptions_cond_subgraph_index || row->field == TQ_StablehloWhileOptions_cond_subgraph_index;
    int32_t output = condition->outputs.count ? tq_vector_i32(&condition->outputs, 0) : -1;
    tq_table tensor = tq_vector_table(&condition->tensors, (size_t)(uint32_t)output);
    tq_bytes bytes;
    if (!is_condition || output < 0 || !tensor.at || tq_tensor_bytes(checker->model, &tensor, &bytes, NULL) != TQ_OK)
        return;
    if (bytes.data && bytes.size && bytes.data[0] && tq_get_int(&tensor, TQ_Tensor_type) == TQ_TensorType_BOOL)
        tq_report(checker, TQ_PROBLEM_ENDLESS_LOOP, tq_checked_operator(checker, node),
                  "the condition, tensor %d of the called subgraph, is a constant that is true", output);
}

static void check_callee(tq_checker *checker, const tq_checked_node *node, const callee_row *row, int64_t index)
{
    tq_location location = tq_checked_operator(checker, node);
    const char *name = tq_fields[row->field].name;
    if (index < 0 || index >= checker->model->subgraphs.count) {
        tq_report(checker, TQ_PROBLEM_CALL_INDEX, location, "%s is %lld; the model has %u subgraphs", name,
                  (long long)index, checker->model->subgraphs.count);
        return;
    }
    tq_subgraph subgraph = tq_model_subgraph(checker->model, (size_t)index);
    if (!fits(row->inputs, subgraph.inputs.count, node->inputs.count) ||
        !fits(row->outputs, subgraph.outputs.count, node->outputs.count))
        tq_report(checker, TQ_PROBLEM_CALL_ARITY, location,
                  "%s: subgraph %lld takes %u tensors and gives %u; the operator has %u inputs and %u outputs", name,
                  (long long)index, subgraph.inputs.count, subgraph.outputs.count, node->inputs.count,
                  node->outputs.count);
    check_endless(checker, node, row, &subgraph);
}

void tq_check_calls(tq_checker *checker, const tq_checked_node *node)
{
    for (size_t r = 0; r < ROWS; r++) {
        int64_t index;
        if (callees[r].op != node->op.code)
            continue;
        for (uint32_t item = 0; !checker->stopped && callee_at(&callees[r], &node->options.table, item, &index); item++)
            check_callee(checker, node, &callees[r], index);
    }
}

/* ---- cycles: a depth-first walk that visits each call once ---- */

/* A subgraph on the path of the walk, and its next call.  Only subgraphs on the path have one: a file can list the same
   small subgraph so often that memory for each would exceed the file. */
typedef struct frame {
    uint32_t subgraph, op, row, item;
} frame;

typedef struct stack {
    const tq_allocator *allocator;
    frame *frames;
    size_t depth, capacity;
} stack;

enum { NOT_SEEN, RUNNING, DONE };

static tq_status push(stack *s, uint32_t subgraph, tq_error *error)
{
    if (s->depth == s->capacity) {
        frame *larger;
        size_t capacity = s->capacity ? 2 * s->capacity : 16;
        tq_status status = tq_allocate(s->allocator, capacity, sizeof *larger, &larger, error);
        if (status != TQ_OK)
            return status;
        if (s->depth)
            memcpy(larger, s->frames, s->depth * sizeof *larger);
        tq_release(s->allocator, s->frames);
        s->frames = larger;
        s->capacity = capacity;
    }
    s->frames[s->depth++] = (frame){.subgraph = subgraph};
    return TQ_OK;
}

/* The next call of a subgraph; false: there is none. */
static bool next_call(const tq_model *model, frame *f, uint32_t *op_index, int64_t *out)
{
    tq_subgraph subgraph = tq_model_subgraph(model, f->subgraph);
    for (; f->op < subgraph.operators.count; f->op++, f->row = f->item = 0) {
        tq_operator op = tq_model_operator(model, &subgraph, f->op);
        tq_options options = tq_operator_options(&op);
        for (; f->row < ROWS; f->row++, f->item = 0) {
            if (callees[f->row].op != op.code)
                continue;
            if (options.id != callees[f->row].table) /* absent: fields have their defaults */
                options.table = (tq_table){model->file, 0, 0, 0};
            *op_index = f->op;
            if (callee_at(&callees[f->row], &options.table, f->item++, out))
                return true;
        }
    }
    return false;
}

static tq_status follow(tq_checker *checker, stack *s, uint8_t *states, uint32_t start, tq_error *error)
{
    tq_status status = push(s, start, error);
    states[start] = RUNNING;
    while (status == TQ_OK && s->depth && !checker->stopped) {
        frame *top = &s->frames[s->depth - 1];
        uint32_t op;
        int64_t callee;
        if (!next_call(checker->model, top, &op, &callee)) {
            states[top->subgraph] = DONE;
            s->depth--;
        } else if (callee < 0 || callee >= checker->model->subgraphs.count) {
            continue;
        } else if (states[callee] == RUNNING) {
            checker->subgraph_index = top->subgraph;
            tq_report(checker, TQ_PROBLEM_CALL_CYCLE, tq_location_in(checker, TQ_LOCATION_OPERATOR, op, 0),
                      "subgraph %lld, which it runs, is running already when this operator does", (long long)callee);
        } else if (states[callee] == NOT_SEEN) {
            states[callee] = RUNNING;
            status = push(s, (uint32_t)callee, error);
        }
    }
    return status;
}

tq_status tq_check_cycles(tq_checker *checker, tq_error *error)
{
    uint8_t *states;
    stack s = {.allocator = checker->allocator};
    uint32_t count = checker->model->subgraphs.count;
    tq_status status = tq_allocate(checker->allocator, count, sizeof *states, &states, error);
    if (status != TQ_OK)
        return status;
    for (uint32_t i = 0; status == TQ_OK && i < count && !checker->stopped; i++)
        if (states[i] == NOT_SEEN)
            status = follow(checker, &s, states, i, error);
    tq_release(checker->allocator, s.frames);
    tq_release(checker->allocator, states);
    return status;
}
