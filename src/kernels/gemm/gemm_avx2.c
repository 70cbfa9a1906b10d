/* SPDX-License-Identifier: Apache-2.0
 *
 * The avx2 rows of gemm.def: vpmaddwd and floats on 8 channels.
 */
#include <string.h>

#include "kernels/gemm/products.h"

#if TQ_X86
#include "kernels/simd_avx2.h"
#include "kernels/gemm/gemm_vectors_avx2.h"
#include "kernels/gemm/gemm_rows_simd.h"

#define GEMM_ISA avx2

#define NAME gemm_i16
#define PANEL_LANES 8
#define GROUP 2
#define ROW_BYTES 2
#define WEIGHT_BYTES 1
#define ROWS 6
#define PANELS 2
#define WIDE 4 /* eight panels whose bytes are a multiple of 1024 would displace one another in the cache */
#define TALL 1
#define sums_t vi
#define weights_t vi
#define row_t vi
#define last_sums(sums, p) sums
#define first_sums(p) load_s32((const int32_t *)(p))
#define save_sums save_s32
#define load_weights load_weights_i16
#define load_row(p, flip) load_four(p)
#define load_row_part(p, n, flip) load_two(p)
#define load_across(p, flip) _mm256_loadu_si256((const __m256i *)(p))
#define flip_of(flip) splat_s32(flip)
#define multiply(sums, weights, row) _mm256_add_epi32(sums, _mm256_madd_epi16(weights, row))
#define PRODUCT_FIELDS \
    .stores = &tq_stores__avx2, .row_sum = gemm_sum_i16, .copy_i8 = gemm_copy_i8, .copy_u8 = gemm_copy_u8
#include "kernels/gemm/gemm_simd.h"

#define NAME gemm_f32
#define PANEL_LANES 8
#define GROUP 1
#define ROW_BYTES 4
#define WEIGHT_BYTES 4
#define ROWS 6
#define PANELS 2
#define WIDE 8
#define TALL 1
#define sums_t vf
#define weights_t vf
#define row_t vf
#define first_sums(p) splat_f32(0)
#define last_sums(sums, p) TQ_BOUNDED(_mm256_add_ps(sums, load_f32((const float *)(p))))
#define save_sums(p, x) _mm256_storeu_ps((float *)(p), x)
#define load_weights(p) load_f32((const float *)(p))
#define load_row(p, flip) load_splat(p)
#define flip_of(flip) splat_f32(flip)
#define multiply(sums, weights, row) _mm256_add_ps(sums, _mm256_mul_ps(row, weights))
#define LONG_RUN 64
#define PRODUCT_FIELDS .stores = &tq_stores__avx2
#include "kernels/gemm/gemm_simd.h"

#define NAME gemm_f32_fused
#define PANEL_LANES 8
#define GROUP 1
#define ROW_BYTES 4
#define WEIGHT_BYTES 4
#define ROWS 6
#define PANELS 2
#define WIDE 8
#define TALL 1
#define sums_t vf
#define weights_t vf
#define row_t vf
#define last_sums(sums, p) TQ_BOUNDED(sums)
#define first_sums(p) load_f32((const float *)(p))
#define save_sums(p, x) _mm256_storeu_ps((float *)(p), x)
#define load_weights(p) load_f32((const float *)(p))
#define load_row(p, flip) load_splat(p)
#define flip_of(flip) splat_f32(flip)
#define multiply(sums, weights, row) _mm256_fmadd_ps(row, weights, sums)
#define LONG_RUN 64
#define PRODUCT_FIELDS .stores = &tq_stores__avx2
#include "kernels/gemm/gemm_simd.h"
#endif
