/* SPDX-License-Identifier: Apache-2.0
 *
 * A transposed convolution place by place: each output gathers what falls on it, in the order in which the reference
 * scatters it, by input cell, then by channel.  It takes what the matrix kernel (transposed.h) does not: weights or shapes
 * that are no constants, floats with int8 weights, strides beyond the filter.
 */
#ifndef TQ_OPS_PRODUCTS_TRANSPOSE_CONV_GATHER_H
#define TQ_OPS_PRODUCTS_TRANSPOSE_CONV_GATHER_H

#include "ops/op.h"
#include "ops/products/window.h"
#include "quant/rounding.h"

/* The inputs of TRANSPOSE_CONV. */
enum { TQ_DECONV_SHAPE, TQ_DECONV_WEIGHTS, TQ_DECONV_INPUT, TQ_DECONV_BIAS };

/* NULL: it has none. */
static inline const tq_tensor *tq_deconv_bias(const tq_node *node)
{
    return node->in_count > TQ_DECONV_BIAS ? node->in[TQ_DECONV_BIAS] : NULL;
}

/* Whose arithmetic it is; transpose_conv.c has the formulas. */
typedef enum tq_deconv_form {
    TQ_DECONV_FLOATS,
    TQ_DECONV_FUSED,        /* XNNPACK's floats: from the bias on, by tap */
    TQ_DECONV_HYBRID,       /* floats with weights of int8 */
    TQ_DECONV_HYBRID_CODES, /* the same as XNNPACK has it: sums are of codes */
    TQ_DECONV_CODES
} tq_deconv_form;

typedef struct tq_deconvolution {
    tq_window y, x; /* of the convolution that leads from the output to the input */
    size_t batches, channels, out_channels, taps;
    tq_deconv_form form;

    float low, high;
    int32_t low_code, high_code, zero_point;
    bool wide; /* acc of 64 bits */
    size_t chunk;
    bool has_rest; /* the elements after the last 16 have the rule DOUBLE */
    tq_multiplier *multipliers; /* one an output channel */

    /* tq_deconv_prepare's */
    bool constant; /* weights are kept */
    uint64_t packed_at, codes_at, images_at, sums_at; /* in scratch; constant weights' packed_at: kept */
    size_t tasks;  /* output rows are dealt to so many, each with sums of its own */
} tq_deconvolution;

/* Asks for memory and sets node->eval.  d: the first member of the node's state, filled but for what this sets. */
tq_status tq_deconv_prepare(tq_node *node, tq_deconvolution *d, tq_error *error);

/* The elements of uint8 codes after the last block of 16, by the rule DOUBLE, which the optimized kernel has for them. */
void tq_deconv_redo_rest(const tq_node *node, const tq_deconvolution *d);

#endif
