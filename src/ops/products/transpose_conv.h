/* SPDX-License-Identifier: Apache-2.0
 *
 * Transposed convolutions of float32 images in XNNPACK's order, for operators with a contract of their own.
 */
#ifndef TQ_OPS_PRODUCTS_TRANSPOSE_CONV_H
#define TQ_OPS_PRODUCTS_TRANSPOSE_CONV_H

#include "ops/op.h"
#include "ops/products/window.h"

/* Sets node->state and node->eval, and requests their memory.  The node's input `input` is x [n, h, w, c], input 1 the
   weights [o, kh, kw, c], input `bias` the bias [o]; output 0 has its shape.  y, x: of the convolution from the output
   to the input. */
tq_status tq_transpose_conv_prepare_fused(tq_node *node, int input, int bias, const tq_window *y, const tq_window *x,
                                          tq_error *error);

#endif
