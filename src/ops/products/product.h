/* SPDX-License-Identifier: Apache-2.0
 *
 * The product of CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED: rows times weights, a bias, and a fused activation, by
 * the kernels of kernels/gemm/gemm.h and kernels/depthwise/depthwise.h.
 *
 * Each operator has its own requantize rule; XNNPACK has one for all: clamp(even(f32(f32(acc) * k)) + z_out), with
 * k = f32(f32(s_x * s_w) / s_out) (XNNPACK 75db3c09, src/qs8-qc8w-gemm, src/operators/convolution-nhwc.c).
 *
 * Input 0 has the rows, input 1 the weights, input 2, optional, the bias; output 0 the result.
 */
#ifndef TQ_OPS_PRODUCTS_PRODUCT_H
#define TQ_OPS_PRODUCTS_PRODUCT_H

#include "ops/products/product_plan.h"

/* Checks types of rows, weights and output (float32; int8 or uint8; int16 rows with weights of a type of the set
   `int16_weights`; for FULLY_CONNECTED also uint8 rows with int16 output), scales and zero points, and the bias: its
   type and `channels` elements.  axis: the dimension of input 1 that may have several scales.  TQ_BAD_OPERATOR. */
tq_status tq_check_product(const tq_node *node, size_t channels, int axis, unsigned int16_weights, tq_error *error);

#define TQ_SIGNED_UP_TO_8_BITS (TQ_T(INT8) | TQ_T(INT4) | TQ_T(INT2))

/* *wide: accumulators have 64 bits: for int16 rows, where neither the option quantized_bias_type (FLOAT32: none) nor
   the bias's type is INT32.  TQ_BAD_OPERATOR: the option is another type, or not the bias's. */
tq_status tq_product_is_wide(const tq_node *node, int64_t quantized_bias_type, bool *wide, tq_error *error);

/* The bits of each of input 1's values that XNNPACK inverts: it takes INT4 weights with several scales and zero point 8
   for unsigned ones, less 8.  0: none. */
uint8_t tq_weights_flip(const tq_node *node);

/* *rows: rows of FULLY_CONNECTED's input, each of the weights' columns; sets output 0's shape.  Input 1 has 2
   dimensions.  TQ_BAD_OPERATOR: the input has no whole number of rows, or 2^31 rows or more. */
tq_status tq_fully_connected_fit(tq_node *node, size_t *rows, tq_error *error);

/* Plans the kernel, requests memory for prepacked constants and scratch, and sets node->state and node->eval.  The plan
   is complete, and output 0 has its shape.  TQ_BAD_OPERATOR: a multiplier is not finite; errors of memory. */
tq_status tq_prepare_product(tq_node *node, const tq_product_plan *plan, tq_error *error);

#endif
