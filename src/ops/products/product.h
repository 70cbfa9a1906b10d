/* SPDX-License-Identifier: Apache-2.0
 *
 * What CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED have in common: rows times constant (or other) weights, a bias,
 * and a fused activation, by the kernels of kernels/gemm/gemm.h and kernels/depthwise/depthwise.h.
 *
 * Rules of codes are the operators'; XNNPACK has one for all: clamp(even(f32(f32(acc) * k)) + z_out), with
 * k = f32(f32(s_x * s_w) / s_out) (XNNPACK 75db3c09, src/qs8-qc8w-gemm, src/operators/convolution-nhwc.c).
 *
 * Inputs are 0 the rows, 1 the weights, 2 the bias (may be left out); output 0.
 */
#ifndef TQ_OPS_PRODUCTS_PRODUCT_H
#define TQ_OPS_PRODUCTS_PRODUCT_H

#include "kernels/depthwise/depthwise.h"
#include "ops/op.h"

/* The product that an operator wants. */
typedef struct tq_product_plan {
    size_t channels;             /* of the output, all groups */
    size_t groups;               /* of channels, each with its own part of the input's */
    size_t taps, depth;          /* depth: of a group's rows; 1 where by_channel */
    bool by_channel;             /* depthwise: output channel c reads input channel c / multiplier; groups is 1 */
    size_t multiplier;           /* where by_channel */
    size_t channel_stride, k_stride; /* of weights: gemm.h */
    bool scans;                  /* whether there is a scan: rows are output pixels */
    tq_scan scan;
    size_t rows;
    size_t row_stride;           /* elements of a row, or of an input pixel */
    int64_t activation;
    /* integers */
    tq_requantize_rule rule;
    size_t tail;             /* so many of the last channels have the rule DOUBLE: tq_gemm_store */
    bool wide;               /* int16 rows, sums of 64 bits */
    bool product_in_f32;  /* the product of scales is rounded to float32 */
    bool ignores_zero_point; /* weights' zero points count as 0, as in the runtime */
} tq_product_plan;

/* Rows, weights and output have types that go together (float32; int8 or uint8 codes; int16 rows with weights of one of
   the types `for_words`; of FULLY_CONNECTED also uint8 to int16), sound scales, and the bias has a type that goes with
   them and `channels` elements.  `axis`: of the weights, along which they may have many scales. */
tq_status tq_check_product(const tq_node *node, size_t channels, int axis, unsigned for_words, tq_error *error);

#define TQ_CODES_UP_TO_8 (TQ_T(INT8) | TQ_T(INT4) | TQ_T(INT2))

/* Whether sums need 64 bits: int16 rows, and neither the option quantized_bias_type nor the bias says INT32. */
tq_status tq_product_is_wide(const tq_node *node, int64_t quantized_bias_type, bool *wide, tq_error *error);

/* FULLY_CONNECTED of shuffled weights; plan: channels, depth and rows, fitted. */
tq_status tq_prepare_fully_connected_shuffled(tq_node *node, const tq_product_plan *plan, tq_error *error);

/* Packs what is constant, asks for scratch and sets node->eval.  Not with node->state, which it uses. */
tq_status tq_prepare_product(tq_node *node, const tq_product_plan *plan, tq_error *error);

#endif
