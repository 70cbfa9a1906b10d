/* SPDX-License-Identifier: Apache-2.0
 *
 * The avx512vbmi rows of depthwise.def: four taps of 16 channels, interleaved by one vpermb, and vpdpbusd, for which
 * 128 is added to signed elements.  It needs AVX-512 VNNI too.
 */
#include <string.h>

#include "kernels/depthwise/depthwise_parts.h"

#if TQ_X86
#include "kernels/simd_avx512.h"
#undef TARGET
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512vbmi,avx2,fma,f16c")))
#include "kernels/gemm/gemm_vectors_avx512.h"

/* Byte 16 t + c of four taps to byte 4 c + t. */
INLINE vi channel_order(void)
{
    const vi first = _mm512_set1_epi32(0x30201000);
    const vi channel = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_add_epi32(first, _mm512_mullo_epi32(channel, _mm512_set1_epi32(0x01010101)));
}

INLINE vi four_taps(const char *const tap[4], size_t at)
{
    const vi order = channel_order();
    __m256i low = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(tap[0] + at)));
    __m256i high = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(tap[2] + at)));
    low = _mm256_inserti128_si256(low, _mm_loadu_si128((const __m128i *)(tap[1] + at)), 1);
    high = _mm256_inserti128_si256(high, _mm_loadu_si128((const __m128i *)(tap[3] + at)), 1);
    vi both = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    return _mm512_xor_si512(_mm512_permutexvar_epi8(order, both), _mm512_set1_epi8((char)0x80));
}

/* n = 16 bytes, or fewer. */
INLINE __m128i load_bytes(const char *p, size_t n)
{
    return n == 16 ? _mm_loadu_si128((const __m128i *)p) : _mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1), p);
}

/* n columns of four rows: byte 16 k + i to byte 4 i + k. */
INLINE vi four_rows(const char *const row[4], const size_t step[4], size_t at, size_t n, vi order, vi flips)
{
    __m256i low = _mm256_castsi128_si256(load_bytes(row[0] + at * step[0], n));
    __m256i high = _mm256_castsi128_si256(load_bytes(row[2] + at * step[2], n));
    low = _mm256_inserti128_si256(low, load_bytes(row[1] + at * step[1], n), 1);
    high = _mm256_inserti128_si256(high, load_bytes(row[3] + at * step[3], n), 1);
    vi both = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    return _mm512_xor_si512(_mm512_permutexvar_epi8(order, both), flips);
}

static TARGET void interleave(const char *const row[4], const size_t step[4], size_t n, uint8_t flip, char *to)
{
    const vi order = channel_order(), flips = _mm512_set1_epi8((char)flip);
    const char *const rows[4] = {row[0], row[1], row[2], row[3]}; /* `to` might alias row */
    const size_t steps[4] = {step[0], step[1], step[2], step[3]};
    size_t i = 0;
    if (step[0] & step[1] & step[2] & step[3]) /* constant steps are faster */
        for (const size_t one[4] = {1, 1, 1, 1}; i + 16 <= n; i += 16, to += 64)
            _mm512_storeu_si512(to, four_rows(rows, one, i, 16, order, flips));
    for (; i + 16 <= n; i += 16, to += 64)
        _mm512_storeu_si512(to, four_rows(rows, steps, i, 16, order, flips));
    if (i < n)
        _mm512_storeu_si512(to, four_rows(rows, steps, i, n - i, order, flips));
}

#define DEPTH_ISA avx512vbmi
#define U8_TILES avx512
#define DEPTH_STORES tq_stores__avx512
#define DOT_LANES 16
#define load_vector(p) _mm512_loadu_si512(p)
#define dot(sums, bytes, weights) _mm512_dpbusd_epi32(sums, bytes, weights)
#define weights_t vi
#define load_weights(p, parts) load_vector(p)
#define PARTS_AT_ONCE(parts) 1
#include "kernels/depthwise/depthwise_columns_simd.h"
#include "kernels/depthwise/depthwise_dot_simd.h"
#endif
