/* SPDX-License-Identifier: Apache-2.0
 *
 * The neon rows of gemm.def: SMLAL on 8 channels, floats on 4.
 */
#include <string.h>

#include "kernels/gemm/products.h"

#if TQ_ARM64
#include "kernels/simd_neon.h"
#include "kernels/gemm/gemm_vectors_neon.h"
#include "kernels/gemm/gemm_rows_simd.h"

#define GEMM_ISA neon

#define NAME gemm_i16
#define PANEL_LANES 8
#define GROUP 1
#define ROW_BYTES 2
#define WEIGHT_BYTES 1
#define ROWS 6
#define PANELS 2
#define WIDE 8
#define TALL 1
#define sums_t eight_sums
#define weights_t int16x8_t
#define row_t int16x8_t
#define first_sums(p) load_eight(p)
#define last_sums(sums, p) sums
#define save_sums save_eight
#define load_weights(p) vmovl_s8(vld1_s8((const int8_t *)(p)))
#define load_row(p, flip) vld1q_dup_s16((const int16_t *)(const void *)(p))
#define load_across(p, flip) vld1q_s16((const int16_t *)(const void *)(p))
#define flip_of(flip) vdupq_n_s16(flip)
#define multiply(sums, weights, row) multiply_eight(sums, weights, row)
#define PRODUCT_FIELDS \
    .stores = &tq_stores__neon, .row_sum = gemm_sum_i16, .copy_i8 = gemm_copy_i8, .copy_u8 = gemm_copy_u8
#include "kernels/gemm/gemm_simd.h"

#define NAME gemm_f32
#define PANEL_LANES 4
#define GROUP 1
#define ROW_BYTES 4
#define WEIGHT_BYTES 4
#define ROWS 6
#define PANELS 4
#define WIDE 8
#define TALL 2
#define sums_t vf
#define weights_t vf
#define row_t vf
#define first_sums(p) splat_f32(0)
#define last_sums(sums, p) TQ_BOUNDED(vaddq_f32(sums, vld1q_f32((const float *)(p))))
#define save_sums(p, x) vst1q_f32((float *)(p), x)
#define load_weights(p) vld1q_f32((const float *)(const void *)(p))
#define load_row(p, flip) vld1q_dup_f32((const float *)(const void *)(p))
#define flip_of(flip) splat_f32(flip)
#define multiply(sums, weights, row) vaddq_f32(sums, vmulq_f32(row, weights))
#define PRODUCT_FIELDS .stores = &tq_stores__neon
#include "kernels/gemm/gemm_simd.h"

#define NAME gemm_f32_fused
#define PANEL_LANES 4
#define GROUP 1
#define ROW_BYTES 4
#define WEIGHT_BYTES 4
#define ROWS 6
#define PANELS 4
#define WIDE 8
#define TALL 2
#define sums_t vf
#define weights_t vf
#define row_t vf
#define first_sums(p) vld1q_f32((const float *)(const void *)(p))
#define last_sums(sums, p) TQ_BOUNDED(sums)
#define save_sums(p, x) vst1q_f32((float *)(p), x)
#define load_weights(p) vld1q_f32((const float *)(const void *)(p))
#define load_row(p, flip) vld1q_dup_f32((const float *)(const void *)(p))
#define flip_of(flip) splat_f32(flip)
#define multiply(sums, weights, row) vfmaq_f32(sums, row, weights)
#define PRODUCT_FIELDS .stores = &tq_stores__neon
#include "kernels/gemm/gemm_simd.h"
#endif
