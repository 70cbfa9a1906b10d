/* SPDX-License-Identifier: Apache-2.0
 *
 * BIDIRECTIONAL_SEQUENCE_LSTM: two directions of ops/recurrent/lstm_direction.h over a sequence, float32 or hybrid.
 *
 * Inputs: x [batch, time, inputs], or [time, batch, inputs] if time_major; 17 tensors of the forward direction
 * (weights 4, recurrent 4, peepholes 3, biases 4, projection, its bias), 17 of the backward one; their states (output
 * and cell of the forward, output and cell of the backward direction); an auxiliary input; its weights, 4 of each.
 * With auxiliary weights, both directions add the auxiliary input; without, the backward direction reads it in place
 * of x.  Outputs: forward and backward, or, if merge_outputs, one with both side by side.
 *
 * Source: LiteRT f6745779, tflite/kernels/bidirectional_sequence_lstm.cc.  LiteRT assumes, for merged outputs
 * that are not time-major, that the states' rows are as wide as the output's.
 */
#include "ops/check.h"
#include "ops/recurrent/lstm_float.h"
#include "ops/recurrent/lstm_tensors.h"

enum { AUX = 39, FORWARD_AUX_WEIGHTS = 40, INPUTS = 48 };

typedef struct directions {
    tq_lstm forward, backward;
    size_t steps, inputs;
    bool time_major, merged;
} directions;

static const tq_lstm_layout forward_layout = {.weights = 1,
                                              .aux_weights = FORWARD_AUX_WEIGHTS,
                                              .recurrent = 5,
                                              .peephole = 9,
                                              .bias = 12,
                                              .norm = -1,
                                              .projection = 16,
                                              .projection_bias = 17,
                                              .output_state = 35,
                                              .cell_state = 36};
static const tq_lstm_layout backward_layout = {.weights = 18,
                                               .aux_weights = 44,
                                               .recurrent = 22,
                                               .peephole = 26,
                                               .bias = 29,
                                               .norm = -1,
                                               .projection = 33,
                                               .projection_bias = 34,
                                               .output_state = 37,
                                               .cell_state = 38};

/* Whether the backward direction reads the auxiliary input in place of x. */
static bool reads_aux(const tq_node *node)
{
    return node->in[AUX] && !node->in[FORWARD_AUX_WEIGHTS + TQ_GATE_FORGET];
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    directions *d = node->state;
    size_t batches = d->forward.batches, forward = d->forward.outputs, backward = d->backward.outputs;
    size_t size = sizeof(float), width = d->merged ? forward + backward : forward;
    bool swap = reads_aux(node);
    void *aux_data = node->in[AUX] ? node->in[AUX]->data : NULL;
    tq_sequence x = tq_sequence_of(node->in[0]->data, size, d->time_major, d->steps, batches, d->inputs, 0);
    tq_sequence aux =
        tq_sequence_of(aux_data, size, d->time_major, d->steps, batches, swap ? d->inputs : d->forward.aux, 0);
    tq_sequence out = tq_sequence_of(node->out[0]->data, size, d->time_major, d->steps, batches, width, 0);
    tq_sequence back = tq_sequence_of(node->out[d->merged ? 0 : 1]->data, size, d->time_major, d->steps, batches,
                                      d->merged ? width : backward, d->merged ? forward : 0);
    tq_lstm_refresh(&d->forward);
    tq_lstm_refresh(&d->backward);
    for (size_t step = 0; step < d->steps && !tq_stop_after(TQ_GATES * forward); step++)
        tq_lstm_step_float(node, &d->forward, &x, &aux, &out, step);
    for (size_t step = d->steps; step-- > 0 && !tq_stop_after(TQ_GATES * backward);)
        tq_lstm_step_float(node, &d->backward, swap ? &aux : &x, &aux, &back, step);
    return TQ_OK;
}

static tq_status check(const tq_node *node, tq_error *error)
{
    bool merged = tq_get_int(&node->options.table, TQ_BidirectionalSequenceLSTMOptions_merge_outputs) != 0;
    TQ_TRY(tq_check_output_count(node, merged ? 1 : 2, error));
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, 0, 3, 3, error));
    for (int i = 0; i < node->out_count; i++)
        TQ_TRY(tq_check_output(node, i, TQ_T(FLOAT32), error));
    if (!node->in[AUX])
        return TQ_OK;
    TQ_TRY(tq_check_input(node, AUX, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, AUX, 3, 3, error));
    const int32_t *x = node->in[0]->shape.dims, *aux = node->in[AUX]->shape.dims;
    if (aux[0] != x[0] || aux[1] != x[1] || (reads_aux(node) && aux[2] != x[2]))
        return tq_input_fail(node, AUX, error, "has the shape [%d,%d,%d]; the input's is [%d,%d,%d]", aux[0], aux[1],
                             aux[2], x[0], x[1], x[2]);
    return TQ_OK;
}

/* Auxiliary weights need an auxiliary input. */
static tq_status aux_width(const tq_node *node, size_t *width, tq_error *error)
{
    *width = 0;
    if (!node->in[FORWARD_AUX_WEIGHTS + TQ_GATE_FORGET])
        return TQ_OK;
    if (!node->in[AUX] || node->in[AUX]->shape.dims[2] == 0)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "input %d, an auxiliary input, is left out; its weights are there", AUX);
    *width = (size_t)node->in[AUX]->shape.dims[2];
    return TQ_OK;
}

static void read_options(const tq_node *node, directions *d)
{
    const tq_table *options = &node->options.table;
    tq_lstm *l = &d->forward;
    d->merged = tq_get_int(options, TQ_BidirectionalSequenceLSTMOptions_merge_outputs) != 0;
    d->time_major = tq_get_int(options, TQ_BidirectionalSequenceLSTMOptions_time_major) != 0;
    l->activation = tq_get_int(options, TQ_BidirectionalSequenceLSTMOptions_fused_activation_function);
    l->cell_clip = (float)tq_get_scalar(options, TQ_BidirectionalSequenceLSTMOptions_cell_clip).f;
    l->projection_clip = (float)tq_get_scalar(options, TQ_BidirectionalSequenceLSTMOptions_proj_clip).f;
    l->rule = tq_hybrid_rule_of(
        node, tq_get_int(options, TQ_BidirectionalSequenceLSTMOptions_asymmetric_quantize_inputs) != 0);
    d->backward = d->forward;
}

tq_status tq_prepare_bidirectional_sequence_lstm(tq_node *node, tq_error *error)
{
    directions *d;
    size_t aux;
    uint64_t scratch = 0;
    TQ_TRY(check(node, error));
    TQ_TRY(aux_width(node, &aux, error));
    TQ_TRY(tq_node_state(node, sizeof *d, &d, error));
    read_options(node, d);
    const int32_t *x = node->in[0]->shape.dims;
    size_t batches = (size_t)x[d->time_major ? 1 : 0];
    d->steps = (size_t)x[d->time_major ? 0 : 1];
    d->inputs = (size_t)x[2];
    d->forward.batched = d->backward.batched = d->time_major;
    TQ_TRY(tq_lstm_prepare(node, &forward_layout, batches, d->inputs, aux, &d->forward, &scratch, error));
    TQ_TRY(tq_lstm_prepare(node, &backward_layout, batches, d->inputs, aux, &d->backward, &scratch, error));
    size_t first = d->forward.outputs + (d->merged ? d->backward.outputs : 0);
    if (first > INT32_MAX)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "the merged output would have %zu columns", first);
    tq_shape out = {3, {x[0], x[1], (int32_t)first}};
    TQ_TRY(tq_output_shape(node, 0, &out, error));
    out.dims[2] = (int32_t)d->backward.outputs;
    if (!d->merged)
        TQ_TRY(tq_output_shape(node, 1, &out, error));
    node->eval = eval;
    return tq_node_scratch(node, scratch, error);
}
