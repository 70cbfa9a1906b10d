/* SPDX-License-Identifier: Apache-2.0
 *
 * float_arrays_simd.h with AVX2: four vectors of four float64 advance together.
 */
#include "kernels/float_arrays.h"

#if TQ_X86

#include <immintrin.h>

#include "kernels/float_math.h"

#define ISA avx2
#define PARTS 4
#define TARGET TQ_TARGET_AVX2
#define BODY TARGET TQ_BODY
#define F(operation) _mm_##operation##_ps
#define D(operation) _mm256_##operation##_pd
#define FLOATS _mm_set1_ps
#define DOUBLES _mm256_set1_pd
#define FMADD _mm256_fmadd_pd
#define TO_DOUBLES _mm256_cvtps_pd
#define TO_FLOATS _mm256_cvtpd_ps
#define COMPARE _mm_cmp_ps
#define CHOOSE(y, lanes, value) _mm_blendv_ps(y, value, lanes)
#define SIGNS(x) (x)
#define LOAD(v, x, n)                             \
    float rest[STEP];                             \
    const float *from = (n) < STEP ? rest : (x);  \
    if ((n) < STEP) {                             \
        memset(rest, 0, sizeof rest);             \
        memcpy(rest, (x), (n) * sizeof *rest);    \
    }                                             \
    EACH_PART                                     \
    {                                             \
        (v).part[i] = _mm_loadu_ps(from + 4 * i); \
    }
#define STORE(v, y, n)                                \
    float *to = (n) < STEP ? rest : (y);              \
    EACH_PART _mm_storeu_ps(to + 4 * i, (v).part[i]); \
    if ((n) < STEP)                                   \
    memcpy((y), rest, (n) * sizeof *rest)
typedef __m128 vf;
typedef __m256d vd;
typedef __m128 lanes; /* sign bits */

typedef const uint64_t *table;

BODY table load_table(void)
{
    return tq_exp2_table;
}

/* 2^(k/32) of two parts of 1.5 * 2^52 + k.  Entries come from memory; a general register brings two indices. */
BODY void look_up(const table *t, const __m256d shifted[2], __m256d power[2])
{
    const __m256 low = _mm256_shuffle_ps(_mm256_castpd_ps(shifted[0]), _mm256_castpd_ps(shifted[1]), 0x88);
    const __m256i k = _mm256_and_si256(_mm256_castps_si256(low), _mm256_set1_epi32(31));
    for (int i = 0; i < 2; i++) {
        const uint64_t first = (uint64_t)(i ? _mm256_extract_epi64(k, 1) : _mm256_extract_epi64(k, 0));
        const uint64_t last = (uint64_t)(i ? _mm256_extract_epi64(k, 3) : _mm256_extract_epi64(k, 2));
        const __m256i entries = _mm256_setr_epi64x((int64_t)(*t)[(uint32_t)first], (int64_t)(*t)[first >> 32],
                                                   (int64_t)(*t)[(uint32_t)last], (int64_t)(*t)[last >> 32]);
        const __m256i exponents = _mm256_slli_epi64(_mm256_castpd_si256(shifted[i]), 47);
        power[i] = _mm256_castsi256_pd(_mm256_add_epi64(entries, exponents));
    }
}

/* 2^k of 1.5 * 2^52 + k. */
BODY vd exponential_of(vd shifted)
{
    const __m256i bits = _mm256_add_epi64(_mm256_castpd_si256(shifted), _mm256_set1_epi64x(1023));
    return _mm256_castsi256_pd(_mm256_slli_epi64(bits, 52));
}

BODY vd subtract_where(lanes chosen, vd from, vd x)
{
    const __m256i wide = _mm256_cvtepi32_epi64(_mm_castps_si128(chosen));
    return _mm256_blendv_pd(x, _mm256_sub_pd(from, x), _mm256_castsi256_pd(wide));
}

#include "kernels/float_arrays_simd.h"

#endif
