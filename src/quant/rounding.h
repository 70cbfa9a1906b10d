/* SPDX-License-Identifier: Apache-2.0
 *
 * Every scalar rounding rule, once, by name.  Everything else in tq that rounds calls these, and
 * every SIMD variant equals them bit for bit.
 *
 * The rules a user can name are the rows of quant/rounding.def, where each has its formula and
 * source.  All functions are defined for every argument: where the runtime's C would overflow, shift
 * too far or convert out of range (undefined, in practice a wrap or INT_MIN), these saturate.
 * Floating point is IEEE in the default mode (nearest, ties to even), with nothing fused.
 */
#ifndef TQ_QUANT_ROUNDING_H
#define TQ_QUANT_ROUNDING_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/round.h"

typedef enum tq_quantize_rule {
#define QUANTIZE_RULE(symbol, name, text) TQ_QUANTIZE_##symbol,
#include "quant/rounding.def"
    TQ_QUANTIZE_RULES
} tq_quantize_rule;

typedef enum tq_requantize_rule {
#define REQUANTIZE_RULE(symbol, name, text) TQ_REQUANTIZE_##symbol,
#include "quant/rounding.def"
    TQ_REQUANTIZE_RULES
} tq_requantize_rule;

/* C leaves >> of a negative number to the implementation; gcc, clang and MSVC shift arithmetically,
   and this file relies on it. */
_Static_assert((-1 >> 1) == -1, "arithmetic right shift");

/* ---- saturation ---- */

static inline int32_t tq_clamp_i64(int64_t x, int64_t low, int64_t high)
{
    return (int32_t)(x < low ? low : x > high ? high : x);
}

static inline int32_t tq_saturate_i32(int64_t x)
{
    return tq_clamp_i64(x, INT32_MIN, INT32_MAX);
}

/* x * 2^shift for shift >= 0.  Beyond 31 places only the sign is left, so the shift stops there:
   |x| * 2^31 <= 2^62 fits. */
static inline int32_t tq_shift_left_saturating(int32_t x, int shift)
{
    return tq_saturate_i32((int64_t)x * ((int64_t)1 << (shift < 31 ? shift : 31)));
}

/* The quantized value of a scaled value that is already an integer or an infinity; NaN gives the zero point.
   Quantized values and zero points span less than 2^32, so past 2^33 only the side matters. */
static inline int32_t tq_value_of_rounded(double rounded, int32_t zero_point, int32_t low, int32_t high)
{
    const double far = 8589934592.0;
    if (rounded != rounded)
        return zero_point;
    rounded = rounded < -far ? -far : rounded > far ? far : rounded;
    return tq_clamp_i64((int64_t)rounded + zero_point, low, high);
}

/* ---- float to quantized value; low <= zero_point <= high, scale finite and > 0 ---- */

static inline int32_t tq_quantize_away(float x, float scale, int32_t zero_point, int32_t low, int32_t high)
{
    return tq_value_of_rounded(tq_round_f32(x / scale), zero_point, low, high);
}

/* `inverse` is tq_inverse_scale(scale).  A scale below 2^-128 has the inverse infinity: then every
   x but 0 saturates, and 0 * infinity, a NaN, gives the zero point, as it should. */
static inline float tq_inverse_scale(float scale)
{
    return 1.0f / scale;
}

static inline int32_t tq_quantize_even(float x, float inverse, int32_t zero_point, int32_t low, int32_t high)
{
    return tq_value_of_rounded(rintf(x * inverse), zero_point, low, high);
}

/* ---- quantized value to float: the reference kernels' f32(scale * (q - zero_point)) ---- */

/* The difference is exact in 64 bits and rounds once on its way to float32; it fits int32, as in
   the runtime, for every type but int32 itself. */
static inline float tq_dequantize(int32_t q, float scale, int32_t zero_point)
{
    return (float)((int64_t)q - zero_point) * scale;
}

/* ---- fixed point: a real multiplier is m * 2^(e - 31), its parts "multiplier" and "shift" ---- */

/* gemmlowp's H: a * b / 2^31, ties up (its truncating division of a * b + 2^30, or 1 - 2^30 for
   negative products, is this floor).  Only INT32_MIN squared overflows. */
static inline int32_t tq_saturating_rounding_doubling_high_mul(int32_t a, int32_t b)
{
    return tq_saturate_i32(((int64_t)a * b + ((int64_t)1 << 30)) >> 31);
}

/* gemmlowp's R: x / 2^exponent, ties away from zero.  The runtime's exponents are 0 to 31; below 0
   counts as 0, and beyond 33 the result is 0 whatever the exponent, so it stops at 62, where the
   sum still fits.  The bias is half a unit, less one where x is negative, so that a tie falls. */
static inline int32_t tq_rounding_divide_by_pot(int32_t x, int exponent)
{
    if (exponent <= 0)
        return x;
    exponent = exponent < 62 ? exponent : 62;
    return (int32_t)(((int64_t)x + ((int64_t)1 << (exponent - 1)) - (x < 0)) >> exponent);
}

/* x / 2^exponent, ties up; exponents as above. */
static inline int32_t tq_rounding_shift_right_up(int32_t x, int exponent)
{
    if (exponent <= 0)
        return x;
    exponent = exponent < 62 ? exponent : 62;
    return (int32_t)(((int64_t)x + ((int64_t)1 << (exponent - 1))) >> exponent);
}

/* The right part of a shift.  63 places leave what any more would, and -INT_MIN is not an int. */
static inline int tq_right_shift_of(int shift)
{
    return shift >= 0 ? 0 : shift < -63 ? 63 : -shift;
}

/* MultiplyByQuantizedMultiplier, by rule.  The left shift saturates. */
static inline int32_t tq_multiply_double(int32_t x, int32_t multiplier, int shift)
{
    int32_t left = tq_shift_left_saturating(x, shift > 0 ? shift : 0);
    int32_t high = tq_saturating_rounding_doubling_high_mul(left, multiplier);
    return tq_rounding_divide_by_pot(high, tq_right_shift_of(shift));
}

static inline int32_t tq_multiply_up(int32_t x, int32_t multiplier, int shift)
{
    int32_t left = tq_shift_left_saturating(x, shift > 0 ? shift : 0);
    int32_t high = tq_saturating_rounding_doubling_high_mul(left, multiplier);
    return tq_rounding_shift_right_up(high, tq_right_shift_of(shift));
}

/* One rounding, ties up; the result saturates.  The rule is for shifts of -31 to 30, and others
   count as the nearest of these (quantize_multiplier never gives them: see its saturating form).
   |x * multiplier| <= 2^62 and the bias is at most 2^61: no overflow. */
static inline int32_t tq_multiply_single(int32_t x, int32_t multiplier, int shift)
{
    int total = 31 - (shift < -31 ? -31 : shift > 30 ? 30 : shift);
    return tq_saturate_i32(((int64_t)x * multiplier + ((int64_t)1 << (total - 1))) >> total);
}

/* The 64-bit form's parts: 15 bits of multiplier, and how far products are shifted, 1 to 46. */
static inline void tq_reduce_multiplier(int32_t multiplier, int shift, int32_t *reduced, int32_t *total)
{
    int32_t positive = multiplier < 0 ? 0 : multiplier;
    *reduced = positive < 0x7FFF0000 ? (positive + (1 << 15)) >> 16 : 0x7FFF;
    *total = 15 - (shift < -31 ? -31 : shift > 14 ? 14 : shift);
}

/* The 64-bit form (16x8 operators): 15 bits of multiplier, one rounding, ties up.  The runtime's
   contract is -2^47 <= x < 2^47, -31 <= shift <= 7, multiplier >= 0, and what is released keeps on
   up to a shift of 14.  x, shifts and a negative multiplier beyond these saturate, and so does the
   result to int32.  |x * reduced| < 2^62: no overflow. */
static inline int32_t tq_multiply_i64(int64_t x, int32_t multiplier, int shift)
{
    const int64_t limit = (int64_t)1 << 47;
    int32_t reduced, total;
    tq_reduce_multiplier(multiplier, shift, &reduced, &total);
    x = x < -limit ? -limit : x >= limit ? limit - 1 : x;
    return tq_saturate_i32((x * reduced + ((int64_t)1 << (total - 1))) >> total);
}

/* real = multiplier * 2^(shift - bits), 2^(bits - 1) <= |multiplier| < 2^bits, rounded ties away; 0 for 0 and
   for |real| < 2^-32, which is flushed.  real must be finite; bits: 2 to 31.  With 31 this is the runtime's
   round(frexp(real, &exponent) * 2^31), on the bits: a fraction of 53 bits, 1/2 or more, loses its
   last 53 - bits; below the normal numbers everything is flushed. */
static inline void tq_quantize_multiplier_bits(double real, int number_of_bits, int32_t *multiplier, int *shift)
{
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7FF) - 1022;
    bool negative = bits >> 63 != 0;
    uint64_t fraction = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    const int dropped = 53 - number_of_bits;
    int64_t fixed = (int64_t)((fraction + ((uint64_t)1 << (dropped - 1))) >> dropped);
    /* The runtime leaves -2^31, which fits, alone. */
    if (fixed == (int64_t)1 << number_of_bits && !(negative && number_of_bits == 31)) {
        fixed /= 2;
        exponent++;
    }
    bool flushed = exponent < -31;
    *multiplier = flushed ? 0 : (int32_t)(negative ? -fixed : fixed);
    *shift = flushed ? 0 : exponent;
}

/* real = multiplier * 2^(shift - 31): the runtime's QuantizeMultiplier. */
static inline void tq_quantize_multiplier(double real, int32_t *multiplier, int *shift)
{
    tq_quantize_multiplier_bits(real, 31, multiplier, shift);
}

/* What single-rounding builds do: a shift above 30 saturates to (2^31 - 1, 30). */
static inline void tq_quantize_multiplier_single(double real, int32_t *multiplier, int *shift)
{
    tq_quantize_multiplier(real, multiplier, shift);
    if (*shift > 30) {
        *multiplier = INT32_MAX;
        *shift = 30;
    }
}

/* ---- quantized value to quantized value ---- */

/* One real multiplier in every form that a rule needs, and the rule. */
typedef struct tq_multiplier {
    double f64;
    float f32;
    int32_t fixed; /* with shift: by tq_quantize_multiplier, its single form for that rule */
    int shift;
    tq_requantize_rule rule;
} tq_multiplier;

static inline tq_multiplier tq_multiplier_of(double real, tq_requantize_rule rule)
{
    tq_multiplier m = {real, (float)real, 0, 0, rule};
    if (rule == TQ_REQUANTIZE_SINGLE)
        tq_quantize_multiplier_single(real, &m.fixed, &m.shift);
    else
        tq_quantize_multiplier(real, &m.fixed, &m.shift);
    return m;
}

static inline int32_t tq_requantize_fixed(int32_t product, int32_t zero_point, int32_t low, int32_t high)
{
    return tq_clamp_i64((int64_t)product + zero_point, low, high);
}

/* acc: the quantized input less the input's zero point. */
static inline int32_t tq_requantize(int32_t acc, const tq_multiplier *m, tq_requantize_rule rule, int32_t zero_point,
                                    int32_t low, int32_t high)
{
    switch (rule) {
    case TQ_REQUANTIZE_DOUBLE:
        return tq_requantize_fixed(tq_multiply_double(acc, m->fixed, m->shift), zero_point, low, high);
    case TQ_REQUANTIZE_SINGLE:
        return tq_requantize_fixed(tq_multiply_single(acc, m->fixed, m->shift), zero_point, low, high);
    case TQ_REQUANTIZE_UP: return tq_requantize_fixed(tq_multiply_up(acc, m->fixed, m->shift), zero_point, low, high);
    case TQ_REQUANTIZE_FLOAT64_AWAY:
        return tq_value_of_rounded(tq_round_f64((double)acc * m->f64), zero_point, low, high);
    case TQ_REQUANTIZE_FLOAT32_EVEN: return tq_value_of_rounded(rintf((float)acc * m->f32), zero_point, low, high);
    case TQ_REQUANTIZE_RULES: break;
    }
    return zero_point;
}

/* The rules of int64 accumulators. */
typedef enum tq_requantize_i64_rule {
#define REQUANTIZE_I64_RULE(symbol, name, text) TQ_REQUANTIZE_I64_##symbol,
#include "quant/rounding.def"
    TQ_REQUANTIZE_I64_RULES
} tq_requantize_i64_rule;

/* A 64-bit sum of 16x8 operators: by the rule FLOAT64_AWAY, or else by the 64-bit form. */
static inline int32_t tq_requantize_i64(int64_t acc, const tq_multiplier *m, tq_requantize_rule rule,
                                        int32_t zero_point, int32_t low, int32_t high)
{
    if (rule == TQ_REQUANTIZE_FLOAT64_AWAY)
        return tq_value_of_rounded(tq_round_f64((double)acc * m->f64), zero_point, low, high);
    return tq_requantize_fixed(tq_multiply_i64(acc, m->fixed, m->shift), zero_point, low, high);
}

#endif
