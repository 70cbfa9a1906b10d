/* SPDX-License-Identifier: Apache-2.0
 *
 * The operator LSTM with kernel_type BASIC: one step, all gates in one matrix.
 */
#ifndef TQ_OPS_RECURRENT_LSTM_BASIC_H
#define TQ_OPS_RECURRENT_LSTM_BASIC_H

#include "ops/op.h"

/* tq_prepare_lstm calls it. */
tq_status tq_prepare_lstm_basic(tq_node *node, tq_error *error);

#endif
