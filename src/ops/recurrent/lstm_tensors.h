/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds and checks the tensors of one direction of an LSTM, and prepares its constants.
 */
#ifndef TQ_OPS_RECURRENT_LSTM_TENSORS_H
#define TQ_OPS_RECURRENT_LSTM_TENSORS_H

#include "ops/recurrent/lstm_direction.h"

/* Fills *lstm, and adds its scratch to *scratch, in bytes.  Checks the tensors that `layout` names: types, shapes,
   scales, and optional ones that come together.  batches >= 0; inputs: elements of a row of x; aux: elements of a row
   of the auxiliary input, 0 without one.  The caller has set activation, both clips, rule and batched.
   TQ_BAD_OPERATOR. */
tq_status tq_lstm_prepare(tq_node *node, const tq_lstm_layout *layout, size_t batches, size_t inputs, size_t aux,
                          tq_lstm *lstm, uint64_t *scratch, tq_error *error);

/* Prepares weights that are not constant; eval calls it before the first step. */
void tq_lstm_refresh(tq_lstm *lstm);

#endif
