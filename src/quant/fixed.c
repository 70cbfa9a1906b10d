/* SPDX-License-Identifier: Apache-2.0 */
#include "quant/fixed.h"

/* Element i of operand k. */
#define AT(type, k) (*(type *)(data[k] + (ptrdiff_t)i * strides[k]))

void tq_fixed_high_mul(char *const *data, const ptrdiff_t *strides, size_t n)
{
    for (size_t i = 0; i < n; i++)
        AT(int32_t, 2) = tq_saturating_rounding_doubling_high_mul(AT(int32_t, 0), AT(int32_t, 1));
}

void tq_fixed_divide_by_pot(char *const *data, const ptrdiff_t *strides, size_t n)
{
    for (size_t i = 0; i < n; i++)
        AT(int32_t, 2) = tq_rounding_divide_by_pot(AT(int32_t, 0), AT(int32_t, 1));
}

void tq_fixed_multiply_i64(char *const *data, const ptrdiff_t *strides, size_t n)
{
    for (size_t i = 0; i < n; i++)
        AT(int32_t, 3) = tq_multiply_i64(AT(int64_t, 0), AT(int32_t, 1), AT(int32_t, 2));
}

static bool is_float_rule(tq_requantize_rule rule)
{
    return rule == TQ_REQUANTIZE_FLOAT64_AWAY || rule == TQ_REQUANTIZE_FLOAT32_EVEN;
}

/* The real form, multiplier * 2^(shift - 31), exactly, where the rule reads it.  Past 2000 places either
   way every rule gives what it gives at 2000: 0, the ends of int32, or an infinity; and the shift can
   be negated. */
static inline tq_multiplier given(int32_t multiplier, int32_t shift, tq_requantize_rule rule)
{
    int near = shift < -2000 ? -2000 : shift > 2000 ? 2000 : shift;
    double real = is_float_rule(rule) ? ldexp(multiplier, near - 31) : 0;
    return (tq_multiplier){real, (float)real, multiplier, near, rule};
}

/* One function a rule, so that the switch in tq_requantize is decided outside the loop. */
#define REQUANTIZE_RULE(symbol, name, text)                                                                      \
    static void multiply_##symbol(char *const *data, const ptrdiff_t *strides, size_t n)                         \
    {                                                                                                            \
        for (size_t i = 0; i < n; i++) {                                                                         \
            tq_multiplier m = given(AT(int32_t, 1), AT(int32_t, 2), TQ_REQUANTIZE_##symbol);                     \
            AT(int32_t, 3) = tq_requantize(AT(int32_t, 0), &m, TQ_REQUANTIZE_##symbol, 0, INT32_MIN, INT32_MAX); \
        }                                                                                                        \
    }
#include "quant/rounding.def"

tq_fixed_loop tq_fixed_multiply(tq_requantize_rule rule)
{
    static const tq_fixed_loop loops[] = {
#define REQUANTIZE_RULE(symbol, name, text) multiply_##symbol,
#include "quant/rounding.def"
    };
    return loops[rule];
}

static int64_t low_bits(int64_t x, int bits)
{
    return bits <= 0 ? 0 : x & (int64_t)(((uint64_t)1 << (bits < 63 ? bits : 63)) - 1);
}

/* Rules double and up: H, then a rounding shift. */
static void explain_high(int32_t acc, tq_requantize_rule rule, tq_requantize_steps *s)
{
    int shift = s->multiplier.shift;
    s->shifted = tq_shift_left_saturating(acc, shift > 0 ? shift : 0);
    s->product = (int64_t)s->shifted * s->multiplier.fixed;
    s->high = tq_saturating_rounding_doubling_high_mul(s->shifted, s->multiplier.fixed);
    s->right_shift = shift < 0 ? -shift : 0;
    s->remainder = low_bits(s->high, s->right_shift);
    s->scaled = rule == TQ_REQUANTIZE_DOUBLE ? tq_rounding_divide_by_pot(s->high, s->right_shift)
                                             : tq_rounding_shift_right_up(s->high, s->right_shift);
}

static void explain_single(int32_t acc, tq_requantize_steps *s)
{
    int shift = s->multiplier.shift;
    s->shifted = acc;
    s->product = (int64_t)acc * s->multiplier.fixed;
    s->right_shift = 31 - (shift < -31 ? -31 : shift > 30 ? 30 : shift); /* as the rule reads it */
    s->remainder = low_bits(s->product, s->right_shift);
    s->scaled = tq_multiply_single(acc, s->multiplier.fixed, s->multiplier.shift);
}

void tq_requantize_explain(int32_t acc, const tq_multiplier *multiplier, tq_requantize_rule rule, int32_t zero_point,
                           int32_t low, int32_t high, tq_requantize_steps *steps)
{
    tq_requantize_steps s = {.multiplier = *multiplier, .shifted = acc, .real_product = acc * multiplier->f64};
    switch (rule) {
    case TQ_REQUANTIZE_DOUBLE:
    case TQ_REQUANTIZE_UP: explain_high(acc, rule, &s); break;
    case TQ_REQUANTIZE_SINGLE: explain_single(acc, &s); break;
    case TQ_REQUANTIZE_FLOAT64_AWAY: s.scaled = tq_round_f64(s.real_product); break;
    case TQ_REQUANTIZE_FLOAT32_EVEN:
        s.real_product = (float)acc * multiplier->f32;
        s.scaled = rintf((float)s.real_product);
        break;
    case TQ_REQUANTIZE_RULES: break;
    }
    s.quantized = tq_requantize(acc, multiplier, rule, zero_point, low, high);
    *steps = s;
}
