/* SPDX-License-Identifier: Apache-2.0
 *
 * Dot products whose integer sums cannot overflow, in loops that compilers vectorize.
 */
#ifndef TQ_OPS_PRODUCTS_DOT_H
#define TQ_OPS_PRODUCTS_DOT_H

#include <stddef.h>
#include <stdint.h>

/* The number of products that fit an int32 sum, which is then added to an int64 sum: `chunk` below. */
enum {
    TQ_DOT_8_BIT = 1 << 14, /* 8-bit values less a zero point, |a|, |b| <= 255: |a * b| < 2^16, the sum < 2^30 */
    TQ_DOT_16X8 = 1 << 8    /* int16 times int8: |a * b| <= 2^22, the sum <= 2^30 */
};

/* a . b, n values each, n <= TQ_DOT_8_BIT or TQ_DOT_16X8, by the ranges of a and b. */
static inline int32_t tq_dot_few_i16(const int16_t *a, const int16_t *b, size_t n)
{
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (int32_t)a[i] * b[i];
    return sum;
}

/* a . b, n < 2^31 values each; chunk: TQ_DOT_8_BIT or TQ_DOT_16X8, by the ranges of a and b. */
static inline int64_t tq_dot_i16(const int16_t *a, const int16_t *b, size_t n, size_t chunk)
{
    int64_t sum = 0;
    for (; n > chunk; a += chunk, b += chunk, n -= chunk)
        sum += tq_dot_few_i16(a, b, chunk);
    return sum + tq_dot_few_i16(a, b, n);
}

/* sums[r] = row r of a [rows][n] matrix . b, modulo 2^32. */
void tq_dot_rows_i8(const int8_t *matrix, size_t rows, const int8_t *b, size_t n, int32_t *sums);

/* A sum modulo 2^32, as in an int32 accumulator of the reference. */
static inline int32_t tq_wrap_i32(int64_t sum)
{
    uint32_t low = (uint32_t)(uint64_t)sum;
    return low < 0x80000000u ? (int32_t)low : (int32_t)(low - 0x80000000u) + INT32_MIN;
}

/* a + b modulo 2^64. */
static inline int64_t tq_add_wrap_i64(int64_t a, int64_t b)
{
    uint64_t low = (uint64_t)a + (uint64_t)b;
    return low < (uint64_t)1 << 63 ? (int64_t)low : (int64_t)(low - ((uint64_t)1 << 63)) + INT64_MIN;
}

/* ---- float32, in the order of the reference's helpers on x86: four partial sums, added from the first to the last,
   then the remaining products one by one (tflite/kernels/internal/optimized/neon_tensor_utils.cc) ---- */

enum { TQ_LANES = 4 };

/* The four partial sums, added from the first to the last. */
static inline float tq_add_lanes(const float lanes[TQ_LANES])
{
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

/* start + a . b, n values each; partial sums begin with 0. */
static inline float tq_add_dot_f32(float start, const float *a, const float *b, size_t n)
{
    float lanes[TQ_LANES] = {0, 0, 0, 0};
    size_t i = 0;
    for (; i + TQ_LANES <= n; i += TQ_LANES)
        for (size_t lane = 0; lane < TQ_LANES; lane++)
            lanes[lane] += a[i + lane] * b[i + lane];
    start += tq_add_lanes(lanes);
    for (; i < n; i++)
        start += a[i] * b[i];
    return start;
}

/* The sum of n values, in the same order. */
static inline float tq_sum_f32(const float *a, size_t n)
{
    float lanes[TQ_LANES] = {0, 0, 0, 0};
    size_t i = 0;
    for (; i + TQ_LANES <= n; i += TQ_LANES)
        for (size_t lane = 0; lane < TQ_LANES; lane++)
            lanes[lane] += a[i + lane];
    float sum = tq_add_lanes(lanes);
    for (; i < n; i++)
        sum += a[i];
    return sum;
}

#endif
