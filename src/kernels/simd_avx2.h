/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector operations of elementwise_simd.h and the products in AVX2, FMA and F16C: 8 lanes.
 */
/* clang-format off: one operation a line */
#include <immintrin.h>

#include "kernels/half.h"
#include "kernels/inline.h"

#define ISA avx2
#define LANES 8
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define INLINE TQ_INLINE TARGET

typedef __m256 vf;
typedef __m256i vi;
typedef struct {
    __m256d low, high;
} vd;

INLINE vf load_f32(const float *p)
{
    return _mm256_loadu_ps(p);
}
/* Makes compilers load a value once: they fold loads into the instructions that use them, and a cycle has two loads. */
INLINE vf in_register_f32(vf x)
{
    __asm__("" : "+x"(x));
    return x;
}
INLINE vf splat_f32(float x)
{
    return _mm256_set1_ps(x);
}
INLINE vi load_s32(const int32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}
INLINE vi splat_s32(int32_t x)
{
    return _mm256_set1_epi32(x);
}
INLINE vd load_f64(const double *p)
{
    return (vd){_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)};
}
INLINE vd splat_f64(double x)
{
    return (vd){_mm256_set1_pd(x), _mm256_set1_pd(x)};
}

INLINE vi load_i8(const int8_t *p)
{
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p));
}
INLINE vi load_u8(const uint8_t *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}
INLINE vi load_i16(const int16_t *p)
{
    return _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)p));
}
INLINE vi load_u16(const uint16_t *p)
{
    return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
}
INLINE vi load_i32(const int32_t *p)
{
    return load_s32(p);
}

INLINE void put(void *p, vi x, bool stream)
{
    if (stream)
        _mm256_stream_si256((__m256i *)p, x);
    else
        _mm256_storeu_si256((__m256i *)p, x);
}

/* Stores four vectors of values, within the type's range, as 32 elements.  Packing works within halves of vectors; a
   permutation then restores the order of lanes. */
INLINE void store4_u8(uint8_t *p, const vi x[4], bool stream)
{
    vi bytes = _mm256_packus_epi16(_mm256_packs_epi32(x[0], x[1]), _mm256_packs_epi32(x[2], x[3]));
    put(p, _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)), stream);
}
/* Four vectors of any integers plus `zero` (16-bit lanes), as 8 bits; every step saturates. */
INLINE vi saturated_s8(const vi x[4], vi zero)
{
    vi ab = _mm256_adds_epi16(_mm256_packs_epi32(x[0], x[1]), zero);
    vi cd = _mm256_adds_epi16(_mm256_packs_epi32(x[2], x[3]), zero);
    return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, cd), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
INLINE vi splat_s16(int32_t x)
{
    return _mm256_set1_epi16((short)x);
}
INLINE void store4_i16(int16_t *p, const vi x[4], bool stream)
{
    put(p, _mm256_permute4x64_epi64(_mm256_packs_epi32(x[0], x[1]), 0xD8), stream);
    put(p + 16, _mm256_permute4x64_epi64(_mm256_packs_epi32(x[2], x[3]), 0xD8), stream);
}
INLINE void store4_u16(uint16_t *p, const vi x[4], bool stream)
{
    put(p, _mm256_permute4x64_epi64(_mm256_packus_epi32(x[0], x[1]), 0xD8), stream);
    put(p + 16, _mm256_permute4x64_epi64(_mm256_packus_epi32(x[2], x[3]), 0xD8), stream);
}
INLINE void store4_i32(int32_t *p, const vi x[4], bool stream)
{
    for (int k = 0; k < 4; k++)
        put(p + k * LANES, x[k], stream);
}
INLINE void store4_f32(float *p, const vf x[4], bool stream)
{
    for (int k = 0; k < 4; k++)
        if (stream)
            _mm256_stream_ps(p + k * LANES, x[k]);
        else
            _mm256_storeu_ps(p + k * LANES, x[k]);
}
INLINE void end_stream(void)
{
    _mm_sfence();
}

INLINE vf mul_f32(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
INLINE vf min_f32(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
INLINE vf div_f32(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}
INLINE vi add_s32(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}
INLINE vi sub_s32(vi a, vi b)
{
    return _mm256_sub_epi32(a, b);
}
INLINE vi clamp_s32(vi x, vi low, vi high)
{
    return _mm256_max_epi32(low, _mm256_min_epi32(high, x));
}
INLINE vf float_of_s32(vi x)
{
    return _mm256_cvtepi32_ps(x);
}
INLINE vi even_s32(vf x)
{
    return _mm256_cvtps_epi32(x);
}

/* NaN stays NaN: of a NaN both instructions return their second operand. */
INLINE vf clamp_f32(vf x, vf low, vf high)
{
    return _mm256_max_ps(low, _mm256_min_ps(high, x));
}
INLINE vf zero_if_nan(vf x)
{
    return _mm256_and_ps(x, _mm256_cmp_ps(x, x, _CMP_ORD_Q));
}

/* x rounded ties away, for |x| < 2^31: trunc(x + h), h the float below 1/2 with x's sign.  Below 2^22 the sum is exact
   or rounds within the unit that x lies in; a tie gives the next integer less about a quarter ulp, which rounds up to
   it.  From 2^23 on the sum is x. */
INLINE vi away_s32(vf x)
{
    vf sign = _mm256_and_ps(x, splat_f32(-0.0f));
    return _mm256_cvttps_epi32(_mm256_add_ps(x, _mm256_or_ps(sign, splat_f32(0x1.fffffep-2f))));
}

/* ---- 16.16 fixed point: fixed_simd.h ---- */

/* fixed_of: NaN and results outside int32 give INT32_MIN. */
INLINE vf fma_f32(vf x, vf slope, vf offset)
{
    return _mm256_fmadd_ps(x, slope, offset);
}
INLINE vi fixed_of(vf x, vf slope, vf offset)
{
    return _mm256_cvtps_epi32(fma_f32(x, slope, offset));
}

/* Four vectors in fixed point, narrowed with saturation: the upper halves of lanes are the values; the lower halves are
   unchanged below 128, which includes every undecided lane.  least: the bytewise minimum of the two parts. */
typedef vi fixed_lows;
typedef vi fixed_half;
struct fixed_block {
    fixed_half ab, cd;
    fixed_lows least;
};
INLINE fixed_half fixed_halve(vi a, vi b)
{
    return _mm256_packs_epi16(a, b);
}
INLINE struct fixed_block fixed_join(fixed_half ab, fixed_half cd)
{
    return (struct fixed_block){ab, cd, _mm256_min_epu8(ab, cd)};
}

/* Whether a lower half is below `limit`, at most 128: limit less that half, saturated, is then not 0. */
INLINE bool fixed_below(vi least, uint8_t limit)
{
    vi over = _mm256_subs_epu8(splat_s32(limit * 0x10001), least);
    return !_mm256_testz_si256(over, over);
}
INLINE vi fixed_least(vi a, vi b)
{
    return _mm256_min_epu8(a, b);
}

/* The values, signed, in the order of elements. */
INLINE vi fixed_values(const struct fixed_block *block)
{
    vi bytes = _mm256_packus_epi16(_mm256_srli_epi16(block->ab, 8), _mm256_srli_epi16(block->cd, 8));
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
INLINE vi and_s32(vi a, vi b)
{
    return _mm256_and_si256(a, b);
}
INLINE vi xor_s32(vi a, vi b)
{
    return _mm256_xor_si256(a, b);
}
INLINE vi splat_s8(int32_t x)
{
    return _mm256_set1_epi8((char)x);
}
INLINE vi clamp_s8(vi x, vi low, vi high)
{
    return _mm256_min_epi8(_mm256_max_epi8(x, low), high);
}

INLINE vf choose_by_sign(vf x, vf positive, vf negative)
{
    return _mm256_blendv_ps(positive, negative, x);
}

/* x * 2^left, saturating, left >= 0.  Where shifting back does not give x, the sign of x decides.  Shifts of 32 and
   more give 0, which equals x for x = 0 alone. */
INLINE vi shift_left_saturating(vi x, vi left)
{
    vi shifted = _mm256_sllv_epi32(x, left);
    vi fits = _mm256_cmpeq_epi32(_mm256_srav_epi32(shifted, left), x);
    vi limit = _mm256_xor_si256(_mm256_srai_epi32(x, 31), splat_s32(INT32_MAX));
    return _mm256_blendv_epi8(limit, shifted, fits);
}

/* (x * m + 2^30) >> 31, m >= 0: nothing saturates. */
INLINE vi high_mul(vi x, vi m)
{
    vi half = _mm256_set1_epi64x((int64_t)1 << 30);
    vi even = _mm256_add_epi64(_mm256_mul_epi32(x, m), half);
    vi odd = _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(m, 32)), half);
    return _mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xAA);
}

/* x / 2^n, ties away from zero, 0 <= n <= 31: gemmlowp's own form, which cannot overflow. */
INLINE vi shift_away(vi x, vi n)
{
    vi mask = _mm256_sub_epi32(_mm256_sllv_epi32(splat_s32(1), n), splat_s32(1));
    vi threshold = _mm256_sub_epi32(_mm256_srli_epi32(mask, 1), _mm256_srai_epi32(x, 31));
    vi above = _mm256_cmpgt_epi32(_mm256_and_si256(x, mask), threshold);
    return _mm256_sub_epi32(_mm256_srav_epi32(x, n), above);
}

/* x / 2^n, ties up, 0 <= n <= 31: adds the last bit that is shifted out; n = 0 shifts out none. */
INLINE vi shift_up(vi x, vi n)
{
    vi some = _mm256_min_epi32(n, splat_s32(1));
    vi last = _mm256_and_si256(_mm256_srav_epi32(x, _mm256_sub_epi32(n, some)), some);
    return _mm256_add_epi32(_mm256_srav_epi32(x, n), last);
}

/* (x * m + 2^(total - 1)) >> total, 31 <= total <= 62, where the result fits int32.  AVX2 has no arithmetic 64-bit
   shift: 2^63 is added, the sum shifted, and 2^63 >> total subtracted. */
#define SINGLE_SHIFTS_LEFT 0
INLINE vi single_half(vi product, vi total)
{
    vi top = _mm256_set1_epi64x(INT64_MIN), one = _mm256_set1_epi64x(1);
    vi half = _mm256_sllv_epi64(one, _mm256_sub_epi64(total, one));
    vi sum = _mm256_xor_si256(_mm256_add_epi64(product, half), top);
    return _mm256_sub_epi64(_mm256_srlv_epi64(sum, total), _mm256_srlv_epi64(top, total));
}
INLINE vi mul_single(vi x, vi m, vi total)
{
    vi even = single_half(_mm256_mul_epi32(x, m), _mm256_and_si256(total, _mm256_set1_epi64x(0xFFFFFFFF)));
    vi odd =
        single_half(_mm256_mul_epi32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(m, 32)), _mm256_srli_epi64(total, 32));
    return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
}

/* away(clamp(x * m, low, high)) in float64, rounded as in away_s32. */
INLINE __m128i away_half(__m256d x, __m256d low, __m256d high)
{
    x = _mm256_max_pd(low, _mm256_min_pd(high, x));
    __m256d sign = _mm256_and_pd(x, _mm256_set1_pd(-0.0));
    return _mm256_cvttpd_epi32(_mm256_add_pd(x, _mm256_or_pd(sign, _mm256_set1_pd(0x1.fffffffffffffp-2))));
}
INLINE vi mul_f64_away(vi x, vd m, vi low, vi high)
{
    __m128i x0 = _mm256_castsi256_si128(x), x1 = _mm256_extracti128_si256(x, 1);
    __m256d low0 = _mm256_cvtepi32_pd(_mm256_castsi256_si128(low));
    __m256d low1 = _mm256_cvtepi32_pd(_mm256_extracti128_si256(low, 1));
    __m256d high0 = _mm256_cvtepi32_pd(_mm256_castsi256_si128(high));
    __m256d high1 = _mm256_cvtepi32_pd(_mm256_extracti128_si256(high, 1));
    __m128i a = away_half(_mm256_mul_pd(_mm256_cvtepi32_pd(x0), m.low), low0, high0);
    __m128i b = away_half(_mm256_mul_pd(_mm256_cvtepi32_pd(x1), m.high), low1, high1);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
}

/* even(x), saturated to int32.  The conversion gives INT32_MIN on both sides; above, its bits are inverted. */
INLINE vi even_saturating(vf x)
{
    vf over = _mm256_cmp_ps(x, splat_f32(2147483648.0f), _CMP_GE_OQ);
    return _mm256_xor_si256(_mm256_cvtps_epi32(x), _mm256_castps_si256(over));
}

/* Conversions of one vector. */
INLINE vf convert_f64_f32(const double *p)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(_mm256_loadu_pd(p + 4)), _mm256_cvtpd_ps(_mm256_loadu_pd(p)));
}
INLINE vf convert_f16_f32(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
INLINE vf convert_bf16_f32(const uint16_t *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(load_u16(p), 16));
}
INLINE void convert_f32_f16(const float *p, uint16_t *out)
{
    _mm_storeu_si128((__m128i *)out, _mm256_cvtps_ph(load_f32(p), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
INLINE void convert_f32_bf16(const float *p, uint16_t *out)
{
    vi bits = _mm256_castps_si256(load_f32(p)), top = _mm256_srli_epi32(bits, 16);
    vi odd = _mm256_and_si256(top, splat_s32(1));
    vi rounded = _mm256_srli_epi32(add_s32(add_s32(bits, splat_s32(0x7FFF)), odd), 16);
    vi nan = _mm256_cmpgt_epi32(_mm256_and_si256(bits, splat_s32(0x7FFFFFFF)), splat_s32(0x7F800000));
    vi bfloats = _mm256_blendv_epi8(rounded, _mm256_or_si256(top, splat_s32(0x40)), nan);
    bfloats = _mm256_permute4x64_epi64(_mm256_packus_epi32(bfloats, bfloats), 0xD8);
    _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(bfloats));
}
/* clang-format on */
