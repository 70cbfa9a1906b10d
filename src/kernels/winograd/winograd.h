/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions of 8-bit values by 3 x 3 taps with stride 1, in a quarter of the products: Winograd's F(4 x 4, 3 x 3) in
 * integers, exact.
 *
 * A tile of 4 x 4 outputs reads 6 x 6 inputs X.  With W the 3 x 3 weights, and * elementwise,
 *
 *     576 outputs = A (G W G' * B X B') A'        36 products a tile and input channel in place of 144
 *
 *     B   4  0 -5  0  1  0     G   3  0  0     A   2  4  4  1  1  0
 *         0 -4 -4  1  1  0        -1 -1 -1         0  4 -4  2 -2  0
 *         0  4 -4 -1  1  0        -1  1 -1         0  4  4  4  4  0
 *         0 -2 -1  2  1  0         1  2  4         0  4 -4  8 -8  8
 *         0  2 -1 -2  1  0         1 -2  4
 *         0  4  0 -5  0  1         0  0  3
 *
 * (A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2015, with whole rows of G and A).  Values
 * and weights less their zero points are within 255.  The rows of B add to 10 at most, of G to 7, so that both
 * transforms fit int16: 100 * 255 and 49 * 255.  Products are summed modulo 2^32, and so is A: the sum is 576 times the
 * output modulo 2^32, and times 9^-1 modulo 2^32 it is 64 times the output.  64 |output| < 2^31 makes its shift by 6
 * exact: tq_winograd_pack bounds the output by the weights' magnitudes.
 *
 * A product takes 16 bits, in place of 8: an instruction of four products of bytes leaves a half of the gain, and an
 * instruction of two products of 16 bits that also adds (vpdpwssd) the other half.
 */
#ifndef TQ_KERNELS_WINOGRAD_H
#define TQ_KERNELS_WINOGRAD_H

#include "kernels/gemm/gemm.h"

typedef struct tq_winograd_body tq_winograd_body;
typedef struct tq_stores tq_stores;

/* A planned convolution.  Callers read packed_bytes. */
typedef struct tq_winograd {
    uint64_t packed_bytes;
    const tq_winograd_body *body; /* NULL: there is no plan */
    const tq_stores *stores;
    size_t channels, depth, panels, lanes; /* lanes: channels of a panel */
    /* set by tq_winograd_pack */
    const int16_t *weights; /* [panels][36][depth / 2][lanes][2] */
    const int32_t *bias;    /* [panels][lanes] */
    const void *padding;    /* a pixel of the rows' zero point */
    uint8_t flip;           /* exclusive-ored with the rows' bytes: int8 */
    int32_t zero_point;     /* of these */
} tq_winograd;

/* Plans the product of `gemm`, a planned product of 8-bit rows under this scan and with such constant weights, whose
   data are not read.  false, without a body: it must be run as a gemm, being of another form or too small to gain. */
bool tq_winograd_plan(tq_winograd *winograd, const tq_gemm *gemm, const tq_scan *scan, const tq_gemm_weights *weights);

/* Packs the weights into `memory`: packed_bytes bytes, aligned to 64, which outlive the product.  false: these weights'
   outputs may pass the bound, and the product must be run as a gemm. */
bool tq_winograd_pack(tq_winograd *winograd, const tq_gemm_weights *weights, void *memory);

/* As tq_gemm_scratch_bytes and tq_gemm_run; the store's out is i8 or u8. */
uint64_t tq_winograd_scratch_bytes(const tq_winograd *winograd, int threads);
void tq_winograd_run(const tq_winograd *winograd, const tq_gemm_rows *rows, const tq_gemm_store *store, void *out,
                     size_t out_stride, void *scratch, int threads);

/* Row i of the bodies, as tq_kernel_variant. */
bool tq_winograd_variant(size_t i, tq_variant *row);

#endif
