/* SPDX-License-Identifier: Apache-2.0
 *
 * The description of a product, which an operator fills in and product.c or plain_product.c runs.
 */
#ifndef TQ_OPS_PRODUCTS_PRODUCT_PLAN_H
#define TQ_OPS_PRODUCTS_PRODUCT_PLAN_H

#include "kernels/depthwise/depthwise.h"
#include "kernels/winograd/winograd.h"
#include "ops/op.h"

/* The product that an operator asks for. */
typedef struct tq_product_plan {
    size_t channels;             /* output channels of all groups */
    size_t groups;               /* of channels; each reads its own range of input channels */
    size_t taps;                 /* positions of the filter; 1: none */
    size_t depth;                /* input channels of a group */
    bool by_channel;             /* by kernels/depthwise; groups is 1 */
    size_t multiplier;           /* by_channel: output channels that read the same `depth` input channels */
    size_t channel_stride, k_stride; /* of weights: gemm.h */
    bool scans;                  /* `scan` is set: rows are output pixels */
    tq_scan scan;
    size_t rows;
    size_t row_stride;           /* elements of a row, or of an input pixel */
    int64_t activation;
    /* integers */
    tq_requantize_rule rule;
    size_t double_channels;  /* the last channels, so many, have the rule DOUBLE (tq_gemm_store.remainder) */
    bool wide;               /* int16 rows, 64-bit accumulators */
    bool product_in_f32;  /* the product of scales is rounded to float32 */
    bool ignores_zero_point; /* weights' zero points count as 0, as in TFLite */
    bool wraps_zero_points; /* those outside a type wrap to it, as in the matrix library of the optimized kernels */
} tq_product_plan;

/* The real multiplier of a channel's sums; 0 where the scales make none that is finite, as in TFLite on x86. */
double tq_product_multiplier(const tq_node *node, const tq_product_plan *plan, size_t channel);

#endif
