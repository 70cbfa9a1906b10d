/* SPDX-License-Identifier: Apache-2.0
 *
 * float_arrays_simd.h with AVX-512, for the elements that float_pairs_avx512.c leaves: four registers hold the table,
 * and two vectors of eight float64 advance together.
 */
#include "kernels/float_arrays.h"

#if TQ_X86

#include <immintrin.h>

#include "kernels/float_math.h"

#define ISA avx512
#define PARTS 2
#define TARGET TQ_TARGET_AVX512
#define BODY TARGET TQ_BODY
#define F(operation) _mm256_##operation##_ps
#define D(operation) _mm512_##operation##_pd
#define FLOATS _mm256_set1_ps
#define DOUBLES _mm512_set1_pd
#define FMADD _mm512_fmadd_pd
#define TO_DOUBLES _mm512_cvtps_pd
#define TO_FLOATS _mm512_cvtpd_ps
#define COMPARE _mm256_cmp_ps_mask
#define CHOOSE(y, lanes, value) _mm256_mask_mov_ps(y, lanes, value)
#define SIGNS(x) _mm256_movepi32_mask(_mm256_castps_si256(x))
#define LOAD(v, x, n)                                                    \
    const uint32_t kept = (1u << (n)) - 1;                               \
    EACH_PART                                                            \
    {                                                                    \
        (v).part[i] = _mm256_maskz_loadu_ps(kept >> 8 * i, (x) + 8 * i); \
    }
#define STORE(v, y, n) EACH_PART _mm256_mask_storeu_ps((y) + 8 * i, kept >> 8 * i, (v).part[i])
typedef __m256 vf;
typedef __m512d vd;
typedef __mmask8 lanes;

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

/* 2^k of 1.5 * 2^52 + k. */
BODY vd exponential_of(vd shifted)
{
    const __m512i bits = _mm512_add_epi64(_mm512_castpd_si512(shifted), _mm512_set1_epi64(1023));
    return _mm512_castsi512_pd(_mm512_slli_epi64(bits, 52));
}

BODY vd subtract_where(lanes chosen, vd from, vd x)
{
    return _mm512_mask_sub_pd(x, chosen, from, x);
}

#include "kernels/float_arrays_simd.h"

#endif
