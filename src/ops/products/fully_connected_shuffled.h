/* SPDX-License-Identifier: Apache-2.0
 *
 * FULLY_CONNECTED with weights in the layout SHUFFLED4x16INT8.
 */
#ifndef TQ_OPS_PRODUCTS_FULLY_CONNECTED_SHUFFLED_H
#define TQ_OPS_PRODUCTS_FULLY_CONNECTED_SHUFFLED_H

#include "ops/products/product.h"

/* Prepares the node; tq_prepare_fully_connected calls it.  plan: channels, depth and rows are set.  TQ_BAD_OPERATOR. */
tq_status tq_prepare_fully_connected_shuffled(tq_node *node, const tq_product_plan *plan, tq_error *error);

#endif
