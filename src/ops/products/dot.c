/* SPDX-License-Identifier: Apache-2.0
 *
 * With AVX2, int8 values are widened for vpmaddwd, whose sums of two products fit 32 bits; b is widened once for all
 * rows.  AVX-512 takes the same body: rows are short.
 */
#include "ops/products/dot.h"

#include <stdbool.h>
#include <string.h>

#include "base/sizes.h"
#include "kernels/isa.h"

enum { FEW = 4 }; /* rows at once, for which b is read once */

static __attribute__((noinline)) int32_t dot(const int8_t *a, const int8_t *b, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (uint32_t)(a[i] * b[i]);
    return (int32_t)sum;
}

/* More than MOST products after the last whole vector, which would be made one after the other, become a vector: rows
   that others follow reach over their ends, where a copy of b is 0. */
static void dot_rows_scalar(const int8_t *matrix, size_t rows, const int8_t *b, size_t n, int32_t *sums)
{
    enum { VECTOR = 32, MOST = 4, LONG = 1024 };
    int8_t copy[LONG];
    const size_t reach = n <= LONG && n % VECTOR > MOST ? tq_round_up(n, VECTOR) : n;
    if (reach > n) {
        memcpy(copy, b, n);
        memset(copy + n, 0, reach - n);
    }
    for (; rows >= FEW; rows -= FEW, matrix += FEW * n, sums += FEW) {
        const int8_t *second = matrix + n, *third = second + n, *fourth = third + n;
        const bool reaches = reach > n && (rows - FEW) * n >= reach - n;
        const size_t end = reaches ? reach : n;
        const int8_t *by = reaches ? copy : b;
        uint32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (size_t i = 0; i < end; i++) {
            s0 += (uint32_t)(matrix[i] * by[i]);
            s1 += (uint32_t)(second[i] * by[i]);
            s2 += (uint32_t)(third[i] * by[i]);
            s3 += (uint32_t)(fourth[i] * by[i]);
        }
        sums[0] = (int32_t)s0, sums[1] = (int32_t)s1, sums[2] = (int32_t)s2, sums[3] = (int32_t)s3;
    }
    for (; rows > 0; rows--, matrix += n)
        *sums++ = dot(matrix, b, n);
}

#if TQ_X86
#include <immintrin.h>

/* Columns: of a vector; whose values of b are on the stack; of rows that are copied. */
enum { LANES = 16, PIECE = 1024, SHORT = 128 };

TQ_TARGET_AVX2 TQ_BODY __m256i widened(const int8_t *p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
}

#define EACH_ROW(r) _Pragma("GCC unroll 4") for (size_t r = 0; r < FEW; r++)

/* part[r] = row r . by, in n columns that fill vectors. */
TQ_TARGET_AVX2 TQ_BODY void multiply(const int8_t *rows, size_t stride, const int16_t *by, size_t n, int32_t part[FEW])
{
    __m256i s[FEW] = {0};
    for (size_t i = 0; i < n; i += LANES) {
        const __m256i x = _mm256_load_si256((const __m256i *)(const void *)(by + i));
        EACH_ROW(r)
        {
            s[r] = _mm256_add_epi32(s[r], _mm256_madd_epi16(widened(rows + r * stride + i), x));
        }
    }
    const __m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
    _mm_storeu_si128((__m128i *)(void *)part,
                     _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
}

/* Adds the products of m columns, of rows n apart up to `end`.  by: b's, with zeros up to the next whole vector, as far
   as rows are read that have enough behind them, and copies of short ones.  The last rows are read one by one, each FEW
   times. */
TQ_TARGET_AVX2 TQ_BODY void add_columns(const int8_t *matrix, size_t rows, size_t n, const int8_t *end, const int8_t *b,
                                        const int16_t *by, size_t m, int32_t *sums)
{
    int8_t copy[FEW * SHORT + LANES];
    const size_t reach = tq_round_up(m, LANES);
    for (size_t count; rows > 0; rows -= count, matrix += count * n, sums += count) {
        const size_t stride = rows < FEW ? 0 : n;
        count = rows < FEW ? 1 : FEW;
        const int8_t *from = matrix;
        size_t whole = reach;
        if (reach > (size_t)(end - matrix) - (FEW - 1) * stride) {
            if (n <= SHORT)
                from = memcpy(copy, matrix, count * n);
            else
                whole = m - m % LANES;
        }
        int32_t part[FEW];
        multiply(from, stride, by, whole, part);
        for (size_t r = 0; r < count; r++)
            sums[r] = (int32_t)((uint32_t)sums[r] + (uint32_t)part[r]);
        for (size_t r = 0; whole < m && r < count; r++)
            sums[r] = (int32_t)((uint32_t)sums[r] + (uint32_t)dot(matrix + r * n + whole, b + whole, m - whole));
    }
}

/* m int16 values of b, and zeros up to the next whole vector. */
TQ_TARGET_AVX2 TQ_BODY void widen(const int8_t *b, size_t m, int16_t *by)
{
    int8_t rest[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= m; i += LANES)
        _mm256_store_si256((__m256i *)(void *)(by + i), widened(b + i));
    if (i < m) {
        memcpy(rest, b + i, m - i);
        _mm256_store_si256((__m256i *)(void *)(by + i), widened(rest));
    }
}

TQ_TARGET_AVX2 static void dot_rows_avx2(const int8_t *matrix, size_t rows, const int8_t *b, size_t n, int32_t *sums)
{
    _Alignas(32) int16_t by[PIECE];
    memset(sums, 0, rows * sizeof *sums);
    for (size_t at = 0, m; at < n; at += m) {
        m = tq_min_size(n - at, PIECE);
        widen(b + at, m, by);
        add_columns(matrix + at, rows, n, matrix + rows * n, b + at, by, m, sums);
    }
}
#endif

void tq_dot_rows_i8(const int8_t *matrix, size_t rows, const int8_t *b, size_t n, int32_t *sums)
{
    static void (*const bodies[TQ_ISAS])(const int8_t *, size_t, const int8_t *, size_t, int32_t *) =
        TQ_ISA_FUNCTIONS_TO_AVX2(dot_rows);
    bodies[tq_isa()](matrix, rows, b, n, sums);
}
