/* SPDX-License-Identifier: Apache-2.0
 *
 * The avx2 row of blockwise.def: vpmaddubsw of unsigned weights and signed rows.  A part's sums, of two products in
 * each of eight steps, are at most 8 * 2 * 15 * 128 = 30720 in magnitude and fit 16 bits.
 */
#include <string.h>

#include "kernels/blockwise/blockwise.h"

#if TQ_X86
#include "kernels/simd_avx2.h"

#define BLOCKWISE_ISA avx2
#define load_bytes(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))

INLINE vi multiply(vi part, vi weights, const void *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    part = _mm256_add_epi16(part, _mm256_maddubs_epi16(weights, _mm256_set1_epi32(four)));
    __asm__("" : "+x"(part)); /* gcc would order the additions anew, and keep all products in memory */
    return part;
}

INLINE vi end_part(vi acc, vi part)
{
    return _mm256_add_epi32(acc, _mm256_madd_epi16(part, _mm256_set1_epi16(1)));
}

/* ---- rows, for every x86 row of blockwise.def: vectors of a piece ---- */

/* The sums of each four values. */
INLINE vi sums_of_four(vi x)
{
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), x), _mm256_set1_epi16(1));
}

/* -8 times the sum of the two halves. */
INLINE __m128i offsets_of(vi sums)
{
    const __m128i both = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    return _mm_sub_epi32(_mm_setzero_si128(), _mm_slli_epi32(both, 3));
}

TARGET void tq_blockwise_order_plain(const tq_blockwise *plan, const int8_t *from, int8_t *to, int32_t *offsets)
{
    (void)to;
    for (size_t b = 0; b < plan->blocks; b++, offsets += TQ_BLOCKWISE_PARTS) {
        vi sums = splat_s32(0);
        for (size_t k = 0; k < plan->block; k += TQ_BLOCKWISE_PIECE, from += TQ_BLOCKWISE_PIECE)
            sums = add_s32(sums, sums_of_four(load_bytes(from)));
        const __m128i four = offsets_of(sums), two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
        offsets[0] = _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_srli_epi64(two, 32)));
    }
}

TARGET void tq_blockwise_order_fused(const tq_blockwise *plan, const int8_t *from, int8_t *to, int32_t *offsets)
{
    const vi order = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
    for (size_t b = 0; b < plan->blocks; b++, offsets += TQ_BLOCKWISE_PARTS) {
        vi sums = splat_s32(0);
        for (size_t k = 0; k < plan->block; k += TQ_BLOCKWISE_PIECE, from += TQ_BLOCKWISE_PIECE) {
            const vi steps = _mm256_shuffle_epi8(load_bytes(from), order);
            _mm256_storeu_si256((__m256i *)(void *)to, steps);
            to += TQ_BLOCKWISE_PIECE;
            sums = add_s32(sums, sums_of_four(steps));
        }
        _mm_storeu_si128((__m128i *)(void *)offsets, offsets_of(sums));
    }
}

#define low_bits(x) _mm256_and_si256(x, _mm256_set1_epi8(15))
#define high_bits(x) _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(15))
#define start_part(acc) splat_s32(0)
#define to_f32(x) _mm256_cvtepi32_ps(x)
#define add_f32(a, b) _mm256_add_ps(a, b)
#define sub_f32(a, b) _mm256_sub_ps(a, b)
#define clamp_or_low(x, low, high) _mm256_max_ps(_mm256_min_ps(high, x), low)
#define save_f32(p, x) _mm256_storeu_ps(p, x)
#include "kernels/blockwise/blockwise_simd.h"
#endif
