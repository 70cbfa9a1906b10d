/* SPDX-License-Identifier: Apache-2.0
 *
 * The body in AVX-512: products by vpmaddwd.
 */
#include <string.h>

#include "kernels/winograd/winograd_parts.h"

#if TQ_X86
#include "kernels/simd_avx512.h"

#define TRANSFORMS_ISA avx512
#define add16 _mm512_add_epi16
#define sub16 _mm512_sub_epi16
#define shift16 _mm512_slli_epi16
#define shift32 _mm512_slli_epi32
#define half32 _mm512_srai_epi32
#define multiply32 _mm512_mullo_epi32

INLINE __mmask32 first_of(size_t n)
{
    return n < 2 * LANES ? 0xFFFF : 0xFFFFFFFF;
}

INLINE vi load_bytes(const void *p, size_t n, vi flips)
{
    const __m256i bytes = _mm256_maskz_loadu_epi8(first_of(n), p);
    return _mm512_cvtepi8_epi16(_mm256_xor_si256(bytes, _mm512_castsi512_si256(flips)));
}

INLINE void store_16(int16_t *p, vi x, size_t n)
{
    _mm512_mask_storeu_epi16(p, first_of(n), x);
}
#include "kernels/winograd/winograd_transforms_simd.h"

#define WINOGRAD_ISA avx512
#define ROWS 12
#define VECTOR_LANES 16
#define vector_t vi
#define zero_sums() splat_s32(0)
#define load_vector(p) _mm512_loadu_si512(p)
#define save_vector(p, x) _mm512_storeu_si512(p, x)
#define splat_pair splat_s32
#define multiply(sums, weights, pair) _mm512_add_epi32(sums, _mm512_madd_epi16(weights, pair))
#include "kernels/winograd/winograd_simd.h"
#endif
