/* SPDX-License-Identifier: Apache-2.0
 *
 * Compilers look up float_math.h's table of 32 entries one by one, and finish one lane's polynomial before they begin
 * the next.  AVX-512 holds the table in four registers; two vectors of eight float64 advance together.
 *
 * Some steps are fused there.  Over all 2^32 arguments each result is that of the unfused steps of float_math.h: steps
 * that would give another one for some argument are left unfused.
 */
#include "kernels/float_arrays.h"

#include "kernels/float_math.h"

/* A loop over a function of one float. */
#define OF_ONE(name, target, of_one)                            \
    target static void name(const float *x, float *y, size_t n) \
    {                                                           \
        for (size_t i = 0; i < n; i++)                          \
            y[i] = of_one(x[i]);                                \
    }

#if TQ_X86
#include <immintrin.h>

#define BODY TQ_TARGET_AVX512 TQ_BODY
#define DOUBLES _mm512_set1_pd
#define FLOATS _mm512_set1_ps
#define EACH_HALF for (int i = 0; i < 2; i++)

typedef struct halves {
    __m512d part[2]; /* float64 of 16 lanes */
} halves;

typedef struct table {
    __m512i low[2], high[2]; /* halves of tq_exp2_table's entries */
} table;

BODY table load_table(void)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    table t;
    EACH_HALF
    {
        const __m512i first = _mm512_loadu_si512(tq_exp2_table + 16 * i);
        const __m512i second = _mm512_loadu_si512(tq_exp2_table + 16 * i + 8);
        t.low[i] = _mm512_permutex2var_epi32(first, even, second);
        t.high[i] = _mm512_permutex2var_epi32(first, odd, second);
    }
    return t;
}

BODY halves widen(__m512 x)
{
    return (halves){{_mm512_cvtps_pd(_mm512_castps512_ps256(x)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1))}};
}

BODY __m512 narrow(halves x)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(x.part[0])), _mm512_cvtpd_ps(x.part[1]), 1);
}

/* x where it is not above or below the bound, else the value. */
BODY __m512 below(__m512 x, float bound, float value, __m512 y)
{
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, FLOATS(bound), _CMP_LT_OQ), FLOATS(value));
}
BODY __m512 above(__m512 x, float bound, float value, __m512 y)
{
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, FLOATS(bound), _CMP_GT_OQ), FLOATS(value));
}

/* 2^(k/32), of x 32 / ln 2 = k + rest. */
BODY halves powers_of_two(halves x, halves *rest, const table *t)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i last = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    const __m512d round = DOUBLES(0x1.8p52);
    __m512d shifted[2];
    EACH_HALF
    {
        const __m512d z = _mm512_mul_pd(x.part[i], DOUBLES(TQ_EXP_PER_LN2));
        shifted[i] = _mm512_add_pd(z, round);
        rest->part[i] = _mm512_sub_pd(z, _mm512_sub_pd(shifted[i], round));
    }
    const __m512i k = _mm512_permutex2var_epi32(_mm512_castpd_si512(shifted[0]), even, _mm512_castpd_si512(shifted[1]));
    const __m512i low = _mm512_permutex2var_epi32(t->low[0], k, t->low[1]);
    const __m512i entry = _mm512_permutex2var_epi32(t->high[0], k, t->high[1]);
    const __m512i high = _mm512_add_epi32(entry, _mm512_slli_epi32(k, 47 - 32));
    return (halves){{_mm512_castsi512_pd(_mm512_permutex2var_epi32(low, first, high)),
                     _mm512_castsi512_pd(_mm512_permutex2var_epi32(low, last, high))}};
}

/* Each as the function of float_math.h that it is named after, step by step. */

BODY __m512 expf_16(__m512 x, const table *t)
{
    halves r, y = powers_of_two(widen(x), &r, t);
    EACH_HALF
    {
        const __m512d high = _mm512_fmadd_pd(DOUBLES(TQ_EXP_C0), r.part[i], DOUBLES(TQ_EXP_C1));
        const __m512d low = _mm512_fmadd_pd(DOUBLES(TQ_EXP_C2), r.part[i], DOUBLES(1));
        const __m512d power = _mm512_fmadd_pd(high, _mm512_mul_pd(r.part[i], r.part[i]), low);
        y.part[i] = _mm512_mul_pd(power, y.part[i]);
    }
    return above(x, 89, INFINITY, below(x, -105, 0, narrow(y)));
}

BODY __m512 logistic_16(__m512 x, const table *t)
{
    const __mmask16 low = _mm512_cmp_ps_mask(x, FLOATS(-9), _CMP_LT_OQ);
    const __m512 power = expf_16(_mm512_mask_mov_ps(_mm512_xor_ps(x, FLOATS(-0.0f)), low, x), t);
    const __m512 y = _mm512_div_ps(FLOATS(1), _mm512_add_ps(FLOATS(1), power));
    return above(x, TQ_LOGISTIC_IS_1, 1, _mm512_mask_mov_ps(y, low, power));
}

BODY halves expm1_unrounded_16(halves x, const table *t)
{
    halves r, y = powers_of_two(x, &r, t);
    EACH_HALF
    {
        const __m512d part = _mm512_mul_pd(r.part[i], DOUBLES(TQ_EXP_LN2));
        __m512d grown = _mm512_fmadd_pd(part, DOUBLES(1.0 / 24), DOUBLES(1.0 / 6));
        grown = _mm512_fmadd_pd(part, grown, DOUBLES(1.0 / 2));
        grown = _mm512_mul_pd(part, _mm512_fmadd_pd(part, grown, DOUBLES(1)));
        y.part[i] = _mm512_fmadd_pd(y.part[i], grown, _mm512_sub_pd(y.part[i], DOUBLES(1)));
    }
    return y;
}

/* x + 0: NaN becomes quiet, and subnormal numbers 0 where the processor flushes them. */
BODY __m512 elu_16(__m512 x, const table *t)
{
    const __mmask16 negative = _mm512_movepi32_mask(_mm512_castps_si512(x));
    const __m512 y = _mm512_or_ps(narrow(expm1_unrounded_16(widen(x), t)), FLOATS(-0.0f));
    return _mm512_mask_mov_ps(_mm512_add_ps(x, _mm512_setzero_ps()), negative, below(x, -18, -1, y));
}

BODY __m512 tanhf_16(__m512 x, const table *t)
{
    const __m512 size = _mm512_andnot_ps(FLOATS(-0.0f), x), sign = _mm512_and_ps(FLOATS(-0.0f), x);
    halves e = widen(size);
    EACH_HALF e.part[i] = _mm512_add_pd(e.part[i], e.part[i]);
    e = expm1_unrounded_16(e, t);
    EACH_HALF e.part[i] = _mm512_div_pd(e.part[i], _mm512_add_pd(e.part[i], DOUBLES(2)));
    return _mm512_or_ps(_mm512_andnot_ps(FLOATS(-0.0f), above(size, 10, 1, narrow(e))), sign);
}

/* Sums of a polynomial's leading terms, from the second coefficient to the one before `end`. */
#define HORNER(sum, x, coefficients, end) \
    for (int k = 1; k < (end); k++)       \
    EACH_HALF sum[i] = _mm512_fmadd_pd(sum[i], x[i], DOUBLES((coefficients)[k]))

BODY __m512 erfcf_16(__m512 x, const table *t)
{
    (void)t;
    static const double of_sum[] = {TQ_ERFC_SUM}, of_power[] = {TQ_ERFC_POWER};
    enum { LAST = sizeof of_sum / sizeof *of_sum - 1, POWERS = sizeof of_power / sizeof *of_power };
    const __m512d round = DOUBLES(0x1.8p52);
    const __m512 size = _mm512_andnot_ps(FLOATS(-0.0f), x);
    const halves a = widen(above(size, 10.5f, 10.5f, size));
    const __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
    __m512d u[2], shifted[2], f[2], sum[2], power[2];
    EACH_HALF
    {
        u[i] = _mm512_div_pd(DOUBLES(3), _mm512_add_pd(a.part[i], DOUBLES(3)));
        const __m512d z = _mm512_mul_pd(_mm512_mul_pd(a.part[i], a.part[i]), DOUBLES(TQ_ERFC_PER_SQUARE));
        shifted[i] = _mm512_add_pd(z, round);
        f[i] = _mm512_sub_pd(z, _mm512_sub_pd(shifted[i], round));
        power[i] = DOUBLES(of_power[0]);
        sum[i] = DOUBLES(of_sum[0]);
    }
    HORNER(power, f, of_power, POWERS);
    HORNER(sum, u, of_sum, LAST);
    halves y;
    EACH_HALF
    {
        sum[i] = _mm512_add_pd(_mm512_mul_pd(sum[i], u[i]), DOUBLES(of_sum[LAST]));
        const __m512i bits = _mm512_add_epi64(_mm512_castpd_si512(shifted[i]), _mm512_set1_epi64(1023));
        const __m512d whole = _mm512_castsi512_pd(_mm512_slli_epi64(bits, 52));
        const __m512d product = _mm512_mul_pd(_mm512_mul_pd(u[i], sum[i]), _mm512_mul_pd(power[i], whole));
        y.part[i] = _mm512_mask_sub_pd(product, (__mmask8)(negative >> 8 * i), DOUBLES(2), product);
    }
    return narrow(y);
}

#define OF_16(name, of_16)                                                                 \
    TQ_TARGET_AVX512 static void name(const float *x, float *y, size_t n)                  \
    {                                                                                      \
        const table t = load_table();                                                      \
        size_t i = 0;                                                                      \
        for (; i + 16 <= n; i += 16)                                                       \
            _mm512_storeu_ps(y + i, of_16(_mm512_loadu_ps(x + i), &t));                    \
        if (i == n)                                                                        \
            return;                                                                        \
        const __mmask16 rest = (__mmask16)((1u << (n - i)) - 1);                           \
        _mm512_mask_storeu_ps(y + i, rest, of_16(_mm512_maskz_loadu_ps(rest, x + i), &t)); \
    }
#define FUNCTION(name, of_one, of_16)           \
    OF_ONE(name##_scalar, , of_one)             \
    OF_ONE(name##_avx2, TQ_TARGET_AVX2, of_one) \
    OF_16(name##_avx512, of_16)                 \
    TQ_ISA_FLOATS(name)
#else
#define FUNCTION(name, of_one, of_16) \
    OF_ONE(name##_scalar, , of_one)   \
    TQ_ISA_FLOATS(name)
#endif

FUNCTION(exponentials, tq_expf, expf_16)
FUNCTION(logistics, tq_logistic, logistic_16)
FUNCTION(elus, tq_elu, elu_16)
FUNCTION(hyperbolic_tangents, tq_tanhf, tanhf_16)
FUNCTION(complementary_errors, tq_erfcf, erfcf_16)
