/* SPDX-License-Identifier: Apache-2.0
 *
 * Vector operations of the products in AVX-512, beside those of simd_avx512.h.
 */
/* clang-format off: one operation a line */
#define IN_REGISTER(x) __asm__("" : "+v"(x))

INLINE void store_f32(float *p, vf x)
{
    _mm512_storeu_ps(p, x);
}
INLINE void save_s32(void *p, vi x)
{
    _mm512_storeu_si512(p, x);
}

/* Quantized values of 4 / vectors rows, `stride` bytes apart; 1 or 2 vectors each. */
INLINE void store_rows(char *p, size_t stride, vi values, size_t vectors)
{
    if (vectors == 2) {
        _mm256_storeu_si256((__m256i *)(void *)p, _mm512_castsi512_si256(values));
        _mm256_storeu_si256((__m256i *)(void *)(p + stride), _mm512_extracti64x4_epi64(values, 1));
        return;
    }
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_castsi512_si128(values));
    _mm_storeu_si128((__m128i *)(void *)(p + stride), _mm512_extracti32x4_epi32(values, 1));
    _mm_storeu_si128((__m128i *)(void *)(p + 2 * stride), _mm512_extracti32x4_epi32(values, 2));
    _mm_storeu_si128((__m128i *)(void *)(p + 3 * stride), _mm512_extracti32x4_epi32(values, 3));
}

/* The first n bytes of each of these rows. */
INLINE void store_row_parts(char *p, size_t stride, vi values, size_t vectors, size_t n)
{
    if (vectors == 2) {
        const __mmask32 some = (__mmask32)(((uint64_t)1 << n) - 1);
        _mm256_mask_storeu_epi8(p, some, _mm512_castsi512_si256(values));
        _mm256_mask_storeu_epi8(p + stride, some, _mm512_extracti64x4_epi64(values, 1));
        return;
    }
    const __mmask16 some = (__mmask16)(((uint32_t)1 << n) - 1);
    _mm_mask_storeu_epi8(p, some, _mm512_castsi512_si128(values));
    _mm_mask_storeu_epi8(p + stride, some, _mm512_extracti32x4_epi32(values, 1));
    _mm_mask_storeu_epi8(p + 2 * stride, some, _mm512_extracti32x4_epi32(values, 2));
    _mm_mask_storeu_epi8(p + 3 * stride, some, _mm512_extracti32x4_epi32(values, 3));
}

/* Bit i: the low half of lane i is below `limit`. */
INLINE uint32_t lanes_below(vi x, int32_t limit)
{
    return _mm512_cmplt_epu32_mask(_mm512_and_si512(x, splat_s32(0xFFFF)), splat_s32(limit));
}

/* The first n bytes, n < 64. */
INLINE void store_part(void *p, vi values, size_t n)
{
    _mm512_mask_storeu_epi8(p, ((__mmask64)1 << n) - 1, values);
}

/* 4 bytes, 2 bytes and a float for all lanes. */
INLINE vi load_four(const void *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}
INLINE vi load_two(const void *p)
{
    uint16_t two;
    memcpy(&two, p, sizeof two);
    return _mm512_set1_epi32(two);
}
INLINE vf load_splat(const void *p)
{
    float x;
    memcpy(&x, p, sizeof x);
    return _mm512_set1_ps(x);
}

/* Operations of the lower halves; the upper halves of results are undefined. */
#define LOW(x) _mm512_castps512_ps256(x)
INLINE vf add_low(vf x, vf y)
{
    return _mm512_castps256_ps512(_mm256_add_ps(LOW(x), LOW(y)));
}
INLINE vf mul_low(vf x, vf y)
{
    return _mm512_castps256_ps512(_mm256_mul_ps(LOW(x), LOW(y)));
}
INLINE vf fmadd_low(vf x, vf y, vf z)
{
    return _mm512_castps256_ps512(_mm256_fmadd_ps(LOW(x), LOW(y), LOW(z)));
}

/* The same, and those of whole vectors, with a float in memory in place of a vector: compilers would broadcast it to a
   register where it is used twice. */
typedef float unaligned_float __attribute__((aligned(1), may_alias));
#define AT(p) "m"(*(const unaligned_float *)(p))
INLINE vf mul_at(vf x, const void *p)
{
    vf product;
    __asm__("vmulps %2%{1to16%}, %1, %0" : "=v"(product) : "v"(x), AT(p));
    return product;
}
INLINE vf mul_low_at(vf x, const void *p)
{
    __m256 product;
    __asm__("vmulps %2%{1to8%}, %1, %0" : "=v"(product) : "v"(LOW(x)), AT(p));
    return _mm512_castps256_ps512(product);
}
INLINE vf fmadd_at(vf x, const void *p, vf sum)
{
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(x), AT(p));
    return sum;
}
INLINE vf fmadd_low_at(vf x, const void *p, vf sum)
{
    __m256 low = LOW(sum);
    __asm__("vfmadd231ps %2%{1to8%}, %1, %0" : "+v"(low) : "v"(LOW(x)), AT(p));
    return _mm512_castps256_ps512(low);
}
#undef AT
#undef LOW

INLINE vi load_weights_i16(const void *p)
{
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)p));
}

/* tq_multiply_i64 and the clamp, on 8 sums. */
#define WIDE_LANES 8
INLINE vi widen(const int32_t *p)
{
    return _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i *)p));
}
INLINE vi clamp_s64(vi x, int64_t low, int64_t high)
{
    return _mm512_max_epi64(_mm512_set1_epi64(low), _mm512_min_epi64(_mm512_set1_epi64(high), x));
}
INLINE void wide_values(const tq_gemm_store *s, const int64_t *sums, size_t channel, int16_t *out)
{
    const int64_t limit = (int64_t)1 << 47;
    vi sum = clamp_s64(_mm512_loadu_si512(sums), -limit, limit - 1), total = widen(s->total + channel);
    vi half = _mm512_sllv_epi64(_mm512_set1_epi64(1), _mm512_sub_epi64(total, _mm512_set1_epi64(1)));
    vi product = _mm512_add_epi64(_mm512_mullo_epi64(sum, widen(s->reduced + channel)), half);
    vi value = _mm512_srav_epi64(product, total);
    value = clamp_s64(value, (int64_t)s->low - s->zero_point, (int64_t)s->high - s->zero_point);
    value = _mm512_add_epi64(value, _mm512_set1_epi64(s->zero_point));
    _mm_storeu_si128((__m128i *)out, _mm512_cvtepi64_epi16(value));
}
/* clamp(away(f64(sum) * by) + zero point), on 8 sums. */
INLINE void wide_away(const tq_gemm_store *s, const int64_t *sums, const double *by, int16_t *out)
{
    __m512d product = _mm512_mul_pd(_mm512_cvtepi64_pd(_mm512_loadu_si512(sums)), _mm512_loadu_pd(by));
    __m256i value = away_half(product, _mm512_set1_pd((double)s->low - s->zero_point),
                              _mm512_set1_pd((double)s->high - s->zero_point));
    value = _mm256_add_epi32(value, _mm256_set1_epi32(s->zero_point));
    _mm_storeu_si128((__m128i *)out, _mm256_cvtepi32_epi16(value));
}
/* clang-format on */
