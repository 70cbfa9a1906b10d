/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of runs of floats.  Additions of one run wait for one another, so several runs are added at once, each in a
 * lane.
 */
#include "ops/reductions/float_runs.h"

#if TQ_X86
#include <xmmintrin.h>

/* sums[k] of four runs and of `count` numbers, a multiple of 4; they are transposed in registers. */
static inline __m128 add_four(__m128 sum, const float *x, size_t n, size_t count)
{
    for (size_t i = 0; i < count; i += 4) {
        __m128 a = _mm_loadu_ps(x + i), b = _mm_loadu_ps(x + n + i);
        __m128 c = _mm_loadu_ps(x + 2 * n + i), d = _mm_loadu_ps(x + 3 * n + i);
        _MM_TRANSPOSE4_PS(a, b, c, d);
        sum = _mm_add_ps(_mm_add_ps(_mm_add_ps(_mm_add_ps(sum, a), b), c), d);
    }
    return sum;
}

/* Sixteen runs, by whole cache lines: where n is a power of two, lines of all runs have one place in the cache. */
static void sum_sixteen(float *sums, const float *x, size_t n)
{
    enum { LINE = 16 };
    __m128 sum[4];
    size_t i = 0;
    for (size_t g = 0; g < 4; g++)
        sum[g] = _mm_loadu_ps(sums + 4 * g);
    for (; i + LINE <= n; i += LINE)
        for (size_t g = 0; g < 4; g++)
            sum[g] = add_four(sum[g], x + 4 * g * n + i, n, LINE);
    for (size_t g = 0; g < 4; g++)
        _mm_storeu_ps(sums + 4 * g, add_four(sum[g], x + 4 * g * n + i, n, (n - i) / 4 * 4));
    for (size_t k = 0; k < 16; k++)
        for (i = n / 4 * 4; i < n; i++)
            sums[k] += x[k * n + i];
}
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
        sum_sixteen(sums + k, x + k * n, n);
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
