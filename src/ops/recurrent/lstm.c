/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM (full kernel) and UNIDIRECTIONAL_SEQUENCE_LSTM: one direction of ops/recurrent/lstm_direction.h over a sequence.
 *
 *     LSTM                            x [batch, inputs] -> [batch, outputs], one step
 *     UNIDIRECTIONAL_SEQUENCE_LSTM    x [batch, time, inputs], or [time, batch, inputs] if time_major
 *
 * Inputs, of either: x, weights of the gates (4), recurrent weights (4), peepholes (3), biases (4), projection,
 * its bias, output state, cell state, and layer normalizations (4) of an operator with 24 inputs.
 *
 * Source: LiteRT f6745779, tflite/kernels/{lstm,unidirectional_sequence_lstm}.cc, lstm_shared.h.
 */
#include "ops/check.h"
#include "ops/recurrent/lstm_basic.h"
#include "ops/recurrent/lstm_float.h"
#include "ops/recurrent/lstm_integer.h"
#include "ops/recurrent/lstm_integer_8.h"
#include "ops/recurrent/lstm_tensors.h"

typedef struct sequence {
    tq_lstm lstm;
    tq_lstm_step step;
    size_t steps, outputs;
    bool time_major;
} sequence;

static const tq_lstm_layout layout = {.weights = 1,
                                      .aux_weights = -1,
                                      .recurrent = 5,
                                      .peephole = 9,
                                      .bias = 12,
                                      .norm = 20,
                                      .projection = 16,
                                      .projection_bias = 17,
                                      .output_state = 18,
                                      .cell_state = 19};

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    sequence *s = node->state;
    tq_lstm *l = &s->lstm;
    size_t element = tq_element_bytes(node->in[0]->type);
    tq_sequence x = tq_sequence_of(node->in[0]->data, element, s->time_major, s->steps, l->batches, l->inputs, 0);
    tq_sequence out = tq_sequence_of(node->out[0]->data, element, s->time_major, s->steps, l->batches, l->outputs, 0);
    tq_sequence aux = {NULL, 0, 0};
    tq_lstm_refresh(l);
    for (size_t step = 0; step < s->steps && !tq_stop_after(TQ_GATES * l->cells); step++)
        s->step(node, l, &x, &aux, &out, step);
    return TQ_OK;
}

static tq_status prepare(tq_node *node, sequence *s, size_t batches, tq_error *error)
{
    const tq_shape *x = &node->in[0]->shape;
    uint64_t scratch = 0;
    s->lstm.batched = s->time_major;
    TQ_TRY(tq_lstm_prepare(node, &layout, batches, (size_t)x->dims[x->rank - 1], 0, &s->lstm, &scratch, error));
    s->step = node->in[0]->type != TQ_TensorType_INT8 ? tq_lstm_step_float
              : s->lstm.products_8                    ? tq_lstm_step_integer_8
                                                      : tq_lstm_step_integer;
    tq_shape out = *x;
    out.dims[out.rank - 1] = (int32_t)s->lstm.outputs;
    TQ_TRY(tq_output_shape(node, 0, &out, error));
    node->eval = eval;
    return tq_node_scratch(node, scratch, error);
}

static tq_status check(const tq_node *node, int rank, tq_error *error)
{
    if (node->in_count < 20)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %d inputs; with kernel_type FULL (0) it needs 20 or 24",
                          node->in_count);
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT8), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    return tq_check_rank(node, 0, rank, rank, error);
}

static float float_option(const tq_node *node, tq_field_id field)
{
    return (float)tq_get_scalar(&node->options.table, field).f;
}

tq_status tq_prepare_unidirectional_sequence_lstm(tq_node *node, tq_error *error)
{
    const tq_table *options = &node->options.table;
    sequence *s;
    TQ_TRY(check(node, 3, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    const int32_t *x = node->in[0]->shape.dims;
    s->time_major = tq_get_int(options, TQ_UnidirectionalSequenceLSTMOptions_time_major) != 0;
    s->steps = (size_t)x[s->time_major ? 0 : 1];
    s->lstm.activation = tq_get_int(options, TQ_UnidirectionalSequenceLSTMOptions_fused_activation_function);
    s->lstm.cell_clip = float_option(node, TQ_UnidirectionalSequenceLSTMOptions_cell_clip);
    s->lstm.projection_clip = float_option(node, TQ_UnidirectionalSequenceLSTMOptions_proj_clip);
    s->lstm.rule = tq_hybrid_rule_of(
        node, tq_get_int(options, TQ_UnidirectionalSequenceLSTMOptions_asymmetric_quantize_inputs) != 0);
    return prepare(node, s, (size_t)x[s->time_major ? 1 : 0], error);
}

tq_status tq_prepare_lstm(tq_node *node, tq_error *error)
{
    const tq_table *options = &node->options.table;
    sequence *s;
    if (tq_get_int(options, TQ_LSTMOptions_kernel_type) == TQ_LSTMKernelType_BASIC)
        return tq_prepare_lstm_basic(node, error);
    TQ_TRY(check(node, 2, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    s->time_major = true;
    s->steps = 1;
    s->lstm.activation = tq_get_int(options, TQ_LSTMOptions_fused_activation_function);
    s->lstm.cell_clip = float_option(node, TQ_LSTMOptions_cell_clip);
    s->lstm.projection_clip = float_option(node, TQ_LSTMOptions_proj_clip);
    s->lstm.rule = tq_hybrid_rule_of(node, tq_get_int(options, TQ_LSTMOptions_asymmetric_quantize_inputs) != 0);
    return prepare(node, s, (size_t)node->in[0]->shape.dims[0], error);
}
