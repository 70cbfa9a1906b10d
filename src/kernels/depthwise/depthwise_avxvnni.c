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

INLINE void save_four(char *to, __m128i low, __m128i high)
{
    _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi16(low, high));
    _mm_storeu_si128((__m128i *)(to + 16), _mm_unpackhi_epi16(low, high));
}

/* 16 columns of four rows: byte i of row k to byte 4 i + k. */
INLINE void sixteen_columns(const char *const row[4], const size_t step[4], size_t at, __m128i flips, char *to)
{
    __m128i x[4];
    for (int k = 0; k < 4; k++)
        x[k] = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(row[k] + at * step[k])), flips);
    save_four(to, _mm_unpacklo_epi8(x[0], x[1]), _mm_unpacklo_epi8(x[2], x[3]));
    save_four(to + 32, _mm_unpackhi_epi8(x[0], x[1]), _mm_unpackhi_epi8(x[2], x[3]));
}

static TARGET void interleave(const char *const row[4], const size_t step[4], size_t n, uint8_t flip, char *to)
{
    const __m128i flips = _mm_set1_epi8((char)flip);
    const char *const rows[4] = {row[0], row[1], row[2], row[3]}; /* `to` might alias row */
    const size_t steps[4] = {step[0], step[1], step[2], step[3]};
    size_t i = 0;
    for (; i + 16 <= n; i += 16, to += 64)
        sixteen_columns(rows, steps, i, flips, to);
    if (i == n)
        return;
    char last[4][16] = {{0}};
    for (int k = 0; k < 4; k++)
        memcpy(last[k], rows[k] + i * steps[k], n - i);
    sixteen_columns((const char *const[4]){last[0], last[1], last[2], last[3]}, steps, 0, flips, to);
}

#define DOT_LANES 8
#define load_vector(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define dot(sums, bytes, weights) _mm256_dpbusd_avx_epi32(sums, bytes, weights)
#include "kernels/depthwise/depthwise_dot_simd.h"

const tq_depthwise_kernel tq_depthwise_i8__avxvnni = {
    .isa = "avxvnni",
    .lanes = 8,
    .group = 4,
    .weight_bytes = 1,
    .flip = 0x80,
    .tile = tile,
    .columns = columns,
    .interleave = interleave,
    .stores = &tq_stores__avx2,
};

/* Weights of 9 bits: two parts by columns, and AVX2's tiles. */
static void tile_u8(const tq_depthwise_tile *t)
{
    tq_depthwise_u8__avx2.tile(t);
}

const tq_depthwise_kernel tq_depthwise_u8__avxvnni = {
    .isa = "avxvnni",
    .lanes = 8,
    .group = 2,
    .weight_bytes = 2,
    .tile = tile_u8,
    .columns = columns,
    .interleave = interleave,
    .stores = &tq_stores__avx2,
};
#endif
