/* SPDX-License-Identifier: Apache-2.0
 *
 * Strides, padding and output shape of CONV_2D and DEPTHWISE_CONV_2D.
 */
#ifndef TQ_OPS_PRODUCTS_CONVOLUTION_H
#define TQ_OPS_PRODUCTS_CONVOLUTION_H

#include "ops/products/product.h"
#include "ops/products/window.h"

/* The options of the operator, unchecked. */
typedef struct tq_convolution_options {
    int64_t padding; /* TQ_Padding_x */
    int32_t stride_h, stride_w, dilation_h, dilation_w;
} tq_convolution_options;

/* The geometry of a convolution whose two dimensions tq_window_fit has checked.  An image of one column lies in memory
   as one row does: kernels compute the pixels of a row at once. */
tq_scan tq_scan_of(const tq_window *down, const tq_window *right);

/* Sets scan, taps, rows and row_stride of the plan, and output 0's shape.  Input 0 has the shape [n, h, w, c], input 1,
   the filter, [., height, width, .]; plan->channels is set.  TQ_BAD_OPERATOR: h or w is 0, or an option, the filter or
   the output's size is out of range (tq_window_fit). */
tq_status tq_convolution_fit(tq_node *node, const tq_convolution_options *options, tq_product_plan *plan,
                             tq_error *error);

/* TFLite's condition for UINT8: the bias's scale differs from input scale * weight scale by at most 0.02 of the
   output's scale; else TQ_BAD_OPERATOR.  No bias: TQ_OK. */
tq_status tq_check_bias_scale(const tq_node *node, tq_error *error);

#endif
