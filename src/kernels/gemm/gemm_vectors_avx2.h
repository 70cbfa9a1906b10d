/* SPDX-License-Identifier: Apache-2.0
 *
 * Vector operations of the products in AVX2, beside those of simd_avx2.h.
 */
/* clang-format off: one operation a line */
#define IN_REGISTER(x) __asm__("" : "+x"(x))

INLINE void store_f32(float *p, vf x)
{
    _mm256_storeu_ps(p, x);
}
INLINE void save_s32(void *p, vi x)
{
    _mm256_storeu_si256((__m256i *)p, x);
}

/* Quantized values of 4 / vectors rows, `stride` bytes apart; 1 or 2 vectors each. */
INLINE void store_rows(char *p, size_t stride, vi values, size_t vectors)
{
    const __m128i low = _mm256_castsi256_si128(values), high = _mm256_extracti128_si256(values, 1);
    if (vectors == 2) {
        _mm_storeu_si128((__m128i *)(void *)p, low);
        _mm_storeu_si128((__m128i *)(void *)(p + stride), high);
        return;
    }
    _mm_storel_epi64((__m128i *)(void *)p, low);
    _mm_storel_epi64((__m128i *)(void *)(p + stride), _mm_unpackhi_epi64(low, low));
    _mm_storel_epi64((__m128i *)(void *)(p + 2 * stride), high);
    _mm_storel_epi64((__m128i *)(void *)(p + 3 * stride), _mm_unpackhi_epi64(high, high));
}

/* The first n bytes of each of these rows. */
INLINE void store_row_parts(char *p, size_t stride, vi values, size_t vectors, size_t n)
{
    char part[4 * LANES];
    put(part, values, false);
    for (size_t i = 0; i < 4; i += vectors, p += stride)
        tq_copy_part(p, part + i * LANES, n);
}

/* Bit i: the low half of lane i is below `limit`. */
INLINE uint32_t lanes_below(vi x, int32_t limit)
{
    vi below = _mm256_cmpgt_epi32(splat_s32(limit), _mm256_and_si256(x, splat_s32(0xFFFF)));
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(below));
}

/* The first n bytes, n < 32: a half directly, the rest through memory. */
INLINE void store_part(void *p, vi values, size_t n)
{
    __m128i rest = _mm256_castsi256_si128(values);
    char part[16], *to = p;
    if (n >= 16) {
        _mm_storeu_si128((__m128i *)(void *)to, rest);
        rest = _mm256_extracti128_si256(values, 1);
        to += 16, n -= 16;
    }
    if (n >= 8) {
        _mm_storel_epi64((__m128i *)(void *)to, rest);
        rest = _mm_unpackhi_epi64(rest, rest);
        to += 8, n -= 8;
    }
    _mm_storel_epi64((__m128i *)(void *)part, rest);
    tq_copy_part(to, part, n);
}

/* 4 bytes, 2 bytes and a float for all lanes. */
INLINE vi load_four(const void *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm256_set1_epi32(four);
}
INLINE vi load_two(const void *p)
{
    uint16_t two;
    memcpy(&two, p, sizeof two);
    return _mm256_set1_epi32(two);
}
INLINE vf load_splat(const void *p)
{
    float x;
    memcpy(&x, p, sizeof x);
    return _mm256_set1_ps(x);
}
INLINE vi load_weights_i16(const void *p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p));
}

/* tq_multiply_i64 and the clamp, on 4 sums.  A 48-bit sum is multiplied by 15 bits in two parts of 24 bits; after the
   logical shift the upper part's sign is bit 31 of its low half, which _mm256_mul_epi32 reads.  There is no arithmetic
   64-bit shift: see single_half. */
#define WIDE_LANES 4
INLINE vi widen(const int32_t *p)
{
    return _mm256_cvtepi32_epi64(_mm_loadu_si128((const __m128i *)p));
}
INLINE vi clamp_s64(vi x, int64_t low, int64_t high)
{
    const vi least = _mm256_set1_epi64x(low), most = _mm256_set1_epi64x(high);
    x = _mm256_blendv_epi8(x, most, _mm256_cmpgt_epi64(x, most));
    return _mm256_blendv_epi8(x, least, _mm256_cmpgt_epi64(least, x));
}
INLINE void wide_values(const tq_gemm_store *s, const int64_t *sums, size_t channel, int16_t *out)
{
    const int64_t limit = (int64_t)1 << 47;
    vi sum = clamp_s64(_mm256_loadu_si256((const __m256i *)sums), -limit, limit - 1);
    vi reduced = widen(s->reduced + channel);
    vi low = _mm256_mul_epi32(_mm256_and_si256(sum, _mm256_set1_epi64x(0xFFFFFF)), reduced);
    vi high = _mm256_slli_epi64(_mm256_mul_epi32(_mm256_srli_epi64(sum, 24), reduced), 24);
    vi value = single_half(_mm256_add_epi64(high, low), widen(s->total + channel));
    value = clamp_s64(value, (int64_t)s->low - s->zero_point, (int64_t)s->high - s->zero_point);
    value = _mm256_add_epi64(value, _mm256_set1_epi64x(s->zero_point));
    const vi low_16_bits =
        _mm256_setr_epi8(0, 1, 8, 9, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, /* for each half */
                         0, 1, 8, 9, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    value = _mm256_shuffle_epi8(value, low_16_bits);
    __m128i four = _mm_unpacklo_epi32(_mm256_castsi256_si128(value), _mm256_extracti128_si256(value, 1));
    _mm_storel_epi64((__m128i *)out, four);
}
/* x as float64, rounded once: bits that stand for 2^52 + its low half, and for 2^84 + 2^63 + the others. */
INLINE __m256d f64_of_s64(vi x)
{
    const vi low = _mm256_blend_epi32(x, _mm256_set1_epi64x(0x4330000000000000), 0xAA);
    const vi high = _mm256_xor_si256(_mm256_srli_epi64(x, 32), _mm256_set1_epi64x(0x4530000080000000));
    const __m256d bias = _mm256_set1_pd(0x1p84 + 0x1p63 + 0x1p52);
    return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), bias), _mm256_castsi256_pd(low));
}
/* clamp(away(f64(sum) * by) + zero point), on 4 sums. */
INLINE void wide_away(const tq_gemm_store *s, const int64_t *sums, const double *by, int16_t *out)
{
    __m256d product = _mm256_mul_pd(f64_of_s64(_mm256_loadu_si256((const __m256i *)sums)), _mm256_loadu_pd(by));
    __m128i value = away_half(product, _mm256_set1_pd((double)s->low - s->zero_point),
                              _mm256_set1_pd((double)s->high - s->zero_point));
    value = _mm_add_epi32(value, _mm_set1_epi32(s->zero_point));
    _mm_storel_epi64((__m128i *)out, _mm_packs_epi32(value, value));
}
/* clang-format on */
