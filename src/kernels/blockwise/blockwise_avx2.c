/* SPDX-License-Identifier: Apache-2.0
 *
 * The avx2 row of blockwise.def: vpmaddubsw of unsigned weights and signed rows, whose sums of two products, at most
 * 2 * 15 * 128 = 3840 in magnitude, fit 16 bits.
 */
#include <string.h>

#include "kernels/blockwise/blockwise.h"

#if TQ_X86
#include "kernels/simd_avx2.h"

#define BLOCKWISE_ISA avx2

INLINE vi multiply(vi acc, vi weights, const void *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    const vi pairs = _mm256_maddubs_epi16(weights, _mm256_set1_epi32(four));
    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

#define load_bytes(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define low_bits(x) _mm256_and_si256(x, _mm256_set1_epi8(15))
#define high_bits(x) _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(15))
#define to_f32(x) _mm256_cvtepi32_ps(x)
#define add_f32(a, b) _mm256_add_ps(a, b)
#define sub_f32(a, b) _mm256_sub_ps(a, b)
#define save_f32(p, x) _mm256_storeu_ps(p, x)
#include "kernels/blockwise/blockwise_simd.h"
#endif
