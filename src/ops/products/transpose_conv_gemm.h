/* SPDX-License-Identifier: Apache-2.0
 *
 * A transposed convolution by the matrix kernel.  Outputs whose places leave the same rest when divided by the strides
 * meet the same taps, one every stride.  Such a set of outputs, a phase, is a convolution of stride 1 with those taps,
 * last first.  Sums run in the reference's order, by input cell, then by channel; with TQ_GEMM_FUSED in XNNPACK's, by tap.
 */
#ifndef TQ_OPS_PRODUCTS_TRANSPOSE_CONV_GEMM_H
#define TQ_OPS_PRODUCTS_TRANSPOSE_CONV_GEMM_H

#include "kernels/gemm/gemm.h"
#include "ops/op.h"
#include "ops/products/window.h"

typedef struct tq_transposed_phase tq_transposed_phase;

typedef struct tq_transposed {
    /* set before tq_transposed_prepare */
    const tq_window *y, *x; /* of the convolution that leads from the output to the input */
    tq_gemm_weights weights; /* zero points and types; of constants: input 1, [o][kh][kw][c], and the bias, input 3 */
    tq_element in;
    int flags; /* of tq_gemm_plan */
    tq_gemm_store store;
    size_t batches, channels, out_channels;

    size_t count; /* of phases */
    tq_transposed_phase *phases;
    uint64_t result_at, work_at, taps_at; /* in scratch */
} tq_transposed;

/* Every phase has a tap, and there are not too many phases. */
bool tq_transposed_fits(const tq_window *y, const tq_window *x);

/* Plans the phases; *scratch, the bytes so far, grows by what eval needs.  What the node keeps is theirs, and `pack`
   calls tq_transposed_pack. */
tq_status tq_transposed_prepare(tq_node *node, tq_transposed *t, uint64_t *scratch, tq_pack_fn pack, tq_error *error);
void tq_transposed_pack(const tq_node *node, const tq_transposed *t);
void tq_transposed_eval(const tq_node *node, const tq_transposed *t);

#endif
