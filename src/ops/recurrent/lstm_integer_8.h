/* SPDX-License-Identifier: Apache-2.0
 *
 * The integer form of LSTM whose products are int8 too: the operator has 12 intermediate tensors.
 */
#ifndef TQ_OPS_RECURRENT_LSTM_INTEGER_8_H
#define TQ_OPS_RECURRENT_LSTM_INTEGER_8_H

#include "ops/recurrent/lstm_direction.h"

/* Checks this form's contract; computes multipliers and folded biases.  lstm: its tensors are found and checked
   (tq_lstm_prepare). */
tq_status tq_lstm_prepare_integer_8(tq_node *node, tq_lstm *lstm, tq_error *error);

/* One step of all batches; a tq_lstm_step.  aux is ignored: this form has no auxiliary input. */
void tq_lstm_step_integer_8(const tq_node *node, const tq_lstm *lstm, const tq_sequence *x, const tq_sequence *aux,
                            const tq_sequence *out, size_t step);

#endif
