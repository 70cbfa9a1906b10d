/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of one input whose elements are quantized values.
 */
#ifndef TQ_OPS_ELEMENTWISE_UNARY_QUANTIZED_H
#define TQ_OPS_ELEMENTWISE_UNARY_QUANTIZED_H

#include "ops/op.h"

/* The prepare function for a node whose input 0 holds quantized values that its operator takes; NULL where the input
   has another type.  Adds to *types the quantized types that the operator takes. */
tq_op_fn tq_unary_quantized_find(const tq_node *node, unsigned *types);

#endif
