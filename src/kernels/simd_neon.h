/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector operations of elementwise_simd.h and the products in aarch64 Advanced SIMD: 4 lanes.  simd_avx2.h explains
 * the methods; here only differences have comments.
 */
/* clang-format off: one operation a line */
#include <arm_neon.h>

#include "kernels/half.h"
#include "kernels/inline.h"

#define ISA neon
#define LANES 4
#define TARGET
#define INLINE TQ_INLINE

typedef float32x4_t vf;
typedef int32x4_t vi;
typedef struct {
    float64x2_t low, high;
} vd;

INLINE vf load_f32(const float *p)
{
    return vld1q_f32(p);
}
INLINE vf in_register_f32(vf x)
{
    return x;
} /* there are no other loads */
INLINE vf splat_f32(float x)
{
    return vdupq_n_f32(x);
}
INLINE vi load_s32(const int32_t *p)
{
    return vld1q_s32(p);
}
INLINE vi splat_s32(int32_t x)
{
    return vdupq_n_s32(x);
}
INLINE vd load_f64(const double *p)
{
    return (vd){vld1q_f64(p), vld1q_f64(p + 2)};
}
INLINE vd splat_f64(double x)
{
    return (vd){vdupq_n_f64(x), vdupq_n_f64(x)};
}

INLINE uint32x2_t load_4_bytes(const void *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return vdup_n_u32(word);
}
INLINE vi load_i8(const int8_t *p)
{
    return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u32(load_4_bytes(p)))));
}
INLINE vi load_u8(const uint8_t *p)
{
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(load_4_bytes(p))))));
}
INLINE vi load_i16(const int16_t *p)
{
    return vmovl_s16(vld1_s16(p));
}
INLINE vi load_u16(const uint16_t *p)
{
    return vreinterpretq_s32_u32(vmovl_u16(vld1_u16(p)));
}
INLINE vi load_i32(const int32_t *p)
{
    return load_s32(p);
}

/* There is no intrinsic for non-temporal stores: `stream` changes nothing. */
INLINE int16x8_t narrow(vi a, vi b)
{
    return vcombine_s16(vqmovn_s32(a), vqmovn_s32(b));
}
INLINE void store4_u8(uint8_t *p, const vi x[4], bool stream)
{
    (void)stream;
    vst1q_u8(p, vcombine_u8(vqmovun_s16(narrow(x[0], x[1])), vqmovun_s16(narrow(x[2], x[3]))));
}
INLINE int16x8_t narrow_with(vi a, vi b, vi zero)
{
    return vqaddq_s16(narrow(a, b), vreinterpretq_s16_s32(zero));
}
INLINE vi saturated_s8(const vi x[4], vi zero)
{
    int16x8_t ab = narrow_with(x[0], x[1], zero), cd = narrow_with(x[2], x[3], zero);
    return vreinterpretq_s32_s8(vcombine_s8(vqmovn_s16(ab), vqmovn_s16(cd)));
}
INLINE vi splat_s16(int32_t x)
{
    return vreinterpretq_s32_s16(vdupq_n_s16((int16_t)x));
}
INLINE void store4_i16(int16_t *p, const vi x[4], bool stream)
{
    (void)stream;
    vst1q_s16(p, narrow(x[0], x[1]));
    vst1q_s16(p + 8, narrow(x[2], x[3]));
}
INLINE void store4_u16(uint16_t *p, const vi x[4], bool stream)
{
    (void)stream;
    vst1q_u16(p, vcombine_u16(vqmovun_s32(x[0]), vqmovun_s32(x[1])));
    vst1q_u16(p + 8, vcombine_u16(vqmovun_s32(x[2]), vqmovun_s32(x[3])));
}
INLINE void store4_i32(int32_t *p, const vi x[4], bool stream)
{
    (void)stream;
    for (int k = 0; k < 4; k++)
        vst1q_s32(p + k * LANES, x[k]);
}
INLINE void store4_f32(float *p, const vf x[4], bool stream)
{
    (void)stream;
    for (int k = 0; k < 4; k++)
        vst1q_f32(p + k * LANES, x[k]);
}
INLINE void end_stream(void)
{
}

INLINE vf mul_f32(vf a, vf b)
{
    return vmulq_f32(a, b);
}
INLINE vf min_f32(vf a, vf b)
{
    return vminq_f32(a, b);
}
INLINE vf div_f32(vf a, vf b)
{
    return vdivq_f32(a, b);
}
INLINE vi add_s32(vi a, vi b)
{
    return vaddq_s32(a, b);
}
INLINE vi sub_s32(vi a, vi b)
{
    return vsubq_s32(a, b);
}
INLINE vi clamp_s32(vi x, vi low, vi high)
{
    return vmaxq_s32(low, vminq_s32(high, x));
}
INLINE vf float_of_s32(vi x)
{
    return vcvtq_f32_s32(x);
}
INLINE vi even_s32(vf x)
{
    return vcvtnq_s32_f32(x);
}
INLINE vf clamp_f32(vf x, vf low, vf high)
{
    return vmaxq_f32(low, vminq_f32(high, x));
} /* NaN stays */
INLINE vf zero_if_nan(vf x)
{
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x), vceqq_f32(x, x)));
}
INLINE vi away_s32(vf x)
{
    return vcvtaq_s32_f32(x);
}

/* The conversion saturates, and NaN gives 0.  The low 16 bits of INT32_MIN and 0 are undecided (fixed_simd.h);
   INT32_MAX gives the right value. */
INLINE vf fma_f32(vf x, vf slope, vf offset)
{
    return vfmaq_f32(offset, x, slope);
}
INLINE vi fixed_of(vf x, vf slope, vf offset)
{
    return vcvtnq_s32_f32(fma_f32(x, slope, offset));
}
/* The upper halves, in the order of elements, apart from the lower halves; least: the minimum of the lower halves. */
typedef uint16x8_t fixed_lows;
typedef struct {
    int16x8_t high;
    uint16x8_t low;
} fixed_half;
struct fixed_block {
    int16x8_t ab, cd;
    fixed_lows least;
};
INLINE fixed_half fixed_halve(vi a, vi b)
{
    int16x8_t first = vreinterpretq_s16_s32(a), second = vreinterpretq_s16_s32(b);
    return (fixed_half){vuzp2q_s16(first, second), vreinterpretq_u16_s16(vuzp1q_s16(first, second))};
}
INLINE struct fixed_block fixed_join(fixed_half ab, fixed_half cd)
{
    return (struct fixed_block){ab.high, cd.high, vminq_u16(ab.low, cd.low)};
}
INLINE bool fixed_below(uint16x8_t least, uint8_t limit)
{
    return vminvq_u16(least) < limit;
}
INLINE uint16x8_t fixed_least(uint16x8_t a, uint16x8_t b)
{
    return vminq_u16(a, b);
}
INLINE vi fixed_values(const struct fixed_block *block)
{
    return vreinterpretq_s32_s8(vcombine_s8(vqmovn_s16(block->ab), vqmovn_s16(block->cd)));
}
INLINE vi and_s32(vi a, vi b)
{
    return vandq_s32(a, b);
}
INLINE vi xor_s32(vi a, vi b)
{
    return veorq_s32(a, b);
}
INLINE vi splat_s8(int32_t x)
{
    return vreinterpretq_s32_s8(vdupq_n_s8((int8_t)x));
}
INLINE vi clamp_s8(vi x, vi low, vi high)
{
    int8x16_t values = vmaxq_s8(vreinterpretq_s8_s32(x), vreinterpretq_s8_s32(low));
    return vreinterpretq_s32_s8(vminq_s8(values, vreinterpretq_s8_s32(high)));
}
INLINE void put(void *p, vi x, bool stream)
{
    (void)stream;
    vst1q_s32(p, x);
}
INLINE vf choose_by_sign(vf x, vf positive, vf negative)
{
    return vbslq_f32(vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_f32(x), 31)), negative, positive);
}

/* The instruction reads its shift as a signed byte: 128 and more would become another shift. */
INLINE vi shift_left_saturating(vi x, vi left)
{
    return vqshlq_s32(x, vminq_s32(left, splat_s32(32)));
}
INLINE vi high_mul(vi x, vi m)
{
    return vqrdmulhq_s32(x, m);
}
INLINE vi shift_up(vi x, vi n)
{
    return vrshlq_s32(x, vnegq_s32(n));
}

/* The instruction rounds ties up, so 1 is subtracted first where x < 0 and n > 0.  INT32_MIN saturates, which is right:
   its only tie is at n = 32. */
INLINE vi shift_away(vi x, vi n)
{
    vi less = vandq_s32(vshrq_n_s32(x, 31), vreinterpretq_s32_u32(vcgtq_s32(n, splat_s32(0))));
    return vrshlq_s32(vqaddq_s32(x, less), vnegq_s32(n));
}

#define SINGLE_SHIFTS_LEFT 1
INLINE int32x2_t single_half(int32x2_t x, int32x2_t m, int32x2_t total)
{
    return vqmovn_s64(vrshlq_s64(vmull_s32(x, m), vnegq_s64(vmovl_s32(total))));
}
INLINE vi mul_single(vi x, vi m, vi total)
{
    return vcombine_s32(single_half(vget_low_s32(x), vget_low_s32(m), vget_low_s32(total)),
                        single_half(vget_high_s32(x), vget_high_s32(m), vget_high_s32(total)));
}

INLINE float64x2_t f64_of_s32(int32x2_t x)
{
    return vcvtq_f64_s64(vmovl_s32(x));
}
INLINE int32x2_t away_half(int32x2_t x, float64x2_t m, int32x2_t low, int32x2_t high)
{
    float64x2_t product = vmulq_f64(f64_of_s32(x), m);
    product = vmaxq_f64(f64_of_s32(low), vminq_f64(f64_of_s32(high), product));
    return vmovn_s64(vcvtaq_s64_f64(product));
}
INLINE vi mul_f64_away(vi x, vd m, vi low, vi high)
{
    return vcombine_s32(away_half(vget_low_s32(x), m.low, vget_low_s32(low), vget_low_s32(high)),
                        away_half(vget_high_s32(x), m.high, vget_high_s32(low), vget_high_s32(high)));
}
INLINE vi even_saturating(vf x)
{
    return vcvtnq_s32_f32(x);
}

INLINE vf convert_f64_f32(const double *p)
{
    return vcvt_high_f32_f64(vcvt_f32_f64(vld1q_f64(p)), vld1q_f64(p + 2));
}
INLINE vf convert_f16_f32(const uint16_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
INLINE vf convert_bf16_f32(const uint16_t *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}
INLINE void convert_f32_f16(const float *p, uint16_t *out)
{
    vst1_u16(out, vreinterpret_u16_f16(vcvt_f16_f32(load_f32(p))));
}
INLINE void convert_f32_bf16(const float *p, uint16_t *out)
{
    uint32x4_t bits = vreinterpretq_u32_f32(load_f32(p)), top = vshrq_n_u32(bits, 16);
    uint32x4_t odd = vandq_u32(top, vdupq_n_u32(1));
    uint32x4_t rounded = vshrq_n_u32(vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7FFF)), odd), 16);
    uint32x4_t nan = vcgtq_u32(vandq_u32(bits, vdupq_n_u32(0x7FFFFFFF)), vdupq_n_u32(0x7F800000));
    vst1_u16(out, vmovn_u32(vbslq_u32(nan, vorrq_u32(top, vdupq_n_u32(0x40)), rounded)));
}
/* clang-format on */
