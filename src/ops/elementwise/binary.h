/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of two inputs that read no scales: the rows of binary.def.
 */
#ifndef TQ_OPS_ELEMENTWISE_BINARY_H
#define TQ_OPS_ELEMENTWISE_BINARY_H

#include "ops/elementwise/broadcast.h"

/* Prepares a node of two inputs and an output by the row of its operator and its inputs' type.  The node's state is
   then a record that begins with a tq_broadcast.  Fails where binary.def has no such row, or shapes do not fit. */
tq_status tq_binary_prepare(tq_node *node, tq_error *error);

/* The fused activation in the options of ADD, SUB, MUL or DIV (a TQ_ActivationFunctionType); NONE for every other
   operator and for absent options. */
int64_t tq_binary_activation(const tq_node *node);

#endif
