/* SPDX-License-Identifier: Apache-2.0
 *
 * What CONV_2D and DEPTHWISE_CONV_2D share beside the product: strides, padding and the output's shape.
 */
#ifndef TQ_OPS_PRODUCTS_CONVOLUTION_H
#define TQ_OPS_PRODUCTS_CONVOLUTION_H

#include "ops/products/product.h"

typedef struct tq_convolution_options {
    int64_t padding;
    int32_t stride_h, stride_w, dilation_h, dilation_w;
} tq_convolution_options;

/* Fills the plan's scan, taps and rows, and gives output 0 its shape.  The filter is input 1, [., height, width, .]. */
tq_status tq_fit_convolution(tq_node *node, const tq_convolution_options *options, tq_product_plan *plan,
                             tq_error *error);

/* UINT8: the bias's scale is that of the product, to within 0.02 of the output's. */
tq_status tq_check_bias_scale(const tq_node *node, tq_error *error);

#endif
