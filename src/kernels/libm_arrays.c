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

/* All elements of a part at once, by `values`, and then again the unusual ones.  y may be x: these wait in `part`. */
#define VECTORS(isa, target, name, values, takes, libm)                 \
    target static void name##_##isa(const float *x, float *y, size_t n) \
    {                                                                   \
        float part[PART];                                               \
        for (; n; x += PART, y += PART) {                               \
            const size_t count = n < PART ? n : PART;                   \
            int unusual = 0;                                            \
            for (size_t i = 0; i < count; i++)                          \
                unusual |= !takes(x[i]);                                \
            values(x, unusual ? part : y, count);                       \
            for (size_t i = 0; unusual && i < count; i++)               \
                y[i] = takes(x[i]) ? part[i] : libm(x[i]);              \
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

/* Entries of the logarithm's tables.  Compilers gather them one by one; registers hold them all. */
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

TQ_TARGET_AVX2 static void tq_logarithm_avx2(const float *x, float *y, size_t n)
{
    uint32_t index[PART] = {0};
    double inverse[PART], log_c[PART];
    for (size_t i = 0; i < n; i++)
        index[i] = tq_logarithm_index(x[i]);
    look_up_avx2(index, (n + 7) / 8 * 8, inverse, log_c);
    for (size_t i = 0; i < n; i++)
        y[i] = tq_logarithm_by(x[i], inverse[i], log_c[i]);
}
VALUES(avx2, TQ_TARGET_AVX2, tq_sine)
VALUES(avx2, TQ_TARGET_AVX2, tq_cosine)

enum { PARTS = 4, STEP = 8 * PARTS };
#define EACH_PART _Pragma("GCC unroll 4") for (int i = 0; i < PARTS; i++)
#define DOUBLES _mm512_set1_pd

typedef struct logarithm_tables {
    __m512d inverse[2], log_c[2];
} logarithm_tables;

/* tq_logarithm_by of STEP floats: compilers finish one vector's steps before they begin the next
   one's, and pass the tables' entries through memory. */
TQ_TARGET_AVX512 TQ_BODY void logarithms_of(const logarithm_tables *tables, const float *x, float *y)
{
    const __m256i start = _mm256_set1_epi32(TQ_LOG_START), exponent = _mm256_set1_epi32((int)TQ_LOG_EXPONENT);
    __m512d r[PARTS], square[PARTS], sum[PARTS], high[PARTS], k[PARTS];
    EACH_PART
    {
        const __m256i bits = _mm256_loadu_si256((const __m256i *)(x + 8 * i)), above = _mm256_sub_epi32(bits, start);
        const __m256i z = _mm256_sub_epi32(bits, _mm256_and_si256(above, exponent));
        const __m512i at = _mm512_cvtepu32_epi64(_mm256_srli_epi32(above, 19)); /* lookups take the low 4 bits */
        const __m512d inverse = _mm512_permutex2var_pd(tables->inverse[0], at, tables->inverse[1]);
        k[i] = _mm512_cvtepi32_pd(_mm256_srai_epi32(above, 23));
        sum[i] = _mm512_permutex2var_pd(tables->log_c[0], at, tables->log_c[1]);
        r[i] = _mm512_fmadd_pd(_mm512_cvtps_pd(_mm256_castsi256_ps(z)), inverse, DOUBLES(-1));
    }
    EACH_PART sum[i] = _mm512_fmadd_pd(k[i], DOUBLES(TQ_LOG_LN2), sum[i]);
    EACH_PART square[i] = _mm512_mul_pd(r[i], r[i]);
    EACH_PART high[i] = _mm512_fmadd_pd(DOUBLES(TQ_LOG_B), r[i], DOUBLES(TQ_LOG_C));
    EACH_PART sum[i] = _mm512_add_pd(sum[i], r[i]);
    EACH_PART high[i] = _mm512_fmadd_pd(DOUBLES(TQ_LOG_A), square[i], high[i]);
    EACH_PART sum[i] = _mm512_fmadd_pd(high[i], square[i], sum[i]);
    EACH_PART
    {
        const __m256i bits = _mm256_loadu_si256((const __m256i *)(x + 8 * i));
        const __mmask8 is_normal = _mm256_cmplt_epu32_mask(_mm256_sub_epi32(bits, _mm256_set1_epi32(TQ_LOG_LEAST)),
                                                           _mm256_set1_epi32(TQ_LOG_NORMALS));
        _mm256_storeu_ps(y + 8 * i, _mm256_mask_mov_ps(_mm256_set1_ps(NAN), is_normal, _mm512_cvtpd_ps(sum[i])));
    }
}

TQ_TARGET_AVX512 static void tq_logarithm_avx512(const float *x, float *y, size_t n)
{
    const logarithm_tables tables = {{_mm512_loadu_pd(tq_log_inverse), _mm512_loadu_pd(tq_log_inverse + 8)},
                                     {_mm512_loadu_pd(tq_log_table), _mm512_loadu_pd(tq_log_table + 8)}};
    float last[STEP] = {0};
    size_t i = 0;
    for (; i + STEP <= n; i += STEP)
        logarithms_of(&tables, x + i, y + i);
    if (i < n) {
        memcpy(last, x + i, (n - i) * sizeof *x);
        logarithms_of(&tables, last, last);
        memcpy(y + i, last, (n - i) * sizeof *x);
    }
}

TQ_TARGET_AVX512 TQ_BODY __m512d chosen(__mmask8 is_even, double even, double odd)
{
    return _mm512_mask_mov_pd(DOUBLES(odd), is_even, DOUBLES(even));
}

/* tq_sine or tq_cosine, by `quarters`, of STEP floats: compilers finish one vector's steps before they begin the next
 * one's. */
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
        const __m256 value = _mm512_cvtpd_ps(_mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(sum[i]), sign)));
        const __m256 from = _mm256_loadu_ps(x + 8 * i), size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), from);
        const __mmask8 is_kept = quarters ? 0 : _mm256_cmp_ps_mask(size, _mm256_set1_ps(TQ_SINE_KEPT), _CMP_LT_OQ);
        _mm256_storeu_ps(y + 8 * i, _mm256_mask_mov_ps(value, is_kept, from));
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
        y[i] = tq_sine(x[i]);
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
