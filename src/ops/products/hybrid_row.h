/* SPDX-License-Identifier: Apache-2.0
 *
 * FULLY_CONNECTED of one float32 row with 4-bit weights that have one scale, or one for each unit: as
 * hybrid_fully_connected.c, but the weights take half of the memory, whose speed is that of one row.
 */
#ifndef TQ_OPS_PRODUCTS_HYBRID_ROW_H
#define TQ_OPS_PRODUCTS_HYBRID_ROW_H

#include "ops/op.h"
#include "ops/products/hybrid.h"

/* Whether this machine has vectors for it, and sums of `columns` products are exact as floats. */
bool tq_hybrid_row_suits(const tq_node *node, size_t columns);

/* Requests memory and sets node->eval.  Input 1: constant, INT4 or INT2, checked; rule: tq_hybrid_symmetric,
   tq_hybrid_asymmetric or tq_hybrid_even.  tq_hybrid_row_suits holds. */
tq_status tq_prepare_hybrid_row(tq_node *node, size_t columns, size_t units, int64_t activation, tq_hybrid_rule rule,
                                tq_error *error);

#endif
