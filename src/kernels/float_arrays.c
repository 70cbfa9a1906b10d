/* SPDX-License-Identifier: Apache-2.0
 *
 * Compilers look up float_math.h's table of 32 entries one by one, and finish one lane's polynomial before they begin
 * the next.  AVX-512 holds the table in four registers; four vectors of eight float64 advance together.
 *
 * Some steps are fused there, and e^r' is summed by Horner's rule.  Over all 2^32 arguments each result is that of the
 * steps of float_math.h: steps that would give another one for some argument are left as they are there.
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
#define FLOATS _mm256_set1_ps
enum { PARTS = 4, STEP = 8 * PARTS };
#define EACH_PART _Pragma("GCC unroll 4") for (int i = 0; i < PARTS; i++)

typedef struct floats {
    __m256 part[PARTS];
} floats;

typedef struct doubles {
    __m512d part[PARTS];
} doubles;

typedef struct table {
    __m512i low[2], high[2]; /* halves of tq_exp2_table's entries */
} table;

BODY table load_table(void)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    table t;
    for (int i = 0; i < 2; i++) {
        const __m512i first = _mm512_loadu_si512(tq_exp2_table + 16 * i);
        const __m512i second = _mm512_loadu_si512(tq_exp2_table + 16 * i + 8);
        t.low[i] = _mm512_permutex2var_epi32(first, even, second);
        t.high[i] = _mm512_permutex2var_epi32(first, odd, second);
    }
    return t;
}

BODY doubles widen(floats x)
{
    doubles y;
    EACH_PART y.part[i] = _mm512_cvtps_pd(x.part[i]);
    return y;
}

BODY floats narrow(doubles x)
{
    floats y;
    EACH_PART y.part[i] = _mm512_cvtpd_ps(x.part[i]);
    return y;
}

/* |x|, at most the bound; NaN for NaN. */
BODY floats size_to(floats x, float bound)
{
    EACH_PART x.part[i] = _mm256_min_ps(FLOATS(bound), _mm256_andnot_ps(FLOATS(-0.0f), x.part[i]));
    return x;
}

/* The value where x is below the bound, else y. */
BODY __m256 below(__m256 x, float bound, float value, __m256 y)
{
    return _mm256_mask_mov_ps(y, _mm256_cmp_ps_mask(x, FLOATS(bound), _CMP_LT_OQ), FLOATS(value));
}

/* 2^(k/32) of two parts of 1.5 * 2^52 + k: looked up together. */
BODY void look_up(const table *t, const __m512d shifted[2], __m512d power[2])
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i last = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    const __m512i k = _mm512_permutex2var_epi32(_mm512_castpd_si512(shifted[0]), even, _mm512_castpd_si512(shifted[1]));
    const __m512i low = _mm512_permutex2var_epi32(t->low[0], k, t->low[1]);
    const __m512i entry = _mm512_permutex2var_epi32(t->high[0], k, t->high[1]);
    const __m512i high = _mm512_add_epi32(entry, _mm512_slli_epi32(k, 47 - 32));
    power[0] = _mm512_castsi512_pd(_mm512_permutex2var_epi32(low, first, high));
    power[1] = _mm512_castsi512_pd(_mm512_permutex2var_epi32(low, last, high));
}

/* 2^(k/32), of x 32 / ln 2 = k + rest. */
BODY doubles powers_of_two(doubles x, doubles *rest, const table *t)
{
    const __m512d round = DOUBLES(0x1.8p52);
    doubles shifted, y;
    EACH_PART
    {
        const __m512d z = _mm512_mul_pd(x.part[i], DOUBLES(TQ_EXP_PER_LN2));
        shifted.part[i] = _mm512_add_pd(z, round);
        rest->part[i] = _mm512_sub_pd(z, _mm512_sub_pd(shifted.part[i], round));
    }
    for (int i = 0; i < PARTS; i += 2)
        look_up(t, shifted.part + i, y.part + i);
    return y;
}

/* Each as the function of float_math.h that it is named after. */

/* The bounds come first: they are bounds of the result, too. */
BODY floats expf_32(floats x, const table *t)
{
    EACH_PART x.part[i] = _mm256_max_ps(FLOATS(-105), _mm256_min_ps(FLOATS(89), x.part[i]));
    doubles r, sum, y = powers_of_two(widen(x), &r, t);
    EACH_PART sum.part[i] = _mm512_fmadd_pd(DOUBLES(TQ_EXP_C0), r.part[i], DOUBLES(TQ_EXP_C1));
    EACH_PART sum.part[i] = _mm512_fmadd_pd(sum.part[i], r.part[i], DOUBLES(TQ_EXP_C2));
    EACH_PART sum.part[i] = _mm512_fmadd_pd(sum.part[i], r.part[i], DOUBLES(1));
    EACH_PART y.part[i] = _mm512_mul_pd(sum.part[i], y.part[i]);
    return narrow(y);
}

BODY floats logistic_32(floats x, const table *t)
{
    floats y;
    __mmask8 low[PARTS];
    EACH_PART low[i] = _mm256_cmp_ps_mask(x.part[i], FLOATS(-9), _CMP_LT_OQ);
    EACH_PART y.part[i] = _mm256_mask_mov_ps(_mm256_xor_ps(x.part[i], FLOATS(-0.0f)), low[i], x.part[i]);
    y = expf_32(y, t);
    EACH_PART
    {
        const __m256 of_power = _mm256_div_ps(FLOATS(1), _mm256_add_ps(FLOATS(1), y.part[i]));
        const __mmask8 high = _mm256_cmp_ps_mask(x.part[i], FLOATS(TQ_LOGISTIC_IS_1), _CMP_GT_OQ);
        y.part[i] = _mm256_mask_mov_ps(_mm256_mask_mov_ps(of_power, low[i], y.part[i]), high, FLOATS(1));
    }
    return y;
}

BODY doubles expm1_unrounded_32(doubles x, const table *t)
{
    doubles r, grown, y = powers_of_two(x, &r, t);
    EACH_PART r.part[i] = _mm512_mul_pd(r.part[i], DOUBLES(TQ_EXP_LN2));
    EACH_PART grown.part[i] = _mm512_fmadd_pd(r.part[i], DOUBLES(1.0 / 24), DOUBLES(1.0 / 6));
    EACH_PART grown.part[i] = _mm512_fmadd_pd(r.part[i], grown.part[i], DOUBLES(1.0 / 2));
    EACH_PART grown.part[i] = _mm512_fmadd_pd(r.part[i], grown.part[i], DOUBLES(1));
    EACH_PART grown.part[i] = _mm512_mul_pd(r.part[i], grown.part[i]);
    EACH_PART y.part[i] = _mm512_fmadd_pd(y.part[i], grown.part[i], _mm512_sub_pd(y.part[i], DOUBLES(1)));
    return y;
}

/* x + 0: NaN becomes quiet, and subnormal numbers 0 where the processor flushes them. */
BODY floats elu_32(floats x, const table *t)
{
    floats y = narrow(expm1_unrounded_32(widen(x), t));
    EACH_PART
    {
        const __mmask8 negative = _mm256_movepi32_mask(_mm256_castps_si256(x.part[i]));
        const __m256 power = below(x.part[i], -18, -1, _mm256_or_ps(y.part[i], FLOATS(-0.0f)));
        y.part[i] = _mm256_mask_mov_ps(_mm256_add_ps(x.part[i], _mm256_setzero_ps()), negative, power);
    }
    return y;
}

/* tanh of the bound rounds to 1. */
BODY floats tanhf_32(floats x, const table *t)
{
    doubles e = widen(size_to(x, 10));
    EACH_PART e.part[i] = _mm512_add_pd(e.part[i], e.part[i]);
    e = expm1_unrounded_32(e, t);
    EACH_PART e.part[i] = _mm512_div_pd(e.part[i], _mm512_add_pd(e.part[i], DOUBLES(2)));
    floats y = narrow(e);
    EACH_PART
    {
        const __m256 sign = _mm256_and_ps(FLOATS(-0.0f), x.part[i]);
        y.part[i] = _mm256_or_ps(_mm256_andnot_ps(FLOATS(-0.0f), y.part[i]), sign);
    }
    return y;
}

/* Sums of a polynomial's leading terms, from the second coefficient to the one before `end`. */
#define HORNER(sum, x, coefficients, end) \
    for (int k = 1; k < (end); k++)       \
    EACH_PART sum.part[i] = _mm512_fmadd_pd(sum.part[i], x.part[i], DOUBLES((coefficients)[k]))

BODY floats erfcf_32(floats x)
{
    static const double of_sum[] = {TQ_ERFC_SUM}, of_power[] = {TQ_ERFC_POWER};
    enum { LAST = sizeof of_sum / sizeof *of_sum - 1, POWERS = sizeof of_power / sizeof *of_power };
    const __m512d round = DOUBLES(0x1.8p52);
    const doubles a = widen(size_to(x, 10.5f));
    doubles u, shifted, f, sum, power;
    EACH_PART
    {
        u.part[i] = _mm512_div_pd(DOUBLES(3), _mm512_add_pd(a.part[i], DOUBLES(3)));
        const __m512d z = _mm512_mul_pd(_mm512_mul_pd(a.part[i], a.part[i]), DOUBLES(TQ_ERFC_PER_SQUARE));
        shifted.part[i] = _mm512_add_pd(z, round);
        f.part[i] = _mm512_sub_pd(z, _mm512_sub_pd(shifted.part[i], round));
        power.part[i] = DOUBLES(of_power[0]);
        sum.part[i] = DOUBLES(of_sum[0]);
    }
    HORNER(power, f, of_power, POWERS);
    HORNER(sum, u, of_sum, LAST);
    EACH_PART
    {
        const __m512d last = _mm512_add_pd(_mm512_mul_pd(sum.part[i], u.part[i]), DOUBLES(of_sum[LAST]));
        const __m512i bits = _mm512_add_epi64(_mm512_castpd_si512(shifted.part[i]), _mm512_set1_epi64(1023));
        const __m512d whole = _mm512_castsi512_pd(_mm512_slli_epi64(bits, 52));
        const __m512d product = _mm512_mul_pd(_mm512_mul_pd(u.part[i], last), _mm512_mul_pd(power.part[i], whole));
        const __mmask8 negative = _mm256_cmp_ps_mask(x.part[i], _mm256_setzero_ps(), _CMP_LT_OQ);
        u.part[i] = _mm512_mask_sub_pd(product, negative, DOUBLES(2), product);
    }
    return narrow(u);
}

BODY floats gelu_32(floats x, const table *t)
{
    (void)t;
    floats y;
    EACH_PART y.part[i] = _mm256_mul_ps(x.part[i], FLOATS(-TQ_SQRT_HALF));
    y = erfcf_32(y);
    EACH_PART y.part[i] = _mm256_mul_ps(_mm256_mul_ps(FLOATS(0.5f), x.part[i]), y.part[i]);
    return y;
}

#define OF_32(name, of_32)                                                     \
    TQ_TARGET_AVX512 static void name(const float *x, float *y, size_t n)      \
    {                                                                          \
        const table t = load_table();                                          \
        floats v;                                                              \
        for (; n >= STEP; n -= STEP, x += STEP, y += STEP) {                   \
            EACH_PART v.part[i] = _mm256_loadu_ps(x + 8 * i);                  \
            v = of_32(v, &t);                                                  \
            EACH_PART _mm256_storeu_ps(y + 8 * i, v.part[i]);                  \
        }                                                                      \
        if (n == 0)                                                            \
            return;                                                            \
        const uint32_t rest = (1u << n) - 1;                                   \
        EACH_PART v.part[i] = _mm256_maskz_loadu_ps(rest >> 8 * i, x + 8 * i); \
        v = of_32(v, &t);                                                      \
        EACH_PART _mm256_mask_storeu_ps(y + 8 * i, rest >> 8 * i, v.part[i]);  \
    }
#define FUNCTION(name, of_one, of_32)           \
    OF_ONE(name##_scalar, , of_one)             \
    OF_ONE(name##_avx2, TQ_TARGET_AVX2, of_one) \
    OF_32(name##_avx512, of_32)                 \
    TQ_ISA_FLOATS(name)
#else
#define FUNCTION(name, of_one, of_32) \
    OF_ONE(name##_scalar, , of_one)   \
    TQ_ISA_FLOATS(name)
#endif

FUNCTION(exponentials, tq_expf, expf_32)
FUNCTION(logistics, tq_logistic, logistic_32)
FUNCTION(elus, tq_elu, elu_32)
FUNCTION(hyperbolic_tangents, tq_tanhf, tanhf_32)
FUNCTION(gelus, tq_gelu, gelu_32)
