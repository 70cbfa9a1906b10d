/* SPDX-License-Identifier: Apache-2.0
 *
 * LOGISTIC and TANH of INT16: one table of the logistic function, interpolated.
 */
#ifndef TQ_OPS_ELEMENTWISE_SIGMOID_16_H
#define TQ_OPS_ELEMENTWISE_SIGMOID_16_H

#include "ops/elementwise/map.h"

/* Prepares a LOGISTIC node (tanh: a TANH node) whose INT16 input and output have a scale > 0 each and zero points of 0.
   Fails unless the output's scale is 2^-15. */
tq_status tq_sigmoid_prepare(tq_node *node, bool tanh, tq_error *error);

#endif
