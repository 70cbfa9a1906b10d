/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds and checks the tensors of one direction of an LSTM.
 */
#include "ops/recurrent/lstm_tensors.h"

#include "ops/check.h"
#include "ops/recurrent/lstm_float.h"
#include "ops/recurrent/lstm_integer.h"
#include "ops/recurrent/state.h"
#include "ops/scratch.h"

/* The sets of types of an LSTM's tensors: float32, hybrid or integer. */
typedef struct kinds {
    unsigned weights, peephole, bias, norm, output_state, cell_state;
    bool hybrid, integer;
} kinds;

/* Input i; NULL where the operator has no such input (i < 0) or leaves it out. */
static tq_tensor *at(const tq_node *node, int i)
{
    return i >= 0 && i < node->in_count ? node->in[i] : NULL;
}

/* The index of a gate's tensor, from the index of the input gate's. */
static int of_gate(int first, int gate)
{
    return first < 0 ? -1 : first + gate;
}

/* The same for peepholes, which the modulation does not have. */
static int of_peephole(int first, int gate)
{
    return first < 0 || gate == TQ_GATE_MODULATION ? -1 : first + (gate == TQ_GATE_OUTPUT ? 2 : gate);
}

static kinds kinds_of(const tq_node *node, const tq_tensor *weights)
{
    bool floats = node->in[0]->type == TQ_TensorType_FLOAT32;
    bool quantized = tq_is_hybrid_weights(weights);
    kinds k = {TQ_T(FLOAT32), TQ_T(FLOAT32), TQ_T(FLOAT32), TQ_T(FLOAT32), TQ_T(FLOAT32), TQ_T(FLOAT32), false, false};
    if (floats && quantized) {
        k.weights = k.peephole = TQ_HYBRID_WEIGHTS;
        k.hybrid = true;
    } else if (!floats)
        k = (kinds){TQ_T(INT8), TQ_T(INT16), TQ_T(INT32), TQ_T(INT16), TQ_T(INT8), TQ_T(INT16), false, true};
    return k;
}

/* The shape is [rows, cols], or [rows] where cols is 0. */
static tq_status check_shape(const tq_node *node, int i, size_t rows, size_t cols, tq_error *error)
{
    const tq_shape *shape = &node->in[i]->shape;
    TQ_TRY(tq_check_rank(node, i, cols ? 2 : 1, cols ? 2 : 1, error));
    if ((size_t)shape->dims[0] != rows || (cols && (size_t)shape->dims[1] != cols)) {
        char text[64];
        tq_shape_format(shape, text, sizeof text);
        return cols ? tq_input_fail(node, i, error, "has the shape %s; it must be [%zu,%zu]", text, rows, cols)
                    : tq_input_fail(node, i, error, "has the shape %s; it must be [%zu]", text, rows);
    }
    return TQ_OK;
}

/* Checks type and shape of weights; quantized weights have one scale, or for hybrid operators one for each row. */
static tq_status check_weights(const tq_node *node, int i, unsigned types, size_t rows, size_t cols, tq_error *error)
{
    if (!at(node, i))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "input %d is left out; its like is there", i);
    TQ_TRY(tq_check_input(node, i, types, error));
    TQ_TRY(check_shape(node, i, rows, cols, error));
    if (!tq_is_hybrid_weights(node->in[i]) && node->in[i]->type != TQ_TensorType_INT16)
        return TQ_OK;
    if (node->in[0]->type == TQ_TensorType_FLOAT32)
        return tq_check_weight_scales(node, i, 0, error);
    TQ_TRY(tq_check_input_scale(node, i, error));
    if (tq_zero_point_at(node->in[i], 0) != 0)
        return tq_input_fail(node, i, error, "has the zero point %d; weights must have 0",
                             tq_zero_point_at(node->in[i], 0));
    return TQ_OK;
}

/* Recurrent float weights may be a diagonal, [cells]. */
static tq_status find_recurrent(const tq_node *node, int i, int gate, const kinds *k, tq_lstm *l, tq_error *error)
{
    const tq_tensor *r = at(node, i);
    if (r && r->shape.rank == 1 && !k->integer) {
        l->diagonal[gate] = true;
        if (l->outputs != l->cells)
            return tq_input_fail(node, i, error, "is a diagonal; there are %zu cells and %zu outputs", l->cells,
                                 l->outputs);
        return check_weights(node, i, TQ_T(FLOAT32), l->cells, 0, error);
    }
    return check_weights(node, i, k->weights, l->cells, l->outputs, error);
}

static tq_status find_gate(const tq_node *node, const tq_lstm_layout *layout, int gate, const kinds *k, tq_lstm *l,
                           tq_error *error)
{
    tq_lstm_gate *g = &l->gates[gate];
    int weights = of_gate(layout->weights, gate), recurrent = of_gate(layout->recurrent, gate);
    int aux = of_gate(layout->aux_weights, gate), bias = of_gate(layout->bias, gate);
    int norm = of_gate(layout->norm, gate), peephole = of_peephole(layout->peephole, gate);
    TQ_TRY(check_weights(node, weights, k->weights, l->cells, l->inputs, error));
    TQ_TRY(find_recurrent(node, recurrent, gate, k, l, error));
    if (l->aux)
        TQ_TRY(check_weights(node, aux, k->weights, l->cells, l->aux, error));
    if (!at(node, bias))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "input %d, a bias, is left out", bias);
    TQ_TRY(tq_check_input(node, bias, k->bias, error));
    TQ_TRY(check_shape(node, bias, l->cells, 0, error));
    if (gate != TQ_GATE_MODULATION && at(node, of_peephole(layout->peephole, TQ_GATE_OUTPUT)))
        TQ_TRY(check_weights(node, peephole, k->peephole, l->cells, 0, error));
    else if (at(node, peephole))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "input %d is left out; its like, input %d, is there",
                          of_peephole(layout->peephole, TQ_GATE_OUTPUT), peephole);
    if (at(node, of_gate(layout->norm, TQ_GATE_FORGET)))
        TQ_TRY(check_weights(node, norm, k->norm, l->cells, 0, error));
    else if (at(node, norm))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "input %d is left out; its like, input %d, is there",
                          of_gate(layout->norm, TQ_GATE_FORGET), norm);
    *g = (tq_lstm_gate){.weights = at(node, weights),
                        .aux_weights = l->aux ? at(node, aux) : NULL,
                        .recurrent = at(node, recurrent),
                        .peephole = at(node, peephole),
                        .bias = at(node, bias),
                        .norm = at(node, norm)};
    return TQ_OK;
}

/* The input gate has all its tensors, or none. */
static tq_status find_input_gate(const tq_node *node, const tq_lstm_layout *layout, const kinds *k, tq_lstm *l,
                                 tq_error *error)
{
    const int firsts[] = {layout->recurrent, layout->peephole, layout->bias, layout->norm};
    if (at(node, layout->weights))
        return find_gate(node, layout, TQ_GATE_INPUT, k, l, error);
    l->cifg = true;
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
        if (at(node, firsts[i]))
            return tq_input_fail(node, firsts[i], error, "is there, and the input gate's weights, input %d, are not",
                                 layout->weights);
    return TQ_OK;
}

static tq_status find_projection(const tq_node *node, const tq_lstm_layout *layout, const kinds *k, tq_lstm *l,
                                 tq_error *error)
{
    l->projection = at(node, layout->projection);
    l->projection_bias = at(node, layout->projection_bias);
    if (l->projection)
        TQ_TRY(check_weights(node, layout->projection, k->weights, l->outputs, l->cells, error));
    else if (l->outputs != l->cells)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "there are %zu cells and %zu outputs, and no projection",
                          l->cells, l->outputs);
    if (!l->projection_bias)
        return TQ_OK;
    if (!l->projection)
        return tq_input_fail(node, layout->projection_bias, error, "is a projection's bias, and there is none");
    TQ_TRY(tq_check_input(node, layout->projection_bias, k->bias, error));
    return check_shape(node, layout->projection_bias, l->outputs, 0, error);
}

static tq_status find_sizes(const tq_node *node, const tq_lstm_layout *layout, tq_lstm *l, tq_error *error)
{
    int weights = of_gate(layout->weights, TQ_GATE_OUTPUT), recurrent = of_gate(layout->recurrent, TQ_GATE_OUTPUT);
    if (!at(node, weights) || !at(node, recurrent))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "input %d or %d, the output gate's weights, is left out",
                          weights, recurrent);
    TQ_TRY(tq_check_rank(node, weights, 2, 2, error));
    TQ_TRY(tq_check_rank(node, recurrent, 1, 2, error));
    const tq_shape *r = &at(node, recurrent)->shape;
    l->cells = (size_t)at(node, weights)->shape.dims[0];
    l->outputs = (size_t)r->dims[r->rank - 1];
    return l->cells && l->outputs
               ? TQ_OK
               : tq_op_fail(node, error, TQ_BAD_OPERATOR, "there are %zu cells and %zu outputs", l->cells, l->outputs);
}

static tq_status check_options(const tq_node *node, const tq_lstm *l, tq_error *error)
{
    TQ_TRY(tq_check_activation(node, l->activation, error));
    if (!(l->cell_clip >= 0) || !(l->projection_clip >= 0))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "cell_clip is %g and proj_clip %g; they must not be negative",
                          (double)l->cell_clip, (double)l->projection_clip);
    return TQ_OK;
}

/* ---- hybrid: sums of rows ---- */

/* Takes memory for the sums of a hybrid matrix; *change is set where eval must compute them. */
static tq_status prepare_sums(tq_node *node, const tq_tensor *matrix, bool *change, int32_t **sums, tq_error *error)
{
    if (!matrix || !tq_is_hybrid_weights(matrix))
        return TQ_OK;
    *change |= !tq_is_constant(matrix);
    return tq_node_memory(node, (uint64_t)matrix->shape.dims[0], sizeof **sums, sums, error);
}

static void sum_weights(tq_lstm *l)
{
    for (int gate = 0; gate < TQ_GATES; gate++) {
        tq_lstm_gate *g = &l->gates[gate];
        tq_sum_matrix_rows(g->weights, g->sums);
        tq_sum_matrix_rows(g->aux_weights, g->aux_sums);
        tq_sum_matrix_rows(g->recurrent, g->recurrent_sums);
    }
    tq_sum_matrix_rows(l->projection, l->projection_sums);
}

void tq_lstm_refresh(tq_lstm *l)
{
    if (l->sums_change)
        sum_weights(l);
    if (l->pack_again)
        tq_lstm_pack_float(l);
}

static tq_status prepare_hybrid(tq_node *node, tq_lstm *l, tq_error *error)
{
    for (int gate = 0; gate < TQ_GATES; gate++) {
        tq_lstm_gate *g = &l->gates[gate];
        TQ_TRY(prepare_sums(node, g->weights, &l->sums_change, &g->sums, error));
        TQ_TRY(prepare_sums(node, g->aux_weights, &l->sums_change, &g->aux_sums, error));
        if (!l->diagonal[gate])
            TQ_TRY(prepare_sums(node, g->recurrent, &l->sums_change, &g->recurrent_sums, error));
    }
    TQ_TRY(prepare_sums(node, l->projection, &l->sums_change, &l->projection_sums, error));
    if (!l->sums_change)
        sum_weights(l);
    return TQ_OK;
}

static void lay_out(tq_lstm *l, const kinds *k, uint64_t *total)
{
    uint64_t cells = (uint64_t)l->batches * l->cells, element = k->integer ? sizeof(int16_t) : sizeof(float);
    l->gates_at = tq_scratch_part(total, cells * TQ_GATES, element);
    l->hidden_at = tq_scratch_part(total, cells, element);
    l->hidden_quantized_at = tq_scratch_part(total, k->hybrid || k->integer ? cells : 0, 1);
    l->x_quantized_at = tq_scratch_part(total, k->hybrid ? (uint64_t)l->batches * l->inputs : 0, 1);
    l->aux_quantized_at = tq_scratch_part(total, k->hybrid ? (uint64_t)l->batches * l->aux : 0, 1);
    l->h_quantized_at = tq_scratch_part(total, k->hybrid ? (uint64_t)l->batches * l->outputs : 0, 1);
    l->rows_at = tq_scratch_part(total, k->hybrid ? 3 * (uint64_t)l->batches : 0, sizeof(tq_hybrid_row));
}

tq_status tq_lstm_prepare(tq_node *node, const tq_lstm_layout *layout, size_t batches, size_t inputs, size_t aux,
                          tq_lstm *l, uint64_t *scratch, tq_error *error)
{
    TQ_TRY(check_options(node, l, error));
    l->batches = batches;
    l->inputs = inputs;
    l->aux = aux;
    if (inputs == 0)
        return tq_input_fail(node, 0, error, "has rows without elements");
    TQ_TRY(find_sizes(node, layout, l, error));
    kinds k = kinds_of(node, at(node, of_gate(layout->weights, TQ_GATE_OUTPUT)));
    for (int gate = TQ_GATE_FORGET; gate <= TQ_GATE_OUTPUT; gate++)
        TQ_TRY(find_gate(node, layout, gate, &k, l, error));
    TQ_TRY(find_input_gate(node, layout, &k, l, error));
    TQ_TRY(find_projection(node, layout, &k, l, error));
    TQ_TRY(tq_check_state(node, layout->output_state, k.output_state, batches * l->outputs, error));
    TQ_TRY(tq_check_state(node, layout->cell_state, k.cell_state, batches * l->cells, error));
    l->output_state = node->in[layout->output_state];
    l->cell_state = node->in[layout->cell_state];
    lay_out(l, &k, scratch);
    if (k.hybrid)
        return prepare_hybrid(node, l, error);
    l->rule = NULL;
    return k.integer ? tq_lstm_prepare_integer(node, l, error) : tq_lstm_prepare_float(node, l, error);
}
