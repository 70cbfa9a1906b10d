/* SPDX-License-Identifier: Apache-2.0
 *
 * The C library's functions over arrays: vectors of libm_math.h for the usual arguments, calls for others.
 */
#include "kernels/float_arrays.h"

#include "kernels/inline.h"
#include "kernels/libm_math.h"

#define CALLS(name, libm)                                         \
    static void name##_scalar(const float *x, float *y, size_t n) \
    {                                                             \
        for (size_t i = 0; i < n; i++)                            \
            y[i] = libm(x[i]);                                    \
    }
enum { PART = 256 };

/* All elements of a part at once, by `values`, and then again the unusual ones. */
#define VECTORS(isa, target, name, values, takes, libm)                 \
    target static void name##_##isa(const float *x, float *y, size_t n) \
    {                                                                   \
        float part[PART];                                               \
        for (; n; x += PART, y += PART) {                               \
            const size_t count = n < PART ? n : PART;                   \
            int unusual = 0;                                            \
            values(x, part, count);                                     \
            for (size_t i = 0; i < count; i++)                          \
                unusual |= !takes(x[i]);                                \
            for (size_t i = 0; unusual && i < count; i++)               \
                if (!takes(x[i]))                                       \
                    part[i] = libm(x[i]);                               \
            memcpy(y, part, count * sizeof *y);                         \
            n -= count;                                                 \
        }                                                               \
    }
/* Of n <= PART elements. */
#define VALUES(isa, target, of_one)                                       \
    target static void of_one##_##isa(const float *x, float *y, size_t n) \
    {                                                                     \
        for (size_t i = 0; i < n; i++)                                    \
            y[i] = of_one(x[i]);                                          \
    }

#if TQ_X86
#include <immintrin.h>

/* Entries of the logarithm's tables.  Compilers gather them one by one; registers hold them all.  count: a multiple of
   16. */
TQ_TARGET_AVX512 static void look_up_avx512(const uint32_t *index, size_t count, double *inverse, double *log_c)
{
    const __m512d inverse_low = _mm512_loadu_pd(tq_log_inverse), inverse_high = _mm512_loadu_pd(tq_log_inverse + 8);
    const __m512d log_low = _mm512_loadu_pd(tq_log_table), log_high = _mm512_loadu_pd(tq_log_table + 8);
    for (size_t i = 0; i < count; i += 8) {
        const __m512i at = _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(index + i)));
        _mm512_storeu_pd(inverse + i, _mm512_permutex2var_pd(inverse_low, at, inverse_high));
        _mm512_storeu_pd(log_c + i, _mm512_permutex2var_pd(log_low, at, log_high));
    }
}

typedef struct words {
    __m256 low[2], high[2]; /* halves of the 16 entries */
} words;

TQ_TARGET_AVX2 TQ_BODY words words_of(const double *table)
{
    words w;
    for (int i = 0; i < 2; i++) {
        const __m256 first = _mm256_loadu_ps((const float *)(table + 8 * i));
        const __m256 second = _mm256_loadu_ps((const float *)(table + 8 * i + 4));
        const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6), odd = _mm256_setr_epi32(1, 3, 5, 7, 1, 3, 5, 7);
        w.low[i] = _mm256_blend_ps(_mm256_permutevar8x32_ps(first, even), _mm256_permutevar8x32_ps(second, even), 0xF0);
        w.high[i] = _mm256_blend_ps(_mm256_permutevar8x32_ps(first, odd), _mm256_permutevar8x32_ps(second, odd), 0xF0);
    }
    return w;
}

TQ_TARGET_AVX2 TQ_BODY __m256 half_entries(const __m256 half[2], __m256i at)
{
    const __m256 is_last = _mm256_castsi256_ps(_mm256_slli_epi32(at, 28));
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(half[0], at), _mm256_permutevar8x32_ps(half[1], at), is_last);
}

TQ_TARGET_AVX2 TQ_BODY void entries(const words *w, __m256i at, double *to)
{
    const __m256 low = half_entries(w->low, at), high = half_entries(w->high, at);
    _mm256_storeu_ps((float *)to, _mm256_unpacklo_ps(low, high));
    _mm256_storeu_ps((float *)(to + 4), _mm256_unpackhi_ps(low, high));
}

TQ_TARGET_AVX2 static void look_up_avx2(const uint32_t *index, size_t count, double *inverse, double *log_c)
{
    const __m256i order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7); /* undone by the interleaving of words */
    const words inverses = words_of(tq_log_inverse), logs = words_of(tq_log_table);
    for (size_t i = 0; i < count; i += 8) {
        const __m256i at = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)(index + i)), order);
        entries(&inverses, at, inverse + i);
        entries(&logs, at, log_c + i);
    }
}

#define LOGARITHM_VALUES(isa, target)                                         \
    target static void tq_logarithm_##isa(const float *x, float *y, size_t n) \
    {                                                                         \
        uint32_t index[PART] = {0};                                           \
        double inverse[PART], log_c[PART];                                    \
        for (size_t i = 0; i < n; i++)                                        \
            index[i] = tq_logarithm_index(x[i]);                              \
        look_up_##isa(index, (n + 15) / 16 * 16, inverse, log_c);             \
        for (size_t i = 0; i < n; i++)                                        \
            y[i] = tq_logarithm_by(x[i], inverse[i], log_c[i]);               \
    }
LOGARITHM_VALUES(avx2, TQ_TARGET_AVX2)
LOGARITHM_VALUES(avx512, TQ_TARGET_AVX512)
VALUES(avx2, TQ_TARGET_AVX2, tq_sine)
VALUES(avx2, TQ_TARGET_AVX2, tq_cosine)

enum { PARTS = 4, STEP = 8 * PARTS };
#define EACH_PART _Pragma("GCC unroll 4") for (int i = 0; i < PARTS; i++)
#define DOUBLES _mm512_set1_pd

TQ_TARGET_AVX512 TQ_BODY __m512d chosen(__mmask8 is_even, double even, double odd)
{
    return _mm512_mask_mov_pd(DOUBLES(odd), is_even, DOUBLES(even));
}

/* tq_sine_of of STEP floats: compilers finish one vector's steps before they begin the next one's. */
TQ_TARGET_AVX512 TQ_BODY void sines_of(const float *x, uint64_t quarters, float *y)
{
    const __m512d round = DOUBLES(0x1.8p52);
    __m512d r[PARTS], square[PARTS], sum[PARTS], p[PARTS];
    __m512i turn[PARTS];
    __mmask8 even[PARTS];
    EACH_PART
    {
        const __m512d real = _mm512_cvtps_pd(_mm256_loadu_ps(x + 8 * i));
        const __m512d shifted = _mm512_fmadd_pd(real, DOUBLES(TQ_SINE_PER_QUARTER), round);
        r[i] = _mm512_fmadd_pd(_mm512_sub_pd(round, shifted), DOUBLES(TQ_SINE_QUARTER), real);
        turn[i] = _mm512_add_epi64(_mm512_castpd_si512(shifted), _mm512_set1_epi64((int64_t)quarters));
        even[i] = _mm512_test_epi64_mask(turn[i], _mm512_set1_epi64(1));
    }
    EACH_PART square[i] = _mm512_mul_pd(r[i], r[i]);
    EACH_PART
    {
        const __m512d start = _mm512_fmadd_pd(square[i], DOUBLES(TQ_SINE_START), DOUBLES(1));
        p[i] = _mm512_mul_pd(_mm512_mask_mov_pd(r[i], even[i], square[i]), square[i]);
        sum[i] = _mm512_mask_mov_pd(r[i], even[i], start);
    }
    EACH_PART sum[i] = _mm512_fmadd_pd(p[i], chosen(even[i], TQ_SINE_C), sum[i]);
    EACH_PART
    {
        const __m512d last = _mm512_fmadd_pd(square[i], chosen(even[i], TQ_SINE_A), chosen(even[i], TQ_SINE_B));
        sum[i] = _mm512_fmadd_pd(_mm512_mul_pd(p[i], square[i]), last, sum[i]);
    }
    EACH_PART
    {
        const __m512i sign = _mm512_and_si512(_mm512_slli_epi64(turn[i], 62), _mm512_set1_epi64(INT64_MIN));
        const __m512d value = _mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(sum[i]), sign));
        _mm256_storeu_ps(y + 8 * i, _mm512_cvtpd_ps(value));
    }
}

TQ_TARGET_AVX512 static void tq_cosine_avx512(const float *x, float *y, size_t n)
{
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        sines_of(x + i, 1, y + i);
    for (; i < n; i++)
        y[i] = tq_cosine(x[i]);
}

TQ_TARGET_AVX512 static void tq_sine_avx512(const float *x, float *y, size_t n)
{
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        sines_of(x + i, 0, y + i);
    for (; i < n; i++)
        y[i] = tq_sine_of(x[i], 0);
    for (i = 0; i < n; i++)
        y[i] = tq_sine_kept(x[i], y[i]);
}

#define FUNCTION(name, of_one, libm)                                               \
    CALLS(name, libm)                                                              \
    VECTORS(avx2, TQ_TARGET_AVX2, name, of_one##_avx2, of_one##_takes, libm)       \
    VECTORS(avx512, TQ_TARGET_AVX512, name, of_one##_avx512, of_one##_takes, libm) \
    TQ_ISA_FLOATS(name)
#else
#define FUNCTION(name, of_one, libm) \
    CALLS(name, libm)                \
    TQ_ISA_FLOATS(name)
#endif

FUNCTION(logarithms, tq_logarithm, logf)
FUNCTION(sines, tq_sine, sinf)
FUNCTION(cosines, tq_cosine, cosf)
