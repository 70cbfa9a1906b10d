/* SPDX-License-Identifier: Apache-2.0
 *
 * A transposed convolution by the matrix kernel.  Outputs whose coordinates are equal modulo the strides form a phase:
 * they use the same taps, every stride-th of the filter.  A phase is a convolution of stride 1 with these taps, last
 * first.  Sums run in the reference's order, by input pixel, then by channel; with TQ_GEMM_FUSED in XNNPACK's, by tap.
 * Neighbouring phases with float outputs that read the same inputs are one phase of more channels.
 */
#ifndef TQ_OPS_PRODUCTS_TRANSPOSE_CONV_GEMM_H
#define TQ_OPS_PRODUCTS_TRANSPOSE_CONV_GEMM_H

#include "kernels/gemm/gemm.h"
#include "ops/op.h"
#include "ops/products/hybrid.h"
#include "ops/products/window.h"

typedef struct tq_transpose_conv_phase tq_transpose_conv_phase;

typedef struct tq_transpose_conv_gemm {
    /* set before tq_transpose_conv_gemm_prepare */
    int input, bias; /* inputs of the node; it has no bias if it has no such input */
    const tq_window *y, *x; /* of the convolution from the output to the input */
    tq_gemm_weights weights; /* zero points and types; of constants: input 1, [o][kh][kw][c], and the bias */
    tq_element in;
    int flags; /* of tq_gemm_plan */
    tq_gemm_store store;
    tq_hybrid_rule rule; /* of floats by 8-bit weights in XNNPACK's order, where `in` is i8; else NULL */
    size_t batches, channels, out_channels;

    /* set by tq_transpose_conv_gemm_prepare */
    size_t count; /* of phases */
    tq_transpose_conv_phase *phases;
    uint64_t result_at, work_at, taps_at, biases_at; /* offsets in scratch */
    /* with a rule */
    uint64_t quantized_at, padding_at; /* offsets in scratch: of an image, and of a phase's padding */
    float *scales, *biases; /* of the output channels, repeated for each member of a phase; biases: NULL: none */
} tq_transpose_conv_gemm;

/* Whether every phase has a tap (stride <= filter), and there are at most 256 phases.  y, x: from tq_window_fit. */
bool tq_transpose_conv_gemm_fits(const tq_window *y, const tq_window *x);

/* Plans the phases; adds eval's scratch to *scratch, in bytes.  Requests node->prepacked, whose function `pack` must
   call tq_transpose_conv_gemm_pack.  tq_transpose_conv_gemm_fits holds; weights and bias are constant. */
tq_status tq_transpose_conv_gemm_prepare(tq_node *node, tq_transpose_conv_gemm *t, uint64_t *scratch, tq_pack_fn pack,
                                         tq_error *error);

/* Prepacks the weights of all phases in node->prepacked. */
void tq_transpose_conv_gemm_pack(const tq_node *node, const tq_transpose_conv_gemm *t);

/* Computes output 0; needs node->scratch and node->prepacked. */
void tq_transpose_conv_gemm_eval(const tq_node *node, const tq_transpose_conv_gemm *t);

#endif
