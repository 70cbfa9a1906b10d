/* SPDX-License-Identifier: Apache-2.0
 *
 * FULLY_CONNECTED of a FLOAT32 input with INT8, UINT8, INT4 or INT2 weights.
 */
#ifndef TQ_OPS_PRODUCTS_HYBRID_FULLY_CONNECTED_H
#define TQ_OPS_PRODUCTS_HYBRID_FULLY_CONNECTED_H

#include "ops/op.h"

/* Prepares the node; tq_prepare_fully_connected calls it.  TQ_BAD_OPERATOR. */
tq_status tq_prepare_fully_connected_hybrid(tq_node *node, tq_error *error);

/* For FULLY_CONNECTED and operators with its arithmetic: `rows` rows of `cols` elements of input 0, each quantized
   separately, times the `units` rows of input 1; activation: TQ_ActivationFunctionType_x; asymmetric: how rows are
   quantized (tq_hybrid_rule_of).  Inputs 0 to 2 have valid types and sizes, and output 0 has its shape.
   TQ_BAD_OPERATOR: invalid scales. */
tq_status tq_prepare_hybrid_rows(tq_node *node, size_t rows, size_t cols, size_t units, int64_t activation,
                                 bool asymmetric, tq_error *error);

#endif
