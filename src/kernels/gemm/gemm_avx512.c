/* SPDX-License-Identifier: Apache-2.0
 *
 * The avx512 rows of gemm.def: vpmaddwd and floats on 16 channels.
 */
#include <string.h>

#include "kernels/gemm/products.h"

#if TQ_X86
/* By the costs of other processors gcc keeps pointers in vector registers. */
#define TUNE ",tune=skylake"
#include "kernels/simd_avx512.h"
#include "kernels/gemm/gemm_vectors_avx512.h"
#include "kernels/gemm/gemm_rows_simd.h"

#define GEMM_ISA avx512

#define NAME gemm_i16
#define PANEL_LANES 16
#define GROUP 2
#define ROW_BYTES 2
#define WEIGHT_BYTES 1
#define ROWS 6
#define PANELS 4
#define WIDE 8
#define TALL 2
#define sums_t vi
#define weights_t vi
#define row_t vi
#define last_sums(sums, p) sums
#define first_sums(p) _mm512_loadu_si512(p)
#define save_sums save_s32
#define load_weights load_weights_i16
#define load_row(p, flip) load_four(p)
#define load_row_part(p, n, flip) load_two(p)
#define load_across(p, flip) _mm512_loadu_si512(p)
#define flip_of(flip) splat_s32(flip)
#define multiply(sums, weights, row) _mm512_add_epi32(sums, _mm512_madd_epi16(weights, row))
#define PRODUCT_FIELDS \
    .stores = &tq_stores__avx512, .row_sum = gemm_sum_i16, .copy_i8 = gemm_copy_i8, .copy_u8 = gemm_copy_u8
#include "kernels/gemm/gemm_simd.h"

/* A broadcast to 512 bits takes time of the pipes that add and multiply (Zen 4); an operand in memory takes a load
   alone.  Two rows in six have a register all the same: a tile of 6 x 4 then has 22 loads and 48 operations, and
   processors begin two and four a cycle.  Fused products, of half as many operations, leave such a pipe free.  Tiles of
   two rows are bound by loads.  Such processors also add a half in half the time; those
   with AVX-VNNI beside AVX-512 do not. */
#define NAME gemm_f32
#define PANEL_LANES 16
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
#define last_sums(sums, p) TQ_BOUNDED(_mm512_add_ps(sums, _mm512_loadu_ps(p)))
#define save_sums(p, x) _mm512_storeu_ps(p, x)
#define load_weights(p) _mm512_loadu_ps(p)
#define load_row(p, flip) load_splat(p)
#define flip_of(flip) splat_f32(flip)
#define multiply(sums, weights, row) _mm512_add_ps(sums, _mm512_mul_ps(row, weights))
#define HALVES 1
#define EVEN 12
#define last_even(sums, p) TQ_BOUNDED(_mm512_fmadd_ps(sums, splat_f32(1), _mm512_loadu_ps(p)))
#define first_product(sums, weights, row) _mm512_mul_ps(row, weights)
#define multiply_half(sums, weights, row) add_low(sums, mul_low(row, weights))
#define reads_memory(r, rows, half) ((rows) > 2 && (r) % 3 != 0)
#define multiply_at(sums, weights, p, half) \
    ((half) ? add_low(sums, mul_low_at(weights, p)) : _mm512_add_ps(sums, mul_at(weights, p)))
#define PRODUCT_FIELDS .stores = &tq_stores__avx512
#include "kernels/gemm/gemm_simd.h"

#define NAME gemm_f32_fused
#define PANEL_LANES 16
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
#define last_sums(sums, p) TQ_BOUNDED(sums)
#define first_sums(p) _mm512_loadu_ps(p)
#define save_sums(p, x) _mm512_storeu_ps(p, x)
#define load_weights(p) _mm512_loadu_ps(p)
#define load_row(p, flip) load_splat(p)
#define flip_of(flip) splat_f32(flip)
#define multiply(sums, weights, row) _mm512_fmadd_ps(row, weights, sums)
#define HALVES 1
#define EVEN 6
#define last_even(sums, p) TQ_BOUNDED(sums)
#define multiply_half(sums, weights, row) fmadd_low(row, weights, sums)
#define reads_memory(r, rows, half) ((half) && (r) % 6 != 0)
#define multiply_at(sums, weights, p, half) ((half) ? fmadd_low_at(weights, p, sums) : fmadd_at(weights, p, sums))
#define PRODUCT_FIELDS .stores = &tq_stores__avx512
#include "kernels/gemm/gemm_simd.h"
#endif
