/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of two inputs whose elements are plain numbers: the rows of binary.def.
 */
#ifndef TQ_OPS_ELEMENTWISE_BINARY_H
#define TQ_OPS_ELEMENTWISE_BINARY_H

#include "ops/elementwise/broadcast.h"

/* Prepares a node by the row of its operator and its inputs' type; fails where there is none.  The state of the
   node is then a record that begins with a tq_broadcast. */
tq_status tq_binary_prepare(tq_node *node, tq_error *error);

/* The fused activation of an arithmetic operator's options; NONE where there are none. */
int64_t tq_binary_activation(const tq_node *node);

#endif
