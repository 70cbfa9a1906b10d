/* SPDX-License-Identifier: Apache-2.0
 *
 * FULLY_CONNECTED of a FLOAT32 input with INT4 weights that have a scale for each block of columns.
 */
#ifndef TQ_OPS_PRODUCTS_BLOCKWISE_FULLY_CONNECTED_H
#define TQ_OPS_PRODUCTS_BLOCKWISE_FULLY_CONNECTED_H

#include "ops/op.h"

/* As tq_prepare_hybrid_rows, where the scales of input 1 are blockwise: `rows` rows of `columns` elements of input 0
   times the `units` rows of input 1; activation: TQ_ActivationFunctionType_x.  TQ_BAD_OPERATOR: invalid blocks or
   scales. */
tq_status tq_prepare_blockwise_rows(tq_node *node, size_t rows, size_t columns, size_t units, int64_t activation,
                                    tq_error *error);

#endif
