/* SPDX-License-Identifier: Apache-2.0
 *
 * A transposed convolution, one output pixel after another.  Each pixel gathers its products in the order in which the
 * reference scatters them: by input pixel, then by channel.  For the cases that transpose_conv_gemm.h cannot compute:
 * weights or a shape that are not constant, the reference's float32 with int8 weights, strides greater than the filter.
 */
#ifndef TQ_OPS_PRODUCTS_TRANSPOSE_CONV_GATHER_H
#define TQ_OPS_PRODUCTS_TRANSPOSE_CONV_GATHER_H

#include "ops/op.h"
#include "ops/quantized.h"
#include "ops/products/window.h"
#include "quant/rounding.h"

enum { TQ_TRANSPOSE_CONV_WEIGHTS = 1 }; /* the input */

/* The zero point of weights or input, which the optimized kernels' matrix library cuts to 8 bits. */
static inline int32_t tq_transpose_conv_zero_point(const tq_node *node, int i)
{
    const bool is_cut = node->numerics == TQ_NUMERICS_OPTIMIZED && tq_element_bytes(node->in[i]->type) == 1;
    return is_cut ? tq_zero_point_cut(node->in[i]) : tq_zero_point_of(node->in[i]);
}

/* The arithmetic; transpose_conv.c has the formulas.  FUSED: XNNPACK's. */
typedef enum tq_transpose_conv_form {
    TQ_TRANSPOSE_CONV_FLOATS,
    TQ_TRANSPOSE_CONV_FUSED,        /* sums begin with the bias, and run by tap */
    TQ_TRANSPOSE_CONV_HYBRID,       /* float32 with int8 weights, float32 sums */
    TQ_TRANSPOSE_CONV_HYBRID_FUSED, /* float32 with int8 weights, int32 sums */
    TQ_TRANSPOSE_CONV_QUANTIZED
} tq_transpose_conv_form;

typedef struct tq_transpose_conv {
    int input, bias; /* inputs of the node; it has no bias if it has no such input */
    tq_window y, x; /* of the convolution from the output to the input */
    size_t batches, channels, out_channels, taps;
    tq_transpose_conv_form form;

    float low, high; /* of the fused activation */
    int32_t low_q, high_q, zero_point;
    int32_t weights_zero_point; /* 0 but for uint8 */
    bool wide;    /* 64-bit accumulator */
    size_t chunk; /* of tq_dot_i16 */
    bool has_remainder; /* the elements after the last whole block of 16 have the rule DOUBLE */
    tq_multiplier *multipliers; /* [out_channels]; NULL: the output is float32 */

    /* set by tq_transpose_conv_gather_prepare */
    bool constant; /* weights are constant, and prepacked in node->prepacked */
    /* offsets in node->scratch; packed_at of constant weights: in node->prepacked */
    uint64_t packed_at, quantized_at, differences_at, images_at, sums_at;
    size_t tasks;  /* task t computes output rows t, t + tasks, ...; each task has its own sums */
} tq_transpose_conv;

/* The bias; NULL: none. */
static inline const tq_tensor *tq_transpose_conv_bias(const tq_node *node, const tq_transpose_conv *conv)
{
    return conv->bias < node->in_count ? node->in[conv->bias] : NULL;
}

/* Requests memory and sets node->eval.  conv: the first member of the node's state; the caller has set all fields above
   the line "set by". */
tq_status tq_transpose_conv_gather_prepare(tq_node *node, tq_transpose_conv *conv, tq_error *error);

/* Recomputes the uint8 output elements after the last whole block of 16 with the rule DOUBLE, as the optimized kernel
   has them. */
void tq_transpose_conv_gather_redo_remainder(const tq_node *node, const tq_transpose_conv *conv);

#endif
