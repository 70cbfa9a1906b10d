/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of runs of floats.  Additions of one run wait for one another, so several runs are added at once, each in a
 * lane, unless XNNPACK's order has lanes of its own.
 */
#include "ops/reductions/float_runs.h"

#include <string.h>

#include "base/stop.h"

#if TQ_X86
#include <immintrin.h>

/* sums[k] of four runs and of `count` numbers, a multiple of 4; they are transposed in registers. */
TQ_BODY __m128 add_scalar(__m128 sum, const float *x, size_t n, size_t count)
{
    for (size_t i = 0; i < count; i += 4) {
        __m128 a = _mm_loadu_ps(x + i), b = _mm_loadu_ps(x + n + i);
        __m128 c = _mm_loadu_ps(x + 2 * n + i), d = _mm_loadu_ps(x + 3 * n + i);
        _MM_TRANSPOSE4_PS(a, b, c, d);
        sum = _mm_add_ps(_mm_add_ps(_mm_add_ps(_mm_add_ps(sum, a), b), c), d);
    }
    return sum;
}

/* Four numbers of a run and four of the fourth run behind it. */
TQ_TARGET_AVX2 TQ_BODY __m256 two_runs(const float *x, size_t n)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(x)), _mm_loadu_ps(x + 4 * n), 1);
}

/* The same of eight runs: both halves are transposed at once. */
TQ_TARGET_AVX2 TQ_BODY __m256 add_avx2(__m256 sum, const float *x, size_t n, size_t count)
{
    for (size_t i = 0; i < count; i += 4) {
        const __m256 a = two_runs(x + i, n), b = two_runs(x + n + i, n);
        const __m256 c = two_runs(x + 2 * n + i, n), d = two_runs(x + 3 * n + i, n);
        const __m256 ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d);
        const __m256 ab_last = _mm256_unpackhi_ps(a, b), cd_last = _mm256_unpackhi_ps(c, d);
        sum = _mm256_add_ps(sum, _mm256_shuffle_ps(ab, cd, 0x44));
        sum = _mm256_add_ps(sum, _mm256_shuffle_ps(ab, cd, 0xEE));
        sum = _mm256_add_ps(sum, _mm256_shuffle_ps(ab_last, cd_last, 0x44));
        sum = _mm256_add_ps(sum, _mm256_shuffle_ps(ab_last, cd_last, 0xEE));
    }
    return sum;
}

/* Sixteen runs, by whole cache lines: where n is a power of two, lines of all runs have one place in the cache.
   `lanes`: runs of a vector. */
#define SUM_SIXTEEN(isa, target, lanes, vector, load, store)                         \
    target static void sum_sixteen_##isa(float *sums, const float *x, size_t n)      \
    {                                                                                \
        enum { LINE = 16, GROUPS = 16 / (lanes) };                                   \
        vector sum[GROUPS];                                                          \
        size_t i = 0;                                                                \
        for (size_t g = 0; g < GROUPS; g++)                                          \
            sum[g] = load(sums + (lanes) * g);                                       \
        for (; i + LINE <= n; i += LINE)                                             \
            for (size_t g = 0; g < GROUPS; g++)                                      \
                sum[g] = add_##isa(sum[g], x + (lanes) * g * n + i, n, LINE);        \
        for (size_t g = 0; g < GROUPS; g++) {                                        \
            sum[g] = add_##isa(sum[g], x + (lanes) * g * n + i, n, (n - i) / 4 * 4); \
            store(sums + (lanes) * g, sum[g]);                                       \
        }                                                                            \
        for (size_t k = 0; k < 16; k++)                                              \
            for (i = n / 4 * 4; i < n; i++)                                          \
                sums[k] += x[k * n + i];                                             \
    }
SUM_SIXTEEN(scalar, , 4, __m128, _mm_loadu_ps, _mm_storeu_ps)
SUM_SIXTEEN(avx2, TQ_TARGET_AVX2, 8, __m256, _mm256_loadu_ps, _mm256_storeu_ps)
static void (*const sum_sixteen[TQ_ISAS])(float *, const float *, size_t) = TQ_ISA_FUNCTIONS_TO_AVX2(sum_sixteen);
#endif

static void sum_four(float *sums, const float *x, size_t n)
{
    float a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    for (size_t i = 0; i < n; i++) {
        a += x[i];
        b += x[n + i];
        c += x[2 * n + i];
        d += x[3 * n + i];
    }
    sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
}

void tq_sum_runs(float *sums, const float *x, size_t n, size_t runs)
{
    size_t k = 0;
#if TQ_X86
    for (; k + TQ_SUM_RUNS <= runs; k += TQ_SUM_RUNS)
        sum_sixteen[tq_isa()](sums + k, x + k * n, n);
#endif
    for (; k + 4 <= runs; k += 4)
        sum_four(sums + k, x + k * n, n);
    for (; k < runs; k++) {
        float sum = sums[k];
        for (size_t i = 0; i < n; i++)
            sum += x[k * n + i];
        sums[k] = sum;
    }
}

typedef float eight __attribute__((vector_size(32)));
typedef float four __attribute__((vector_size(16)));

TQ_BODY void add_eight(eight *sum, const float *x)
{
    eight more;
    memcpy(&more, x, sizeof more);
    *sum += more;
}

/* The same of n < 8, to a vector in halves: a run of fewer lanes is no longer than its additions. */
TQ_BODY void add_rest(four *halves, const float *x, size_t n)
{
    const size_t whole = n & 4;
    if (whole) {
        four more;
        memcpy(&more, x, sizeof more);
        halves[0] += more;
    }
    x += whole;
    n -= whole;
    const four rest = {n > 0 ? x[0] : 0, n > 1 ? x[1] : 0, n > 2 ? x[2] : 0, 0};
    halves[whole ? 1 : 0] += rest;
}

/* The last whole vectors go to the first accumulators, the inputs behind them to the sum of the four. */
TQ_BODY float sum_in_lanes(const float *x, size_t n)
{
    enum { LANES = sizeof(eight) / sizeof(float) };
    eight a = {0}, b = {0}, c = {0}, d = {0};
    size_t work = 0, i = 0;
    for (; i + 4 * LANES <= n && !tq_stop_count(&work, 4 * LANES); i += 4 * LANES) {
        add_eight(&a, x + i);
        add_eight(&b, x + i + LANES);
        add_eight(&c, x + i + 2 * LANES);
        add_eight(&d, x + i + 3 * LANES);
    }
    const size_t left = (n - i) / LANES;
    if (left > 0)
        add_eight(&a, x + i);
    if (left > 1)
        add_eight(&b, x + i + LANES);
    if (left > 2)
        add_eight(&c, x + i + 2 * LANES);
    a = (a + c) + (b + d);
    i += left * LANES;
    four halves[2];
    memcpy(halves, &a, sizeof a);
    if (i < n)
        add_rest(halves, x + i, n - i);
    const four s = halves[0] + halves[1];
    return (s[0] + s[2]) + (s[1] + s[3]);
}

#define SUM_IN_LANES(isa, target)                                                                           \
    target static void in_lanes_##isa(float *restrict sums, const float *restrict x, size_t n, size_t runs) \
    {                                                                                                       \
        for (size_t k = 0; k < runs; k++)                                                                   \
            sums[k] = sum_in_lanes(x + k * n, n);                                                           \
    }
TQ_EVERY_ISA_TO_AVX2(SUM_IN_LANES)

void tq_sum_runs_in_lanes(float *sums, const float *x, size_t n, size_t runs)
{
    static void (*const bodies[TQ_ISAS])(float *, const float *, size_t, size_t) = TQ_ISA_FUNCTIONS_TO_AVX2(in_lanes);
    bodies[tq_isa()](sums, x, n, runs);
}
