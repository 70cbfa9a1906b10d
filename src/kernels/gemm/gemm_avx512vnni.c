/* SPDX-License-Identifier: Apache-2.0
 *
 * The avx512vnni rows of gemm.def: vpdpbusd on unsigned rows (128 is added to signed rows), and vpdpwssd.
 */
#include <string.h>

#include "kernels/gemm/products.h"

#if TQ_X86
#include "kernels/simd_avx512.h"
#undef TARGET
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))
#include "kernels/gemm/gemm_vectors_avx512.h"
#include "kernels/gemm/gemm_rows_simd.h"

#define GEMM_ISA avx512vnni

INLINE vi load_few(const void *p, size_t n)
{
    return _mm512_set1_epi32((int32_t)tq_few_bytes(p, n));
}

static TARGET int32_t sum_bytes(const void *run, size_t n, uint8_t flip)
{
    const uint8_t *p = run;
    const vi flips = _mm512_set1_epi8((char)flip);
    vi sums = _mm512_setzero_si512();
    size_t k = 0;
    for (; k + 64 <= n; k += 64)
        sums = _mm512_add_epi64(
            sums, _mm512_sad_epu8(_mm512_xor_si512(_mm512_loadu_si512(p + k), flips), _mm512_setzero_si512()));
    if (k < n) {
        __mmask64 some = ~(__mmask64)0 >> (64 - (n - k));
        vi last = _mm512_xor_si512(_mm512_maskz_loadu_epi8(some, p + k), flips);
        sums = _mm512_add_epi64(sums, _mm512_sad_epu8(_mm512_maskz_mov_epi8(some, last), _mm512_setzero_si512()));
    }
    return (int32_t)_mm512_reduce_add_epi64(sums);
}

#define NAME gemm_i8
#define PANEL_LANES 16
#define GROUP 4
#define ROW_BYTES 1
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
#define load_weights(p) _mm512_loadu_si512(p)
#define load_row(p, flip) _mm512_xor_si512(load_four(p), flip)
#define load_row_part(p, n, flip) _mm512_xor_si512(load_few(p, n), flip)
#define load_across(p, flip) _mm512_xor_si512(_mm512_loadu_si512(p), flip)
#define flip_of(flip) _mm512_set1_epi8((char)(flip))
#define multiply(sums, weights, row) _mm512_dpbusd_epi32(sums, row, weights)
#define PRODUCT_FIELDS .flip_i8 = 0x80, .flip_u8 = 0, .stores = &tq_stores__avx512, .row_sum = sum_bytes
#include "kernels/gemm/gemm_simd.h"

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
#define load_row_part(p, n, flip) load_few(p, 2)
#define load_across(p, flip) _mm512_loadu_si512(p)
#define flip_of(flip) splat_s32(flip)
#define multiply(sums, weights, row) _mm512_dpwssd_epi32(sums, weights, row)
#define PRODUCT_FIELDS \
    .stores = &tq_stores__avx512, .row_sum = gemm_sum_i16, .copy_i8 = gemm_copy_i8, .copy_u8 = gemm_copy_u8
#include "kernels/gemm/gemm_simd.h"
#endif
