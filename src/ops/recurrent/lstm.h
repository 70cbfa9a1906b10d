/* SPDX-License-Identifier: Apache-2.0
 *
 * One direction of a long short-term memory: its tensors, their checks, and its steps.
 *
 *     gate g     act(W_g x + A_g aux + R_g h + P_g * c + b_g), or with layer normalization
 *                act(norm(W_g x + A_g aux + R_g h + P_g * c) * n_g + b_g)
 *     cell       c = clip(forget * c + input * modulation), input = 1 - forget where its weights are left out (CIFG)
 *     output     h = clip(projection (output * act(c)) + bias), or output * act(c)
 *
 * x [inputs], c [cells], h [outputs]; the gates' activation is the logistic function, the modulation's and the
 * cell's the operator's.  c and h are variables; the operator outputs h.
 *
 * Source: LiteRT f6745779, tflite/kernels/lstm_eval.cc, lstm_shared.h and the operators' files.
 */
#ifndef TQ_OPS_RECURRENT_LSTM_H
#define TQ_OPS_RECURRENT_LSTM_H

#include "ops/quantized.h"
#include "ops/recurrent/rows.h"

enum { TQ_GATE_INPUT, TQ_GATE_FORGET, TQ_GATE_MODULATION, TQ_GATE_OUTPUT, TQ_GATES };

/* Input indices of one direction's tensors.  weights, aux_weights, recurrent, bias, norm: the first of four, in the
   order of the gates; peephole: the first of three (no modulation); -1: the operator has none. */
typedef struct tq_lstm_layout {
    int weights, aux_weights, recurrent, peephole, bias, norm, projection, projection_bias, output_state, cell_state;
} tq_lstm_layout;

typedef struct tq_lstm_gate {
    const tq_tensor *weights, *aux_weights, *recurrent, *peephole, *bias, *norm;
    /* hybrid: sums of the rows of the three matrices */
    int32_t *sums, *aux_sums, *recurrent_sums;
    /* integer */
    int32_t *first_bias, *recurrent_bias; /* zero points are folded in */
    tq_fixed from_input, from_recurrent, from_cell, norm_scale;
    int32_t variance_guard;
    tq_fixed x_to_sum, h_to_sum; /* with 8-bit products, of these zero points */
    int32_t x_zero_point, h_zero_point;
} tq_lstm_gate;

typedef struct tq_lstm {
    size_t batches, inputs, aux, cells, outputs;
    bool cifg, diagonal[TQ_GATES];
    int64_t activation;
    float cell_clip, projection_clip;
    tq_lstm_gate gates[TQ_GATES];
    const tq_tensor *projection, *projection_bias;
    tq_tensor *output_state, *cell_state;

    tq_hybrid_rule rule; /* hybrid; else NULL */
    bool sums_change;    /* hybrid: some weights are not constant */
    int32_t *projection_sums;

    /* floats */
    bool together;     /* a step multiplies all batches as one matrix (ordered_product.h); set before prepare */
    bool pack_again;   /* some weights are not constant */
    float *joined;     /* [x, aux, h][gate, cell], columns of all gates' matrices */
    float *projected;  /* [cell][output] */

    /* integer */
    int32_t *projected_bias;
    tq_fixed to_hidden, to_projected;
    int32_t hidden_zero_point, cell_shift; /* the cell state's scale is 2^cell_shift */
    int32_t cell_clip_q, projection_clip_q;
    bool products_8; /* products are int8: lstm_integer_8.c */

    uint64_t gates_at, hidden_at, x_quantized_at, aux_quantized_at, h_quantized_at, hidden_quantized_at,
        rows_at; /* offsets in node->scratch */
} tq_lstm;

/* Finds and checks the tensors, and plans scratch, adding its bytes to *scratch.  inputs: elements of a row of x; aux:
   of a row of the auxiliary input, 0 without one.  The caller has set lstm's activation, clips, rule and together. */
tq_status tq_lstm_prepare(tq_node *node, const tq_lstm_layout *layout, size_t batches, size_t inputs, size_t aux,
                          tq_lstm *lstm, uint64_t *scratch, tq_error *error);

/* For float weights: memory for transposed matrices, filled where all are constant.  tq_lstm_prepare calls it. */
tq_status tq_lstm_prepare_float(tq_node *node, tq_lstm *lstm, tq_error *error);

/* Fills the transposed matrices. */
void tq_lstm_pack_float(tq_lstm *lstm);

/* For int8 tensors: multipliers and folded biases, from the operator's intermediate tensors.  tq_lstm_prepare calls it.
 */
tq_status tq_lstm_prepare_integer(tq_node *node, tq_lstm *lstm, tq_error *error);

/* Packs weights that are not constant; eval calls it before the first step. */
void tq_lstm_refresh(tq_lstm *lstm);

/* Step number `step` of all batches: reads x (and aux, whose data may be NULL), updates h and c, writes out. */
typedef void (*tq_lstm_step)(const tq_node *node, const tq_lstm *lstm, const tq_sequence *x, const tq_sequence *aux,
                             const tq_sequence *out, size_t step);
void tq_lstm_step_float(const tq_node *node, const tq_lstm *lstm, const tq_sequence *x, const tq_sequence *aux,
                        const tq_sequence *out, size_t step);
void tq_lstm_step_integer(const tq_node *node, const tq_lstm *lstm, const tq_sequence *x, const tq_sequence *aux,
                          const tq_sequence *out, size_t step);

#endif
