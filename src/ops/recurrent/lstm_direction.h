/* SPDX-License-Identifier: Apache-2.0
 *
 * One direction of a long short-term memory: its tensors, sizes and constants.
 *
 *     gate g     act(W_g x + A_g aux + R_g h + P_g * c + b_g), or with layer normalization
 *                act(norm(W_g x + A_g aux + R_g h + P_g * c) * n_g + b_g)
 *     cell       c = clip(forget * c + input * modulation), input = 1 - forget where its weights are left out (CIFG)
 *     output     h = clip(projection (output * act(c)) + bias), or output * act(c)
 *
 * x [inputs], aux [aux], c [cells], h [outputs].  The gates' activation is the logistic function; the modulation and
 * the cell have the operator's activation.  c and h are variable tensors; the operator outputs h.
 *
 * lstm_tensors.h fills a tq_lstm; lstm_float.h, lstm_integer.h and lstm_integer_8.h compute its steps.
 *
 * Source: LiteRT f6745779, tflite/kernels/lstm_eval.cc, lstm_shared.h and the operators' files.
 */
#ifndef TQ_OPS_RECURRENT_LSTM_DIRECTION_H
#define TQ_OPS_RECURRENT_LSTM_DIRECTION_H

#include "ops/quantized.h"
#include "ops/recurrent/rows.h"

enum { TQ_GATE_INPUT, TQ_GATE_FORGET, TQ_GATE_MODULATION, TQ_GATE_OUTPUT, TQ_GATES };

/* Input indices of one direction's tensors; -1: the operator has no such input.  weights, aux_weights, recurrent, bias
   and norm are the first of four, in the order of the gates; peephole is the first of three (no modulation). */
typedef struct tq_lstm_layout {
    int weights, aux_weights, recurrent, peephole, bias, norm, projection, projection_bias, output_state, cell_state;
} tq_lstm_layout;

typedef struct tq_lstm_gate {
    /* weights [cells][inputs], aux_weights [cells][aux], recurrent [cells][outputs] or a diagonal [cells], the others
       [cells]; NULL: the gate has no such tensor */
    const tq_tensor *weights, *aux_weights, *recurrent, *peephole, *bias, *norm;

    /* hybrid: sums of the rows of the three matrices, [cells] */
    int32_t *sums, *aux_sums, *recurrent_sums;

    /* integer */
    int32_t *first_bias, *recurrent_bias; /* [cells]; the zero points of x and h are folded in */
    tq_fixed from_input, from_recurrent, from_cell, norm_scale;
    int32_t variance_guard;      /* takes the place of a variance of 0; >= 1 */
    tq_fixed x_to_sum, h_to_sum; /* int8 products, whose zero points follow */
    int32_t x_zero_point, h_zero_point;
} tq_lstm_gate;

typedef struct tq_lstm {
    size_t batches, inputs, aux, cells, outputs; /* aux 0: no auxiliary input; inputs, cells, outputs >= 1 */
    bool cifg;                                   /* coupled input and forget gates: there is no input gate */
    bool diagonal[TQ_GATES];                     /* recurrent weights are a diagonal matrix: cells = outputs */
    int64_t activation;                          /* TQ_ActivationFunctionType_x */
    float cell_clip, projection_clip;            /* bounds of |c| and |h|, >= 0; 0: no bound */
    tq_lstm_gate gates[TQ_GATES];
    const tq_tensor *projection, *projection_bias; /* [outputs][cells], [outputs]; NULL: none */
    tq_tensor *output_state, *cell_state;          /* h [batches][outputs], c [batches][cells] */

    tq_hybrid_rule rule; /* hybrid; NULL: weights and activations have the same type */
    bool sums_change;    /* hybrid: some weights are not constant, so eval sums their rows */
    int32_t *projection_sums;

    /* float32 */
    bool batched;               /* TFLite multiplies all batches of a step as one matrix (ordered_product.h) */
    bool pack_again;            /* some weights are not constant, so eval transposes them */
    float *joined;              /* [gate][panel][x, aux, h][16], columns of all gates' matrices */
    float *projection_columns;  /* [cell][output] */

    /* integer */
    int32_t *projected_bias; /* [outputs]; the hidden zero point is folded in */
    tq_fixed to_hidden, to_projected;
    int32_t hidden_zero_point, cell_shift; /* the cell state's scale is 2^cell_shift; -15 to -9 */
    int32_t cell_clip_q, projection_clip_q; /* the clips as quantized values; 0: no bound */
    bool products_8;                        /* products are int8: lstm_integer_8.h */

    /* byte offsets in node->scratch */
    uint64_t gates_at, hidden_at, x_quantized_at, aux_quantized_at, h_quantized_at, hidden_quantized_at, rows_at;
} tq_lstm;

/* The first gate that has tensors; the gates up to TQ_GATE_OUTPUT have them too. */
static inline int tq_lstm_first_gate(const tq_lstm *lstm)
{
    return lstm->cifg ? TQ_GATE_FORGET : TQ_GATE_INPUT;
}

/* Step number `step` of all batches: reads row `step` of x and of aux, updates h and c, writes h to row `step` of out.
   x, out: in the type of the operator's input and output; aux: its data may be NULL only where lstm->aux is 0.
   step < the steps of each sequence.  Needs node->scratch. */
typedef void (*tq_lstm_step)(const tq_node *node, const tq_lstm *lstm, const tq_sequence *x, const tq_sequence *aux,
                             const tq_sequence *out, size_t step);

#endif
