/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of quant/fixed_math_16.h: one body an instruction set.
 *
 * AVX2 has the product tq_q16_mul as one instruction of 16 lanes (vpmulhrsw).  It does not saturate -2^15 * -2^15,
 * which does not occur: no factor is -2^15.
 */
#include "kernels/arrays/fixed_16.h"

#include "kernels/kernels.h"
#include "quant/fixed_math_16.h"

#if TQ_X86
#include <immintrin.h>
#endif

#if TQ_X86

#define LANES 16
#define INLINE static inline __attribute__((always_inline, target("avx2")))
typedef __m256i vec;

/* clang-format off: one operation a line */
INLINE vec all(int x)
{
    return _mm256_set1_epi16((int16_t)x);
}
INLINE vec load(const int16_t *p)
{
    return _mm256_loadu_si256((const vec *)p);
}
INLINE void store(int16_t *p, vec x)
{
    _mm256_storeu_si256((vec *)p, x);
}
INLINE vec add(vec a, vec b)
{
    return _mm256_add_epi16(a, b);
}
INLINE vec sub(vec a, vec b)
{
    return _mm256_sub_epi16(a, b);
}
INLINE vec mul(vec a, vec b)
{
    return _mm256_mulhrs_epi16(a, b);
}
INLINE vec doubled(vec a)
{
    return _mm256_adds_epi16(a, a);
}
INLINE vec where(vec mask, vec a, vec b)
{
    return _mm256_blendv_epi8(b, a, mask);
}
INLINE vec equal(vec a, vec b)
{
    return _mm256_cmpeq_epi16(a, b);
}

/* tq_q16_exp_small */
INLINE vec exp_small(vec a)
{
    const vec at = all(28918);
    vec x = add(a, all(1 << 12)), x2 = mul(x, x), x3 = mul(x2, x), x4 = mul(x2, x2);
    vec quarter = _mm256_srai_epi16(add(x4, all(2)), 2);
    vec higher = add(mul(add(quarter, x3), all(10923)), x2);
    vec half = _mm256_srai_epi16(add(add(higher, all(1)), _mm256_srai_epi16(higher, 15)), 1); /* ties away from 0 */
    return add(at, mul(at, add(x, half)));
}

/* tq_q16_exp_negative */
INLINE vec exp_negative(vec a, int k)
{
    static const int16_t factor[] = {25520, 19875, 12055, 4435, 600, 11, 0};
    const int fraction = 15 - k;
    const vec quarter = all(1 << (fraction - 2));
    vec rest = sub(_mm256_and_si256(a, sub(quarter, all(1))), quarter), quarters = sub(rest, a);
    vec result = exp_small(_mm256_sll_epi16(rest, _mm_cvtsi32_si128(k)));
    for (int e = -2; e <= 4 && e < k; e++) {
        const vec bit = all(1 << (fraction + e));
        result = where(equal(_mm256_and_si256(quarters, bit), bit), mul(result, all(factor[e + 2])), result);
    }
    if (k > 5)
        result = where(_mm256_cmpgt_epi16(all(-(1 << (fraction + 5))), a), all(0), result);
    return where(equal(a, all(0)), all(INT16_MAX), result);
}

/* tq_q16_newton */
INLINE vec newton(vec a)
{
    vec half = add(_mm256_srai_epi16(a, 1), all(1 << 14)), x = add(all(23130), mul(half, all(-15420)));
    for (int i = 0; i < 3; i++) {
        vec error = sub(all(1 << 13), mul(half, x));
        x = add(x, doubled(doubled(mul(x, error))));
    }
    return x;
}

INLINE vec negative_of(vec a)
{
    return sub(all(0), _mm256_abs_epi16(a));
}
/* clang-format on */

INLINE vec logistic(vec a)
{
    vec positive = doubled(newton(exp_negative(negative_of(a), 3)));
    vec below = sub(all(INT16_MAX), positive);
    vec y = where(_mm256_cmpgt_epi16(a, all(0)), positive, below);
    return where(equal(a, all(0)), all(1 << 14), y);
}

INLINE vec tangent(vec a, int k)
{
    vec x = newton(exp_negative(negative_of(a), k + 1));
    return _mm256_sign_epi16(doubled(doubled(sub(x, all(1 << 13)))), a);
}

#define BLOCKS __attribute__((target("avx2"))) static size_t

/* Compute whole vectors; return the number of elements. */
BLOCKS logistics(const int16_t *in, int16_t *out, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(out + i, logistic(load(in + i)));
    return i;
}

BLOCKS tangents(const int16_t *in, int16_t *out, size_t n, int k, int shift)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vec a = load(in + i);
        store(out + i, tangent(shift ? doubled(a) : a, k));
    }
    return i;
}

#endif

void tq_logistic_q16(const int16_t *in, int16_t *out, size_t n)
{
    size_t i = 0;
#if TQ_X86
    if (tq_kernels_features() & TQ_CPU_AVX2)
        i = logistics(in, out, n);
#endif
    for (; i < n; i++)
        out[i] = tq_q16_logistic(in[i]);
}

void tq_tanh_q16(const int16_t *in, int16_t *out, size_t n, int k, int shift)
{
    size_t i = 0;
#if TQ_X86
    if (tq_kernels_features() & TQ_CPU_AVX2)
        i = tangents(in, out, n, k, shift);
#endif
    for (; i < n; i++)
        out[i] = tq_q16_tanh(tq_q16_shift_left(in[i], shift), k);
}
