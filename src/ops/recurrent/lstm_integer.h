/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of an LSTM of int8 tensors whose products are int16: the operator has 5 intermediate tensors.
 */
#ifndef TQ_OPS_RECURRENT_LSTM_INTEGER_H
#define TQ_OPS_RECURRENT_LSTM_INTEGER_H

#include "ops/recurrent/lstm_direction.h"

/* Checks the contract of int8 tensors; computes multipliers and folded biases from the operator's intermediate tensors,
   5 or 12 (lstm_integer_8.h).  lstm: its tensors are found and checked.  TQ_BAD_OPERATOR. */
tq_status tq_lstm_prepare_integer(tq_node *node, tq_lstm *lstm, tq_error *error);

/* One step of all batches; a tq_lstm_step.  aux is ignored: integer LSTMs have no auxiliary input. */
void tq_lstm_step_integer(const tq_node *node, const tq_lstm *lstm, const tq_sequence *x, const tq_sequence *aux,
                          const tq_sequence *out, size_t step);

#endif
