/* SPDX-License-Identifier: Apache-2.0
 *
 * The avxvnni rows of depthwise.def: four taps of 8 channels and vpdpbusd, for which 128 is added to signed elements.
 */
#include <string.h>

#include "kernels/depthwise/depthwise_parts.h"

#if TQ_X86_AVXVNNI
#include "kernels/simd_avx2.h"
#undef TARGET
#define TARGET __attribute__((target("avxvnni,avx2,fma,f16c")))
#include "kernels/gemm/gemm_vectors_avx2.h"

INLINE __m128i flipped_eight(const char *p)
{
    return _mm_xor_si128(_mm_loadl_epi64((const __m128i *)p), _mm_set1_epi8((char)0x80));
}

/* Byte c of tap t to byte 4 c + t. */
INLINE vi four_taps(const char *const tap[4], size_t at)
{
    const __m128i low = _mm_unpacklo_epi8(flipped_eight(tap[0] + at), flipped_eight(tap[1] + at));
    const __m128i high = _mm_unpacklo_epi8(flipped_eight(tap[2] + at), flipped_eight(tap[3] + at));
    return _mm256_set_m128i(_mm_unpackhi_epi16(low, high), _mm_unpacklo_epi16(low, high));
}

#include "kernels/depthwise/depthwise_interleave_avx2.h"

#define DEPTH_ISA avxvnni
#define U8_TILES avx2
#define DEPTH_STORES tq_stores__avx2
#define DOT_LANES 8
#define load_vector(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define dot(sums, bytes, weights) _mm256_dpbusd_avx_epi32(sums, bytes, weights)
#define weights_t vi
#define load_weights(p, parts) load_vector(p)
#define PARTS_AT_ONCE(parts) 1
#include "kernels/depthwise/depthwise_columns_simd.h"
#include "kernels/depthwise/depthwise_dot_simd.h"
#endif
