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

#define EACH(i, n) _Pragma("GCC unroll 8") for (int i = 0; i < n; i++)

/* Byte 16 t + c of four taps to byte 4 c + t. */
INLINE vi channel_order(void)
{
    const vi first = _mm512_set1_epi32(0x30201000);
    const vi channel = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_add_epi32(first, _mm512_mullo_epi32(channel, _mm512_set1_epi32(0x01010101)));
}

INLINE vi four_taps(const char *const tap[4], size_t at, vi order)
{
    __m256i low = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(tap[0] + at)));
    __m256i high = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(tap[2] + at)));
    low = _mm256_inserti128_si256(low, _mm_loadu_si128((const __m128i *)(tap[1] + at)), 1);
    high = _mm256_inserti128_si256(high, _mm_loadu_si128((const __m128i *)(tap[3] + at)), 1);
    vi both = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    return _mm512_xor_si512(_mm512_permutexvar_epi8(order, both), _mm512_set1_epi8((char)0x80));
}

/* Vectors [at, at + count) of rows [r, r + rows): rows share the loads of weights. */
INLINE void part(const tq_depthwise_tile *t, size_t r, const int rows, size_t at, const int count)
{
    vi sums[2][4];
    const vi order = channel_order();
    const size_t offset = t->offset + at * 16, vector_bytes = t->vector_bytes;
    const char *weights = t->weights + at * vector_bytes;
    const int32_t *bias = (const int32_t *)t->bias + at * 16;
    EACH (i, rows)
        EACH (k, count)
            sums[i][k] = _mm512_loadu_si512(bias + k * 16);
    const void *const *row = t->row + r;
    const size_t step = t->step;
    for (size_t left = t->taps; left > 0; left = left < 4 ? 0 : left - 4, row += 4 * step, weights += 64) {
        /* weights past the last tap are 0: any pixel will do */
        const size_t at1 = left > 1 ? step : 0, at2 = left > 2 ? 2 * step : 0, at3 = left > 3 ? 3 * step : 0;
        const char *tap[2][4];
        EACH (i, rows) {
            tap[i][0] = (const char *)row[i] + offset;
            tap[i][1] = (const char *)row[at1 + (size_t)i] + offset;
            tap[i][2] = (const char *)row[at2 + (size_t)i] + offset;
            tap[i][3] = (const char *)row[at3 + (size_t)i] + offset;
        }
        EACH (k, count) {
            vi w = _mm512_loadu_si512(weights + (size_t)k * vector_bytes);
            IN_REGISTER(w);
            EACH (i, rows)
                sums[i][k] = _mm512_dpbusd_epi32(sums[i][k], four_taps(tap[i], (size_t)k * 16, order), w);
        }
    }
    EACH (i, rows)
        EACH (k, count)
            save_s32((int32_t *)t->sums + ((r + (size_t)i) * t->vectors + at + (size_t)k) * 16, sums[i][k]);
}

INLINE void some_rows(const tq_depthwise_tile *t, size_t r, const int rows)
{
    size_t at = 0;
    for (; at + 4 <= t->vectors; at += 4)
        part(t, r, rows, at, 4);
    switch (t->vectors - at) {
    case 3: part(t, r, rows, at, 3); break;
    case 2: part(t, r, rows, at, 2); break;
    case 1: part(t, r, rows, at, 1); break;
    default: break;
    }
}

static TARGET void tile(const tq_depthwise_tile *t)
{
    size_t r = 0;
    for (; r + 2 <= t->rows; r += 2)
        some_rows(t, r, 2);
    if (r < t->rows)
        some_rows(t, r, 1);
}

/* ---- by columns ---- */

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

/* Sums n, n + 1 ... of a tile: they share the loads of weights. */
INLINE void some_columns(const tq_column_tile *t, size_t n, const int count)
{
    vi sums[4];
    const char *group = t->columns + n * t->step;
    const int8_t *weights = t->weights;
    EACH (i, count)
        sums[i] = _mm512_loadu_si512(t->bias);
    for (size_t g = 0; g < t->groups; g++, group += t->group_bytes) {
        const char *column = group;
        for (size_t j = 0; j < t->width; j++, column += t->column_bytes)
            for (size_t p = 0; p < t->parts; p++, weights += 64) {
                vi w = _mm512_loadu_si512(weights);
                EACH (i, count)
                    sums[i] = _mm512_dpbusd_epi32(sums[i], _mm512_loadu_si512(column + (size_t)i * t->step), w);
            }
    }
    EACH (i, count)
        save_s32(t->sums + (n + (size_t)i) * t->sums_step, sums[i]);
}

/* All sums where the filter's weights fit the registers. */
INLINE void small_filter(const tq_column_tile *t, const int groups, const int width, const int parts)
{
    vi weights[2][5][2];
    const vi bias = _mm512_loadu_si512(t->bias);
    const size_t group_bytes = t->group_bytes, column_bytes = t->column_bytes, step = t->step, to_step = t->sums_step;
    const char *columns = t->columns;
    int32_t *to = t->sums;
    EACH (g, groups)
        EACH (j, width)
            EACH (p, parts)
                weights[g][j][p] = _mm512_loadu_si512(t->weights + ((g * width + j) * parts + p) * 64);
    for (size_t left = t->count; left > 0; left--, columns += step, to += to_step) {
        vi sum = bias;
        EACH (g, groups)
            EACH (j, width) {
                const vi column = _mm512_loadu_si512(columns + (size_t)g * group_bytes + (size_t)j * column_bytes);
                EACH (p, parts)
                    sum = _mm512_dpbusd_epi32(sum, column, weights[g][j][p]);
            }
        save_s32(to, sum);
    }
}

static TARGET void columns(const tq_column_tile *t)
{
    size_t n = 0;
    if (t->groups == 1 && t->width == 3) {
        if (t->parts == 1)
            small_filter(t, 1, 3, 1);
        else
            small_filter(t, 1, 3, 2);
        return;
    }
    if (t->groups == 2 && t->width == 5 && t->parts == 1) {
        small_filter(t, 2, 5, 1);
        return;
    }
    for (; n + 4 <= t->count; n += 4)
        some_columns(t, n, 4);
    for (; n < t->count; n++)
        some_columns(t, n, 1);
}

const tq_depthwise_kernel tq_depthwise_i8__avx512vbmi = {
    .isa = "avx512vbmi",
    .lanes = 16,
    .group = 4,
    .weight_bytes = 1,
    .flip = 0x80,
    .tile = tile,
    .columns = columns,
    .interleave = interleave,
    .stores = &tq_stores__avx512,
};

/* Weights of 9 bits: two parts by columns, and AVX-512's tiles. */
static void tile_u8(const tq_depthwise_tile *t)
{
    tq_depthwise_u8__avx512.tile(t);
}

const tq_depthwise_kernel tq_depthwise_u8__avx512vbmi = {
    .isa = "avx512vbmi",
    .lanes = 16,
    .group = 2,
    .weight_bytes = 2,
    .tile = tile_u8,
    .columns = columns,
    .interleave = interleave,
    .stores = &tq_stores__avx512,
};
#endif
