/* SPDX-License-Identifier: Apache-2.0
 *
 * The avxvnni row of gemm.def: vpdpbusd on unsigned rows and 8 channels, as gemm_avx512vnni.c on 16.
 */
#include <string.h>

#include "kernels/gemm/products.h"

#if TQ_X86_AVXVNNI
#include "kernels/simd_avx2.h"
#undef TARGET
#define TARGET __attribute__((target("avxvnni,avx2,fma,f16c")))
#include "kernels/gemm/gemm_vectors_avx2.h"

#define GEMM_ISA avxvnni

INLINE vi load_few(const void *p, size_t n)
{
    return _mm256_set1_epi32((int32_t)tq_few_bytes(p, n));
}

static TARGET int32_t sum_bytes(const void *run, size_t n, uint8_t flip)
{
    const uint8_t *p = run;
    uint64_t sums[4], sum = 0;
    vi many = _mm256_setzero_si256();
    size_t k = 0;
    for (; k + 32 <= n; k += 32) {
        vi bytes = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(p + k)), _mm256_set1_epi8((char)flip));
        many = _mm256_add_epi64(many, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
    }
    for (; k < n; k++)
        sum += (uint8_t)(p[k] ^ flip);
    _mm256_storeu_si256((__m256i *)sums, many);
    return (int32_t)(uint32_t)(sum + sums[0] + sums[1] + sums[2] + sums[3]);
}

#define NAME gemm_i8
#define PANEL_LANES 8
#define GROUP 4
#define ROW_BYTES 1
#define WEIGHT_BYTES 1
#define ROWS 6
#define PANELS 2
#define WIDE 8
#define TALL 1
#define sums_t vi
#define weights_t vi
#define row_t vi
#define first_sums(p) load_s32((const int32_t *)(const void *)(p))
#define last_sums(sums, p) sums
#define save_sums save_s32
#define load_weights(p) _mm256_loadu_si256((const __m256i *)(p))
#define load_row(p, flip) _mm256_xor_si256(load_four(p), flip)
#define load_row_part(p, n, flip) _mm256_xor_si256(load_few(p, n), flip)
#define load_across(p, flip) _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(p)), flip)
#define flip_of(flip) _mm256_set1_epi8((char)(flip))
#define multiply(sums, weights, row) _mm256_dpbusd_avx_epi32(sums, row, weights)
#define PRODUCT_FIELDS .flip_i8 = 0x80, .flip_u8 = 0, .stores = &tq_stores__avx2, .row_sum = sum_bytes
#include "kernels/gemm/gemm_simd.h"
#endif
