/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector operations of elementwise_simd.h and the products in AVX-512 F, BW, VL and DQ: 16 lanes.  simd_avx2.h
 * explains the methods; here only differences have comments.
 */
/* clang-format off: one operation a line */
#include <immintrin.h>

#include "kernels/half.h"
#include "kernels/inline.h"

#define ISA avx512
#define LANES 16
#ifndef TUNE /* of a file: the processor by whose costs it is compiled */
#define TUNE
#endif
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c" TUNE)))
#define INLINE TQ_INLINE TARGET

typedef __m512 vf;
typedef __m512i vi;
typedef struct {
    __m512d low, high;
} vd;

INLINE vf load_f32(const float *p)
{
    return _mm512_loadu_ps(p);
}
INLINE vf in_register_f32(vf x)
{
    __asm__("" : "+v"(x));
    return x;
}
INLINE vf splat_f32(float x)
{
    return _mm512_set1_ps(x);
}
INLINE vi load_s32(const int32_t *p)
{
    return _mm512_loadu_si512(p);
}
INLINE vi splat_s32(int32_t x)
{
    return _mm512_set1_epi32(x);
}
INLINE vd load_f64(const double *p)
{
    return (vd){_mm512_loadu_pd(p), _mm512_loadu_pd(p + 8)};
}
INLINE vd splat_f64(double x)
{
    return (vd){_mm512_set1_pd(x), _mm512_set1_pd(x)};
}

INLINE vi load_i8(const int8_t *p)
{
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p));
}
INLINE vi load_u8(const uint8_t *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}
INLINE vi load_i16(const int16_t *p)
{
    return _mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)p));
}
INLINE vi load_u16(const uint16_t *p)
{
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
}
INLINE vi load_i32(const int32_t *p)
{
    return load_s32(p);
}

INLINE void put(void *p, vi x, bool stream)
{
    if (stream)
        _mm512_stream_si512((__m512i *)p, x);
    else
        _mm512_storeu_si512(p, x);
}

INLINE vi order_i8(vi x)
{
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), x);
}
INLINE vi order_i16(vi x)
{
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), x);
}
INLINE void store4_u8(uint8_t *p, const vi x[4], bool stream)
{
    put(p, order_i8(_mm512_packus_epi16(_mm512_packs_epi32(x[0], x[1]), _mm512_packs_epi32(x[2], x[3]))), stream);
}
INLINE vi saturated_s8(const vi x[4], vi zero)
{
    vi ab = _mm512_adds_epi16(_mm512_packs_epi32(x[0], x[1]), zero);
    vi cd = _mm512_adds_epi16(_mm512_packs_epi32(x[2], x[3]), zero);
    return order_i8(_mm512_packs_epi16(ab, cd));
}
INLINE vi splat_s16(int32_t x)
{
    return _mm512_set1_epi16((short)x);
}
INLINE void store4_i16(int16_t *p, const vi x[4], bool stream)
{
    put(p, order_i16(_mm512_packs_epi32(x[0], x[1])), stream);
    put(p + 32, order_i16(_mm512_packs_epi32(x[2], x[3])), stream);
}
INLINE void store4_u16(uint16_t *p, const vi x[4], bool stream)
{
    put(p, order_i16(_mm512_packus_epi32(x[0], x[1])), stream);
    put(p + 32, order_i16(_mm512_packus_epi32(x[2], x[3])), stream);
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
            _mm512_stream_ps(p + k * LANES, x[k]);
        else
            _mm512_storeu_ps(p + k * LANES, x[k]);
}
INLINE void end_stream(void)
{
    _mm_sfence();
}

INLINE vf mul_f32(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
INLINE vf min_f32(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
INLINE vf div_f32(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
INLINE vi add_s32(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}
INLINE vi sub_s32(vi a, vi b)
{
    return _mm512_sub_epi32(a, b);
}
INLINE vi clamp_s32(vi x, vi low, vi high)
{
    return _mm512_max_epi32(low, _mm512_min_epi32(high, x));
}
INLINE vf float_of_s32(vi x)
{
    return _mm512_cvtepi32_ps(x);
}
INLINE vi even_s32(vf x)
{
    return _mm512_cvtps_epi32(x);
}
INLINE vf clamp_f32(vf x, vf low, vf high)
{
    return _mm512_max_ps(low, _mm512_min_ps(high, x));
}
INLINE vf zero_if_nan(vf x)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x);
}

INLINE vi away_s32(vf x)
{
    vf sign = _mm512_and_ps(x, splat_f32(-0.0f));
    return _mm512_cvttps_epi32(_mm512_add_ps(x, _mm512_or_ps(sign, splat_f32(0x1.fffffep-2f))));
}

INLINE vf fma_f32(vf x, vf slope, vf offset)
{
    return _mm512_fmadd_ps(x, slope, offset);
}
INLINE vi fixed_of(vf x, vf slope, vf offset)
{
    return _mm512_cvtps_epi32(fma_f32(x, slope, offset));
}
typedef vi fixed_lows;
typedef vi fixed_half;
struct fixed_block {
    fixed_half ab, cd;
    fixed_lows least;
};
INLINE fixed_half fixed_halve(vi a, vi b)
{
    return _mm512_packs_epi16(a, b);
}
INLINE struct fixed_block fixed_join(fixed_half ab, fixed_half cd)
{
    return (struct fixed_block){ab, cd, _mm512_min_epu8(ab, cd)};
}
INLINE bool fixed_below(vi least, uint8_t limit)
{
    return _mm512_cmplt_epu8_mask(least, splat_s32(limit * 0x10001)) != 0; /* no upper half is below 0 */
}
INLINE vi fixed_least(vi a, vi b)
{
    return _mm512_min_epu8(a, b);
}
INLINE vi fixed_values(const struct fixed_block *block)
{
    return order_i8(_mm512_packus_epi16(_mm512_srli_epi16(block->ab, 8), _mm512_srli_epi16(block->cd, 8)));
}
INLINE vi and_s32(vi a, vi b)
{
    return _mm512_and_si512(a, b);
}
INLINE vi xor_s32(vi a, vi b)
{
    return _mm512_xor_si512(a, b);
}
INLINE vi splat_s8(int32_t x)
{
    return _mm512_set1_epi8((char)x);
}
INLINE vi clamp_s8(vi x, vi low, vi high)
{
    return _mm512_min_epi8(_mm512_max_epi8(x, low), high);
}

INLINE vf choose_by_sign(vf x, vf positive, vf negative)
{
    return _mm512_mask_mov_ps(positive, _mm512_movepi32_mask(_mm512_castps_si512(x)), negative);
}

INLINE vi shift_left_saturating(vi x, vi left)
{
    vi shifted = _mm512_sllv_epi32(x, left);
    vi limit = _mm512_xor_si512(_mm512_srai_epi32(x, 31), splat_s32(INT32_MAX));
    __mmask16 fits = _mm512_cmpeq_epi32_mask(_mm512_srav_epi32(shifted, left), x);
    return _mm512_mask_mov_epi32(limit, fits, shifted);
}

INLINE vi high_mul(vi x, vi m)
{
    vi half = _mm512_set1_epi64((int64_t)1 << 30);
    vi even = _mm512_add_epi64(_mm512_mul_epi32(x, m), half);
    vi odd = _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(x, 32), _mm512_srli_epi64(m, 32)), half);
    return _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 31), 0xAAAA, _mm512_slli_epi64(odd, 1));
}

INLINE vi shift_away(vi x, vi n)
{
    vi mask = _mm512_sub_epi32(_mm512_sllv_epi32(splat_s32(1), n), splat_s32(1));
    vi threshold = _mm512_sub_epi32(_mm512_srli_epi32(mask, 1), _mm512_srai_epi32(x, 31));
    vi shifted = _mm512_srav_epi32(x, n);
    __mmask16 above = _mm512_cmpgt_epi32_mask(_mm512_and_si512(x, mask), threshold);
    return _mm512_mask_add_epi32(shifted, above, shifted, splat_s32(1));
}

INLINE vi shift_up(vi x, vi n)
{
    vi some = _mm512_min_epi32(n, splat_s32(1));
    vi last = _mm512_and_si512(_mm512_srav_epi32(x, _mm512_sub_epi32(n, some)), some);
    return _mm512_add_epi32(_mm512_srav_epi32(x, n), last);
}

/* 1 <= total <= 62; the result saturates. */
#define SINGLE_SHIFTS_LEFT 1
INLINE __m256i single_half(__m256i x, __m256i m, __m256i total)
{
    vi shift = _mm512_cvtepi32_epi64(total), one = _mm512_set1_epi64(1);
    vi half = _mm512_sllv_epi64(one, _mm512_sub_epi64(shift, one));
    vi product = _mm512_mul_epi32(_mm512_cvtepi32_epi64(x), _mm512_cvtepi32_epi64(m));
    return _mm512_cvtsepi64_epi32(_mm512_srav_epi64(_mm512_add_epi64(product, half), shift));
}
INLINE __m256i high_half(vi x)
{
    return _mm512_extracti64x4_epi64(x, 1);
}
INLINE __m256i low_half(vi x)
{
    return _mm512_castsi512_si256(x);
}
INLINE vi mul_single(vi x, vi m, vi total)
{
    __m256i a = single_half(low_half(x), low_half(m), low_half(total));
    __m256i b = single_half(high_half(x), high_half(m), high_half(total));
    return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}

INLINE __m256i away_half(__m512d x, __m512d low, __m512d high)
{
    x = _mm512_max_pd(low, _mm512_min_pd(high, x));
    __m512d sign = _mm512_and_pd(x, _mm512_set1_pd(-0.0));
    return _mm512_cvttpd_epi32(_mm512_add_pd(x, _mm512_or_pd(sign, _mm512_set1_pd(0x1.fffffffffffffp-2))));
}
INLINE vi mul_f64_away(vi x, vd m, vi low, vi high)
{
    __m256i a = away_half(_mm512_mul_pd(_mm512_cvtepi32_pd(low_half(x)), m.low), _mm512_cvtepi32_pd(low_half(low)),
                          _mm512_cvtepi32_pd(low_half(high)));
    __m256i b = away_half(_mm512_mul_pd(_mm512_cvtepi32_pd(high_half(x)), m.high), _mm512_cvtepi32_pd(high_half(low)),
                          _mm512_cvtepi32_pd(high_half(high)));
    return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}

INLINE vi even_saturating(vf x)
{
    __mmask16 over = _mm512_cmp_ps_mask(x, splat_f32(2147483648.0f), _CMP_GE_OQ);
    return _mm512_mask_mov_epi32(_mm512_cvtps_epi32(x), over, splat_s32(INT32_MAX));
}

INLINE vf convert_f64_f32(const double *p)
{
    __m256 low = _mm512_cvtpd_ps(_mm512_loadu_pd(p)), high = _mm512_cvtpd_ps(_mm512_loadu_pd(p + 8));
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}
INLINE vf convert_f16_f32(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
INLINE vf convert_bf16_f32(const uint16_t *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(load_u16(p), 16));
}
INLINE void convert_f32_f16(const float *p, uint16_t *out)
{
    __m256i halves = _mm512_cvtps_ph(load_f32(p), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256((__m256i *)out, halves);
}
INLINE void convert_f32_bf16(const float *p, uint16_t *out)
{
    vi bits = _mm512_castps_si512(load_f32(p)), top = _mm512_srli_epi32(bits, 16);
    vi odd = _mm512_and_si512(top, splat_s32(1));
    vi rounded = _mm512_srli_epi32(add_s32(add_s32(bits, splat_s32(0x7FFF)), odd), 16);
    __mmask16 nan = _mm512_cmpgt_epi32_mask(_mm512_and_si512(bits, splat_s32(0x7FFFFFFF)), splat_s32(0x7F800000));
    vi bfloats = _mm512_mask_or_epi32(rounded, nan, top, splat_s32(0x40));
    _mm256_storeu_si256((__m256i *)out, _mm512_cvtepi32_epi16(bfloats));
}
/* clang-format on */
