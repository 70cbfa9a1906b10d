/* SPDX-License-Identifier: Apache-2.0
 *
 * LOGISTIC and TANH of INT16: one table of the logistic function, interpolated.
 */
#ifndef TQ_OPS_ELEMENTWISE_SIGMOID_16_H
#define TQ_OPS_ELEMENTWISE_SIGMOID_16_H

#include "ops/elementwise/map.h"

/* Prepares a node whose INT16 input and output have a scale each and zero points of 0. */
tq_status tq_sigmoid_prepare(tq_node *node, bool tanh, tq_error *error);

#endif
