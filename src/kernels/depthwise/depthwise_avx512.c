/* SPDX-License-Identifier: Apache-2.0
 *
 * The avx512 rows of depthwise.def: 16 channels.
 */
#include <string.h>

#include "kernels/depthwise/depthwise_parts.h"

#if TQ_X86
#include "kernels/simd_avx512.h"

#include "kernels/gemm/gemm_vectors_avx512.h"

/* The channels of two taps, alternating. */

INLINE __m256i alternate(const void *a, const void *b)
{
    __m128i x = _mm_loadu_si128(a), y = _mm_loadu_si128(b);
    return _mm256_set_m128i(_mm_unpackhi_epi8(x, y), _mm_unpacklo_epi8(x, y));
}
INLINE vi pairs_i8(const void *a, const void *b)
{
    return _mm512_cvtepi8_epi16(alternate(a, b));
}
INLINE vi pairs_u8(const void *a, const void *b)
{
    return _mm512_cvtepu8_epi16(alternate(a, b));
}
INLINE vi pairs_i16(const void *a, const void *b)
{
    vi x = _mm512_cvtepu16_epi32(_mm256_loadu_si256(a)), y = _mm512_cvtepu16_epi32(_mm256_loadu_si256(b));
    return _mm512_or_si512(x, _mm512_slli_epi32(y, 16));
}
INLINE vi add_pairs(vi sums, vi pairs, vi weights)
{
    return _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, weights));
}

#define DEPTH_ISA avx512
#define DEPTH_STORES tq_stores__avx512

#define IN i8
#define DEPTH_LANES 16
#define DEPTH_GROUP 2
#define IN_BYTES 1
#define WEIGHT_BYTES 2
#define sums_t vi
#define weights_t vi
#define load_weights(p) _mm512_loadu_si512(p)
#define last_sums(sums, p) sums
#define first_sums(p) _mm512_loadu_si512(p)
#define save_sums save_s32
#define multiply(sums, a, b, weights) add_pairs(sums, pairs_i8(a, b), weights)
#include "kernels/depthwise/depthwise_simd.h"

#define IN u8
#define DEPTH_LANES 16
#define DEPTH_GROUP 2
#define IN_BYTES 1
#define WEIGHT_BYTES 2
#define sums_t vi
#define weights_t vi
#define load_weights(p) _mm512_loadu_si512(p)
#define last_sums(sums, p) sums
#define first_sums(p) _mm512_loadu_si512(p)
#define save_sums save_s32
#define multiply(sums, a, b, weights) add_pairs(sums, pairs_u8(a, b), weights)
#include "kernels/depthwise/depthwise_simd.h"

#define IN i16
#define DEPTH_LANES 16
#define DEPTH_GROUP 2
#define IN_BYTES 2
#define WEIGHT_BYTES 2
#define sums_t vi
#define weights_t vi
#define load_weights(p) _mm512_loadu_si512(p)
#define last_sums(sums, p) sums
#define first_sums(p) _mm512_loadu_si512(p)
#define save_sums save_s32
#define multiply(sums, a, b, weights) add_pairs(sums, pairs_i16(a, b), weights)
#include "kernels/depthwise/depthwise_simd.h"

#define IN f32
#define BAND_COLUMNS_FIRST false
#define DEPTH_LANES 16
#define DEPTH_GROUP 1
#define IN_BYTES 4
#define WEIGHT_BYTES 4
#define sums_t vf
#define weights_t vf
#define load_weights(p) _mm512_loadu_ps(p)
#define first_sums(p) splat_f32(0)
#define last_sums(sums, p) TQ_BOUNDED(_mm512_add_ps(sums, _mm512_loadu_ps(p)))
#define save_sums(p, x) _mm512_storeu_ps(p, x)
#define multiply(sums, a, b, weights) _mm512_add_ps(sums, _mm512_mul_ps(_mm512_loadu_ps(a), weights))
#include "kernels/depthwise/depthwise_simd.h"

#define IN f32_fused
#define BAND_COLUMNS_FIRST true
#define DEPTH_LANES 16
#define DEPTH_GROUP 1
#define IN_BYTES 4
#define WEIGHT_BYTES 4
#define sums_t vf
#define weights_t vf
#define load_weights(p) _mm512_loadu_ps(p)
#define last_sums(sums, p) TQ_BOUNDED(sums)
#define first_sums(p) _mm512_loadu_ps(p)
#define save_sums(p, x) _mm512_storeu_ps(p, x)
#define multiply(sums, a, b, weights) _mm512_fmadd_ps(_mm512_loadu_ps(a), weights, sums)
#include "kernels/depthwise/depthwise_simd.h"
#endif
