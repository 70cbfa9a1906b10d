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

/* ---- 3 x 3 taps with stride 1 ----
   Neighbours share two of three columns of pixels: up to 4 outputs are computed from as many and 2 more columns, each
   read once.  A vector has 16 channels, whose sums stand in two: of channels 0 to 3 and 8 to 11, and of the others. */

enum { SLIDE = 4, COLUMN_ROWS = 3 };

INLINE vi sixteen(const char *p, const tq_element in)
{
    return in == TQ_i8   ? _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p))
           : in == TQ_u8 ? _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p))
                         : load_s32((const int32_t *)(const void *)p);
}

/* Two vectors of 8 channels in the order of the sums, and back. */
INLINE void swap_middle(vi *low, vi *high)
{
    const vi first = _mm256_permute2x128_si256(*low, *high, 0x20);
    *high = _mm256_permute2x128_si256(*low, *high, 0x31);
    *low = first;
}

/* The weights of pairs of taps: each column's upper two, the lowest row's first two, and its last with nothing. */
INLINE void load_filter(const tq_depthwise_tile *t, size_t at, vi w[5][2])
{
    enum { PAIRS = 5, PAIR_BYTES = 32 };
    vi taps[PAIRS][2]; /* 2g and 2g + 1 */
    for (int g = 0; g < PAIRS; g++) {
        for (size_t v = 0; v < 2; v++)
            taps[g][v] =
                load_s32((const int32_t *)(const void *)(t->weights + (at + v) * t->vector_bytes + g * PAIR_BYTES));
        swap_middle(&taps[g][0], &taps[g][1]);
    }
    for (int v = 0; v < 2; v++) {
        w[0][v] = _mm256_blend_epi16(taps[0][v], taps[1][v], 0xAA);
        w[1][v] = _mm256_blend_epi16(_mm256_srli_epi32(taps[0][v], 16), _mm256_slli_epi32(taps[2][v], 16), 0xAA);
        w[2][v] = _mm256_blend_epi16(taps[1][v], taps[2][v], 0xAA);
        w[3][v] = taps[3][v];
        w[4][v] = _mm256_slli_epi32(taps[4][v], 16);
    }
}

/* n neighbours from row r on, channels of the vectors `at` and `at` + 1. */
INLINE void slide(const tq_depthwise_tile *t, size_t r, const int n, size_t at, const vi w[5][2], const tq_element in)
{
    const size_t offset = t->offset + at * LANES * (in == TQ_i16 ? 2 : 1);
    const int32_t *bias = (const int32_t *)t->bias + at * LANES;
    vi sums[SLIDE][2], last = _mm256_setzero_si256();
    vi low_bias = load_s32(bias), high_bias = load_s32(bias + LANES);
    swap_middle(&low_bias, &high_bias);
    for (int i = 0; i < n; i++)
        sums[i][0] = low_bias, sums[i][1] = high_bias;
    _Pragma("GCC unroll 6") for (int c = 0; c < n + 2; c++)
    {
        const int i = c < n ? c : n - 1; /* whose tap c - i the column is */
        const void *const *column = t->row + (size_t)(c - i) * t->step + r + (size_t)i;
        vi x[COLUMN_ROWS];
        for (size_t k = 0; k < COLUMN_ROWS; k++)
            x[k] = sixteen((const char *)column[k * COLUMN_ROWS * t->step] + offset, in);
        const vi upper[2] = {_mm256_unpacklo_epi16(x[0], x[1]), _mm256_unpackhi_epi16(x[0], x[1])};
        const vi lowest[2] = {_mm256_unpacklo_epi16(last, x[2]), _mm256_unpackhi_epi16(last, x[2])};
        for (int v = 0; v < 2; v++) {
            for (int o = c < 2 ? 0 : c - 2; o <= i; o++)
                sums[o][v] = add_pairs(sums[o][v], upper[v], w[c - o][v]);
            if (c >= 1 && c <= n)
                sums[c - 1][v] = add_pairs(sums[c - 1][v], lowest[v], w[3][v]);
            if (c >= 2)
                sums[c - 2][v] = add_pairs(sums[c - 2][v], lowest[v], w[4][v]);
        }
        last = x[2];
    }
    for (int i = 0; i < n; i++) {
        char *to = (char *)t->sums + (r + (size_t)i) * t->sums_stride + at * LANES * 4;
        swap_middle(&sums[i][0], &sums[i][1]);
        save_s32(to, sums[i][0]);
        save_s32(to + LANES * 4, sums[i][1]);
    }
}

/* How many of rows r, r + 1 ... are neighbours: 1, 2 or SLIDE. */
static size_t neighbours(const tq_depthwise_tile *t, size_t r)
{
    size_t n = 1;
    for (; n < SLIDE && r + n < t->rows; n++)
        for (size_t k = 0; k < COLUMN_ROWS; k++) {
            const void *const *line = t->row + k * COLUMN_ROWS * t->step + r + n;
            if (line[0] != line[t->step - 1] || line[t->step] != line[2 * t->step - 1])
                return n >= 2 ? 2 : 1;
        }
    return n >= SLIDE ? SLIDE : n >= 2 ? 2 : 1;
}

/* The tile, where most rows are neighbours; else false. */
INLINE bool slide_tile(const tq_depthwise_tile *t, const tq_element in)
{
    size_t count[TQ_TILE_ROWS], parts = 0;
    if (t->taps != COLUMN_ROWS * COLUMN_ROWS || t->vectors < 2)
        return false;
    for (size_t r = 0; r < t->rows; r += count[parts++])
        count[parts] = neighbours(t, r);
    if (2 * parts > t->rows + 1)
        return false;
    for (size_t v = 0; v < t->vectors; v += 2) {
        const size_t at = v + 2 <= t->vectors ? v : v - 1;
        vi w[5][2];
        load_filter(t, at, w);
        for (size_t r = 0, p = 0; p < parts; r += count[p++])
            if (count[p] == SLIDE)
                slide(t, r, SLIDE, at, w, in);
            else if (count[p] == 2)
                slide(t, r, 2, at, w, in);
            else
                slide(t, r, 1, at, w, in);
    }
    return true;
}

/* ---- by columns: products of 16 bits ---- */

/* Weights of the first and third row of a column, and of the others. */
typedef struct pair_weights {
    vi even, odd;
} pair_weights;

/* The sum of the parts. */
INLINE pair_weights load_pairs(const int8_t *p, size_t parts)
{
    pair_weights w = {splat_s32(0), splat_s32(0)};
    for (size_t i = 0; i < parts; i++, p += 64) {
        const vi bytes = _mm256_loadu_si256((const __m256i *)(const void *)p);
        w.even = _mm256_add_epi16(w.even, _mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8));
        w.odd = _mm256_add_epi16(w.odd, _mm256_srai_epi16(bytes, 8));
    }
    return w;
}

INLINE vi add_products(vi sums, vi bytes, pair_weights w)
{
    sums = add_pairs(sums, _mm256_and_si256(bytes, _mm256_set1_epi16(0xFF)), w.even);
    return add_pairs(sums, _mm256_srli_epi16(bytes, 8), w.odd);
}

#include "kernels/depthwise/depthwise_interleave_avx2.h"

#define DOT_LANES 8
#define load_vector(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define weights_t pair_weights
#define load_weights load_pairs
#define PARTS_AT_ONCE(parts) (parts)
#define dot add_products
#include "kernels/depthwise/depthwise_columns_simd.h"
#undef weights_t
#undef load_weights
#undef EACH

/* Beyond `most` channels `slide` is as fast: uint8 columns have two parts of weights. */
#define COLUMNS(flip, most) \
    .columns = columns, .columns_channels = most, .columns_flip = flip, .interleave = interleave,

#define DEPTH_ISA avx2
#define DEPTH_STORES tq_stores__avx2

#define IN i8
#define SLIDE_TILE(t) slide_tile(t, TQ_i8)
#define COLUMN_FIELDS COLUMNS(0x80, 640)
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
#define SLIDE_TILE(t) slide_tile(t, TQ_u8)
#define COLUMN_FIELDS COLUMNS(0, 192)
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
#define SLIDE_TILE(t) slide_tile(t, TQ_i16)
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
#define BAND_COLUMNS_FIRST false
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
#define BAND_COLUMNS_FIRST true
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
