/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of an LSTM in float32, with float32 or quantized (hybrid) weights.
 */
#ifndef TQ_OPS_RECURRENT_LSTM_FLOAT_H
#define TQ_OPS_RECURRENT_LSTM_FLOAT_H

#include "ops/recurrent/lstm_direction.h"

/* For float32 weights: takes memory for the transposed matrices, and fills it where all weights are constant. */
tq_status tq_lstm_prepare_float(tq_node *node, tq_lstm *lstm, tq_error *error);

/* Fills the transposed matrices from the weights' data. */
void tq_lstm_pack_float(tq_lstm *lstm);

/* One step of all batches; a tq_lstm_step. */
void tq_lstm_step_float(const tq_node *node, const tq_lstm *lstm, const tq_sequence *x, const tq_sequence *aux,
                        const tq_sequence *out, size_t step);

#endif
