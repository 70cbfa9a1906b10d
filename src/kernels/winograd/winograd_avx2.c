/* SPDX-License-Identifier: Apache-2.0
 *
 * The body in AVX2: transforms by shifts and additions, products by vpmaddwd.
 */
#include "kernels/winograd/winograd_parts.h"

#if TQ_X86
#include <string.h>

#include "kernels/simd_avx2.h"

#define TRANSFORMS_ISA avx2
#define add16 _mm256_add_epi16
#define sub16 _mm256_sub_epi16
#define shift16 _mm256_slli_epi16
#define shift32 _mm256_slli_epi32
#define half32 _mm256_srai_epi32
#define multiply32 _mm256_mullo_epi32

INLINE vi load_bytes(const void *p, size_t n, vi flips)
{
    (void)n;
    return _mm256_cvtepi8_epi16(_mm_xor_si128(_mm_loadu_si128(p), _mm256_castsi256_si128(flips)));
}

INLINE void store_16(int16_t *p, vi x, size_t n)
{
    (void)n;
    put(p, x, false);
}
#include "kernels/winograd/winograd_transforms_simd.h"

#define WINOGRAD_ISA avx2
#define ROWS 6
#define VECTOR_LANES 8
#define vector_t vi
#define zero_sums() splat_s32(0)
#define load_vector(p) load_s32((const int32_t *)(const void *)(p))
#define save_vector(p, x) _mm256_storeu_si256((__m256i *)(void *)(p), x)
#define splat_pair splat_s32
#define multiply(sums, weights, pair) add_s32(sums, _mm256_madd_epi16(weights, pair))
#include "kernels/winograd/winograd_simd.h"
#endif
