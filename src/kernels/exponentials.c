/* SPDX-License-Identifier: Apache-2.0
 *
 * tq_expf over arrays.  Compilers look up its table of 32 entries one by one.  AVX-512 holds the table in four
 * registers.
 */
#include "kernels/exponentials.h"

#include "kernels/float_math.h"

#define EXPONENTIALS(isa, target)                                             \
    target static void exponentials_##isa(const float *x, float *y, size_t n) \
    {                                                                         \
        for (size_t i = 0; i < n; i++)                                        \
            y[i] = tq_expf(x[i]);                                             \
    }

#if TQ_X86
#include <immintrin.h>

EXPONENTIALS(scalar, )
EXPONENTIALS(avx2, TQ_TARGET_AVX2)

typedef struct table {
    __m512d part[4];
} table;

/* tq_expf without its last two cases, step by step. */
TQ_TARGET_AVX512 TQ_BODY __m256 exponentials_of_8(__m512d x, const table *t)
{
    const __m512d round = _mm512_set1_pd(0x1.8p52);
    const __m512d z = _mm512_mul_pd(x, _mm512_set1_pd(TQ_EXP_PER_LN2)), shifted = _mm512_add_pd(z, round);
    const __m512d r = _mm512_sub_pd(z, _mm512_sub_pd(shifted, round));
    const __m512i k = _mm512_castpd_si512(shifted);
    const __mmask8 upper = _mm512_test_epi64_mask(k, _mm512_set1_epi64(16));
    const __m512d entry = _mm512_mask_blend_pd(upper, _mm512_permutex2var_pd(t->part[0], k, t->part[1]),
                                               _mm512_permutex2var_pd(t->part[2], k, t->part[3]));
    const __m512i bits = _mm512_add_epi64(_mm512_castpd_si512(entry), _mm512_slli_epi64(k, 47));
    const __m512d high = _mm512_add_pd(_mm512_mul_pd(_mm512_set1_pd(TQ_EXP_C0), r), _mm512_set1_pd(TQ_EXP_C1));
    const __m512d low = _mm512_add_pd(_mm512_mul_pd(_mm512_set1_pd(TQ_EXP_C2), r), _mm512_set1_pd(1));
    const __m512d y = _mm512_add_pd(_mm512_mul_pd(high, _mm512_mul_pd(r, r)), low);
    return _mm512_cvtpd_ps(_mm512_mul_pd(y, _mm512_castsi512_pd(bits)));
}

TQ_TARGET_AVX512 TQ_BODY __m512 exponentials_of_16(__m512 x, const table *t)
{
    const __m256 low = exponentials_of_8(_mm512_cvtps_pd(_mm512_castps512_ps256(x)), t);
    const __m256 high = exponentials_of_8(_mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)), t);
    const __m512 e = _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
    const __mmask16 tiny = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-105), _CMP_LT_OQ);
    const __mmask16 large = _mm512_cmp_ps_mask(x, _mm512_set1_ps(89), _CMP_GT_OQ);
    return _mm512_mask_mov_ps(_mm512_mask_mov_ps(e, tiny, _mm512_setzero_ps()), large, _mm512_set1_ps(INFINITY));
}

TQ_TARGET_AVX512 static void exponentials_avx512(const float *x, float *y, size_t n)
{
    table t;
    for (int i = 0; i < 4; i++)
        t.part[i] = _mm512_loadu_pd(tq_exp2_table + 8 * i);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(y + i, exponentials_of_16(_mm512_loadu_ps(x + i), &t));
    if (i == n)
        return;
    const __mmask16 rest = (__mmask16)((1u << (n - i)) - 1);
    _mm512_mask_storeu_ps(y + i, rest, exponentials_of_16(_mm512_maskz_loadu_ps(rest, x + i), &t));
}
#else
TQ_EVERY_ISA(EXPONENTIALS)
#endif

void tq_exponentials(const float *x, float *y, size_t n)
{
    static void (*const bodies[TQ_ISAS])(const float *, float *, size_t) = TQ_ISA_FUNCTIONS(exponentials);
    bodies[tq_isa()](x, y, n);
}
