/* SPDX-License-Identifier: Apache-2.0
 *
 * Requantize, integers to integers: tq_requantize of quant/rounding.h by each rule, where q - input zero point and
 * product + zero point fit int32.  Multipliers are not negative.
 *
 * 8-bit values are computed in fixed point (fixed_simd.h), and by the exact rule where undecided.  Fixed point computes
 * a floor, and each rule is one.  With acc = q - input zero point, r = acc * M and M = m * 2^-(31 + n):
 *
 *     n = 0          floor(r + 1/2) under all rules
 *   n > 0:
 *     single         floor(r + 1/2)
 *     up, double     H = floor(acc * m / 2^31 + 1/2), and floors nest, so that
 *                    floor((H + 2^(n-1)) / 2^n) = floor(r + 1/2 + d), d = 2^-(n+1);
 *                    double subtracts 1 from H where H < 0: there d = 2^-(n+1) - 2^-n = -2^-(n+1).
 *                    (acc < 0 instead of H < 0 differs for H = 0 alone, where it changes nothing.)
 *     float64-away   floor(r + 1/2), except for its ties and 2^-45 of r, rounded to float64
 *     float32-even   floor(r + 1/2), except for its ties and the roundings of acc, which v has too, and of r
 *
 * A left shift that saturates leaves |r| > 2^30: the result saturates too.
 *
 * In the exact rules the product is clamped to [low - z, high - z] before z is added, which cannot overflow and
 * gives the same result.
 */
struct requantize_lane {
    vi multiplier, left, right, zero_point, input_zero_point;
    vf real_f32;
    vd real;
};

INLINE vi requantize_ints(const int32_t *column, size_t at, bool lanes)
{
    return lanes ? load_s32(column + at) : splat_s32(column[at]);
}

/* The parameters that a rule reads; other columns may be missing. */
INLINE struct requantize_lane requantize_load(const tq_requantize_params *p, size_t at, bool lanes, int rule)
{
    struct requantize_lane c;
    c.zero_point = requantize_ints(p->zero_point, at, lanes);
    c.input_zero_point = requantize_ints(p->input_zero_point, at, lanes);
    c.multiplier = c.left = c.right = splat_s32(0);
    c.real_f32 = splat_f32(0);
    c.real = splat_f64(0);
    if (rule == TQ_REQUANTIZE_FLOAT64_AWAY) {
        c.real = lanes ? load_f64(p->real + at) : splat_f64(p->real[at]);
    } else if (rule == TQ_REQUANTIZE_FLOAT32_EVEN) {
        c.real_f32 = lanes ? load_f32(p->real_f32 + at) : splat_f32(p->real_f32[at]);
    } else {
        c.multiplier = requantize_ints(p->multiplier, at, lanes);
        c.left = requantize_ints(p->left, at, lanes);
        c.right = requantize_ints(p->right, at, lanes);
    }
    return c;
}

/* Parameters of fixed point; offset_negative: for acc < 0. */
struct requantize_fixed_lane {
    vf slope, offset, offset_negative;
    vi input_zero_point;
};

INLINE vi requantize_high(vi acc, const struct requantize_lane *c, bool shifts_left)
{
    return high_mul(shifts_left ? shift_left_saturating(acc, c->left) : acc, c->multiplier);
}

/* The product of acc by a rule: within int32, not yet clamped to [below, above]. */
INLINE vi requantize_product(vi acc, const struct requantize_lane *c, vi below, vi above, bool shifts_left, int rule)
{
    switch (rule) {
    case TQ_REQUANTIZE_DOUBLE: return shift_away(requantize_high(acc, c, shifts_left), c->right);
    case TQ_REQUANTIZE_UP: return shift_up(requantize_high(acc, c, shifts_left), c->right);
    case TQ_REQUANTIZE_SINGLE:
        return mul_single(acc, c->multiplier, add_s32(sub_s32(splat_s32(31), c->left), c->right));
    case TQ_REQUANTIZE_FLOAT64_AWAY: return mul_f64_away(acc, c->real, below, above);
    default: return even_saturating(mul_f32(float_of_s32(acc), c->real_f32));
    }
}

INLINE vi requantize_vector(vi q, const struct requantize_lane *c, const tq_requantize_params *p, int rule)
{
    const vi below = sub_s32(splat_s32(p->low), c->zero_point), above = sub_s32(splat_s32(p->high), c->zero_point);
    const vi acc = sub_s32(q, c->input_zero_point);
    const vi product = requantize_product(acc, c, below, above, p->shifts_left, rule);
    return add_s32(clamp_s32(product, below, above), c->zero_point);
}

INLINE void requantize_block_by(vi block[4], const tq_requantize_params *p, size_t at, bool lanes, int rule)
{
    const struct requantize_lane row = requantize_load(p, at, false, rule);
    for (size_t k = 0; k < 4; k++) {
        const struct requantize_lane c = lanes ? requantize_load(p, at + k * LANES, true, rule) : row;
        block[k] = requantize_vector(block[k], &c, p, rule);
    }
}

/* A block by the exact rule, in place. */
APART void requantize_block(vi block[4], const tq_requantize_params *p, size_t at, bool lanes, int rule)
{
    switch (rule) {
    case TQ_REQUANTIZE_DOUBLE: requantize_block_by(block, p, at, lanes, TQ_REQUANTIZE_DOUBLE); break;
    case TQ_REQUANTIZE_UP: requantize_block_by(block, p, at, lanes, TQ_REQUANTIZE_UP); break;
    case TQ_REQUANTIZE_SINGLE: requantize_block_by(block, p, at, lanes, TQ_REQUANTIZE_SINGLE); break;
    case TQ_REQUANTIZE_FLOAT64_AWAY: requantize_block_by(block, p, at, lanes, TQ_REQUANTIZE_FLOAT64_AWAY); break;
    default: requantize_block_by(block, p, at, lanes, TQ_REQUANTIZE_FLOAT32_EVEN);
    }
}

/* Whether vectors cannot compute these parameters: the scalar bodies do. */
INLINE bool requantize_needs_scalar(const tq_requantize_params *p, int rule)
{
    return p->wide || (rule == TQ_REQUANTIZE_SINGLE && !SINGLE_SHIFTS_LEFT && p->shifts_left);
}

#define IN i8
#include "kernels/elementwise/requantize_8bit_simd.h"
#define IN u8
#include "kernels/elementwise/requantize_8bit_simd.h"
#define IN i16
#include "kernels/elementwise/requantize_8bit_simd.h"
#define IN i32
#include "kernels/elementwise/requantize_8bit_simd.h"

#if LANES <= 8 /* elementwise.def */
#define IN i8
#define OUT i16
#include "kernels/elementwise/requantize_exact_simd.h"
#define IN i8
#define OUT i32
#include "kernels/elementwise/requantize_exact_simd.h"
#define IN u8
#define OUT i16
#include "kernels/elementwise/requantize_exact_simd.h"
#define IN u8
#define OUT i32
#include "kernels/elementwise/requantize_exact_simd.h"
#define IN i16
#define OUT i16
#include "kernels/elementwise/requantize_exact_simd.h"
#define IN i16
#define OUT i32
#include "kernels/elementwise/requantize_exact_simd.h"
#endif
#define IN i32
#define OUT i16
#include "kernels/elementwise/requantize_exact_simd.h"
#define IN i32
#define OUT i32
#include "kernels/elementwise/requantize_exact_simd.h"
