/* SPDX-License-Identifier: Apache-2.0
 *
 * A product as a plain loop, for zero points outside their types.
 */
#ifndef TQ_OPS_PRODUCTS_PLAIN_PRODUCT_H
#define TQ_OPS_PRODUCTS_PLAIN_PRODUCT_H

#include "ops/products/product_plan.h"

/* Whether a zero point lies outside its type, and no kernel can hold it. */
bool tq_product_is_plain(const tq_node *node, const tq_product_plan *plan);

/* tq_prepare_product for such nodes. */
tq_status tq_prepare_plain_product(tq_node *node, const tq_product_plan *plan, tq_error *error);

#endif
