/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions of each channel by itself.
 *
 *     sum[r][c] = bias[c] + over taps t of (pixel[r][t][c / multiplier] - row zero point) *
 *                                          (weight[t][c] - weight zero point)
 *
 * Arithmetic, stores and scans are those of gemm.h.
 */
#ifndef TQ_KERNELS_DEPTHWISE_H
#define TQ_KERNELS_DEPTHWISE_H

#include "kernels/gemm/gemm.h"

typedef struct tq_depthwise_kernel tq_depthwise_kernel;

typedef struct tq_depthwise {
    uint64_t packed_bytes;
    const tq_depthwise_kernel *kernel;
    tq_element in;
    size_t channels, multiplier, taps; /* channels: of the output, a multiple of multiplier */
    bool wide, fused, non_finite;
    const void *weights, *bias, *padding;
    int32_t row_zero_point;
} tq_depthwise;

tq_status tq_depthwise_plan(tq_depthwise *depthwise, tq_element in, size_t channels, size_t multiplier, size_t taps,
                            int flags, tq_error *error);

/* weights: as in gemm.h, element (t, c) at t * k_stride + c * channel_stride; taps in the scan's order. */
void tq_depthwise_pack(tq_depthwise *depthwise, const tq_gemm_weights *weights, void *memory);

/* pixels: of the input, all images. */
uint64_t tq_depthwise_scratch_bytes(const tq_depthwise *depthwise, size_t pixels, int threads);

/* rows: output pixels; rows->scan must be there, and rows->stride be channels / multiplier. */
void tq_depthwise_run(const tq_depthwise *depthwise, const tq_gemm_rows *rows, const tq_gemm_store *store, void *out,
                      size_t out_stride, void *scratch, int threads);

/* Row i of depthwise.def, as tq_kernel_variant; chosen: for weights of 8 bits. */
bool tq_depthwise_variant(size_t i, tq_variant *row);

#endif
