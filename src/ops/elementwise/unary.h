/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of one input, element by element.
 */
#ifndef TQ_OPS_ELEMENTWISE_UNARY_H
#define TQ_OPS_ELEMENTWISE_UNARY_H

#include "ops/elementwise/map.h"

/* What prepares a node whose input holds codes, NULL where its elements are plain numbers; adds to *types the types
   of codes that its operator takes. */
tq_op_fn tq_unary_quantized_find(const tq_node *node, unsigned *types);

#endif
