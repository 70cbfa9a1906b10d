/* SPDX-License-Identifier: Apache-2.0
 *
 * DEPTHWISE_CONV_2D of a FLOAT32 input with an INT8 filter.
 */
#ifndef TQ_OPS_PRODUCTS_HYBRID_DEPTHWISE_CONV_2D_H
#define TQ_OPS_PRODUCTS_HYBRID_DEPTHWISE_CONV_2D_H

#include "ops/op.h"

/* Prepares the node; tq_prepare_depthwise_conv_2d calls it.  TQ_BAD_OPERATOR. */
tq_status tq_prepare_depthwise_hybrid(tq_node *node, tq_error *error);

#endif
