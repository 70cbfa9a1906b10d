/* SPDX-License-Identifier: Apache-2.0
 *
 * The avx2 rows of depthwise.def: 8 channels.
 */
#include <string.h>

#include "kernels/depthwise/depthwise_parts.h"

#if TQ_X86
#include "kernels/simd_avx2.h"

#include "kernels/gemm/gemm_vectors_avx2.h"

/* The channels of two taps, alternating. */

INLINE __m128i eight(const void *p)
{
    return _mm_loadl_epi64(p);
}
INLINE vi pairs_i8(const void *a, const void *b)
{
    return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(eight(a), eight(b)));
}
INLINE vi pairs_u8(const void *a, const void *b)
{
    return _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(eight(a), eight(b)));
}
INLINE vi pairs_i16(const void *a, const void *b)
{
    __m128i x = _mm_loadu_si128(a), y = _mm_loadu_si128(b);
    return _mm256_set_m128i(_mm_unpackhi_epi16(x, y), _mm_unpacklo_epi16(x, y));
}
INLINE vi add_pairs(vi sums, vi pairs, vi weights)
{
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, weights));
}

#define DEPTH_ISA avx2
#define DEPTH_STORES tq_stores__avx2

#define IN i8
#define DEPTH_LANES 8
#define DEPTH_GROUP 2
#define IN_BYTES 1
#define WEIGHT_BYTES 2
#define sums_t vi
#define weights_t vi
#define load_weights(p) load_s32((const int32_t *)(const void *)(p))
#define last_sums(sums, p) sums
#define first_sums(p) load_s32((const int32_t *)(p))
#define save_sums save_s32
#define multiply(sums, a, b, weights) add_pairs(sums, pairs_i8(a, b), weights)
#include "kernels/depthwise/depthwise_simd.h"

#define IN u8
#define DEPTH_LANES 8
#define DEPTH_GROUP 2
#define IN_BYTES 1
#define WEIGHT_BYTES 2
#define sums_t vi
#define weights_t vi
#define load_weights(p) load_s32((const int32_t *)(const void *)(p))
#define last_sums(sums, p) sums
#define first_sums(p) load_s32((const int32_t *)(p))
#define save_sums save_s32
#define multiply(sums, a, b, weights) add_pairs(sums, pairs_u8(a, b), weights)
#include "kernels/depthwise/depthwise_simd.h"

#define IN i16
#define DEPTH_LANES 8
#define DEPTH_GROUP 2
#define IN_BYTES 2
#define WEIGHT_BYTES 2
#define sums_t vi
#define weights_t vi
#define load_weights(p) load_s32((const int32_t *)(const void *)(p))
#define last_sums(sums, p) sums
#define first_sums(p) load_s32((const int32_t *)(p))
#define save_sums save_s32
#define multiply(sums, a, b, weights) add_pairs(sums, pairs_i16(a, b), weights)
#include "kernels/depthwise/depthwise_simd.h"

#define IN f32
#define DEPTH_LANES 8
#define DEPTH_GROUP 1
#define IN_BYTES 4
#define WEIGHT_BYTES 4
#define sums_t vf
#define weights_t vf
#define load_weights(p) load_f32((const float *)(const void *)(p))
#define first_sums(p) splat_f32(0)
#define last_sums(sums, p) TQ_BOUNDED(_mm256_add_ps(sums, load_f32((const float *)(p))))
#define save_sums(p, x) _mm256_storeu_ps((float *)(p), x)
#define multiply(sums, a, b, weights) _mm256_add_ps(sums, _mm256_mul_ps(load_f32((const float *)(a)), weights))
#include "kernels/depthwise/depthwise_simd.h"

#define IN f32_fused
#define DEPTH_LANES 8
#define DEPTH_GROUP 1
#define IN_BYTES 4
#define WEIGHT_BYTES 4
#define sums_t vf
#define weights_t vf
#define load_weights(p) load_f32((const float *)(const void *)(p))
#define last_sums(sums, p) TQ_BOUNDED(sums)
#define first_sums(p) load_f32((const float *)(p))
#define save_sums(p, x) _mm256_storeu_ps((float *)(p), x)
#define multiply(sums, a, b, weights) _mm256_fmadd_ps(load_f32((const float *)(a)), weights, sums)
#include "kernels/depthwise/depthwise_simd.h"
#endif
