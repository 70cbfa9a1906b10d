/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of control flow: the subgraphs that operators run exist, take and give what they must, and
 * do not run themselves.
 */
#include "model/problems_walk.h"
#include "model/tensor.h"

typedef enum number { SAME, ALL_BUT_ONE, NO, ONE, ANY } number;

typedef struct callee_row {
    uint16_t op, table, field;
    uint8_t inputs, outputs; /* number */
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

/* The item of a row's field; false: past the last. */
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
    switch ((number)rule) {
    case SAME:
        return count == of_operator;
    case ALL_BUT_ONE:
        return (uint64_t)count + 1 == of_operator;
    case NO:
        return count == 0;
    case ONE:
        return count == 1;
    case ANY:
        break;
    }
    return true;
}

static void check_endless(tq_walk *walk, const tq_node *node, const callee_row *row, const tq_subgraph *condition)
{
    bool is_condition = row->field == TQ_WhileOptions_cond_subgraph_index || row->field == TQ_StablehloWhileOptions_cond_subgraph_index;
    int32_t output = condition->outputs.count ? tq_vector_i32(&condition->outputs, 0) : -1;
    tq_table tensor = tq_vector_table(&condition->tensors, (size_t)(uint32_t)output);
    tq_bytes bytes;
    if (!is_condition || output < 0 || !tensor.at || tq_tensor_bytes(walk->model, &tensor, &bytes, NULL) != TQ_OK)
        return;
    if (bytes.data && bytes.size && bytes.data[0] && tq_get_int(&tensor, TQ_Tensor_type) == TQ_TensorType_BOOL)
        tq_report(walk, TQ_PROBLEM_ENDLESS_LOOP, tq_place_in(walk, TQ_PLACE_OPERATOR, node->index, 0),
                  "the condition, tensor %d of the called subgraph, is a constant that is true", output);
}

static void check_callee(tq_walk *walk, const tq_node *node, const callee_row *row, int64_t index)
{
    tq_place place = tq_place_in(walk, TQ_PLACE_OPERATOR, node->index, 0);
    const char *name = tq_fields[row->field].name;
    if (index < 0 || index >= walk->model->subgraphs.count) {
        tq_report(walk, TQ_PROBLEM_CALL_INDEX, place, "%s is %lld; the model has %u subgraphs", name, (long long)index,
                  walk->model->subgraphs.count);
        return;
    }
    tq_subgraph subgraph = tq_model_subgraph(walk->model, (size_t)index);
    if (!fits(row->inputs, subgraph.inputs.count, node->inputs.count) || !fits(row->outputs, subgraph.outputs.count, node->outputs.count))
        tq_report(walk, TQ_PROBLEM_CALL_ARITY, place, "%s: subgraph %lld takes %u tensors and gives %u; the operator has %u inputs and %u outputs",
                  name, (long long)index, subgraph.inputs.count, subgraph.outputs.count, node->inputs.count, node->outputs.count);
    check_endless(walk, node, row, &subgraph);
}

void tq_check_calls(tq_walk *walk, const tq_node *node)
{
    for (size_t r = 0; r < ROWS; r++) {
        int64_t index;
        if (callees[r].op != node->op.code)
            continue;
        for (uint32_t item = 0; !walk->stopped && callee_at(&callees[r], &node->options.table, item, &index); item++)
            check_callee(walk, node, &callees[r], index);
    }
}

/* ---- cycles: a depth-first walk over the calls, each of which it looks at once ---- */

typedef struct visit {
    bool open, done;      /* on the path from where the walk started; left */
    uint32_t op, row, item; /* the call that comes next */
    uint32_t from;        /* the subgraph before it on the path */
} visit;

/* The next call of a subgraph; false: there are no more. */
static bool next_call(const tq_model *model, uint32_t subgraph_index, visit *v, uint32_t *op_index, int64_t *out)
{
    tq_subgraph subgraph = tq_model_subgraph(model, subgraph_index);
    for (; v->op < subgraph.operators.count; v->op++, v->row = v->item = 0) {
        tq_operator op = tq_model_operator(model, &subgraph, v->op);
        tq_options options = tq_operator_options(&op);
        for (; v->row < ROWS; v->row++, v->item = 0) {
            if (callees[v->row].op != op.code)
                continue;
            if (options.id != callees[v->row].table)
                options.table = (tq_table){model->file, 0, 0, 0};
            *op_index = v->op;
            if (callee_at(&callees[v->row], &options.table, v->item++, out))
                return true;
        }
    }
    return false;
}

static void follow(tq_walk *walk, visit *visits, uint32_t start)
{
    uint32_t at = start, op;
    int64_t callee;
    visits[start].open = true;
    while (!walk->stopped) {
        if (!next_call(walk->model, at, &visits[at], &op, &callee)) {
            visits[at].open = false;
            visits[at].done = true;
            if (at == start)
                return;
            at = visits[at].from;
        } else if (callee >= 0 && callee < walk->model->subgraphs.count) {
            visit *v = &visits[callee];
            if (v->open) {
                walk->subgraph_index = at;
                tq_report(walk, TQ_PROBLEM_CALL_CYCLE, tq_place_in(walk, TQ_PLACE_OPERATOR, op, 0),
                          "subgraph %lld, which it runs, is running already when this operator does", (long long)callee);
            } else if (!v->done) {
                v->from = at;
                v->open = true;
                at = (uint32_t)callee;
            }
        }
    }
}

tq_status tq_check_cycles(tq_walk *walk, tq_error *error)
{
    visit *visits;
    uint32_t count = walk->model->subgraphs.count;
    tq_status status = tq_allocate(walk->allocator, count, sizeof *visits, &visits, error);
    for (uint32_t i = 0; status == TQ_OK && i < count && !walk->stopped; i++)
        if (!visits[i].done)
            follow(walk, visits, i);
    if (status == TQ_OK)
        tq_release(walk->allocator, visits);
    return status;
}
