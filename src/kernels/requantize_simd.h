/* SPDX-License-Identifier: Apache-2.0
 *
 * Requantize, integers to codes: tq_requantize of quant/rounding.h by each rule, where q - input zero
 * point and product + zero point fit int32.  Multipliers are not negative.
 *
 * The product is clamped to [low - z, high - z] before z is added, which cannot overflow and gives the
 * same code.
 */
struct requantize_lane {
    vi multiplier, left, right, zero_point, input_zero_point;
    vf real_f32;
    vd real;
};

INLINE struct requantize_lane requantize_load(const tq_requantize_params *p, size_t at, bool lanes)
{
    if (lanes)
        return (struct requantize_lane){load_s32(p->multiplier + at),       load_s32(p->left + at),
                                        load_s32(p->right + at),            load_s32(p->zero_point + at),
                                        load_s32(p->input_zero_point + at), load_f32(p->real_f32 + at),
                                        load_f64(p->real + at)};
    return (struct requantize_lane){splat_s32(p->multiplier[at]),       splat_s32(p->left[at]),
                                    splat_s32(p->right[at]),            splat_s32(p->zero_point[at]),
                                    splat_s32(p->input_zero_point[at]), splat_f32(p->real_f32[at]),
                                    splat_f64(p->real[at])};
}

/* Each rule: the product of acc, not yet clamped, but in range of int32. */
INLINE vi requantize_high(vi acc, const struct requantize_lane *c, bool shifts_left)
{
    return high_mul(shifts_left ? shift_left_saturating(acc, c->left) : acc, c->multiplier);
}
#define RULE_double(acc, c, below, above) shift_away(requantize_high(acc, c, shifts_left), (c)->right)
#define RULE_up(acc, c, below, above) shift_up(requantize_high(acc, c, shifts_left), (c)->right)
#define RULE_single(acc, c, below, above) \
    mul_single(acc, (c)->multiplier, add_s32(sub_s32(splat_s32(31), (c)->left), (c)->right))
#define RULE_float64_away(acc, c, below, above) mul_f64_away(acc, (c)->real, below, above)
#define RULE_float32_even(acc, c, below, above) even_saturating(mul_f32(float_of_s32(acc), (c)->real_f32))

/* What a vector body of the rule cannot do. */
#define BEYOND_double(p) false
#define BEYOND_up(p) false
#define BEYOND_single(p) (!SINGLE_SHIFTS_LEFT && (p)->shifts_left)
#define BEYOND_float64_away(p) false
#define BEYOND_float32_even(p) false

/* Whether there are left shifts that take a body of their own. */
#define LEFT_double(p) (p)->shifts_left
#define LEFT_up(p) (p)->shifts_left
#define LEFT_single(p) false
#define LEFT_float64_away(p) false
#define LEFT_float32_even(p) false

#define DEFINE_requantize(rule, in, out)                                                                        \
    INLINE void step_requantize_##rule##_##in##_##out(const element_##in *x, element_##out *y,                  \
                                                      const tq_requantize_params *p, size_t at, bool lanes,     \
                                                      bool shifts_left)                                         \
    {                                                                                                           \
        vi code[4];                                                                                             \
        for (int k = 0; k < 4; k++) {                                                                           \
            struct requantize_lane c = requantize_load(p, lanes ? at + (size_t)k * LANES : at, lanes);          \
            vi below = sub_s32(splat_s32(p->low), c.zero_point);                                                \
            vi above = sub_s32(splat_s32(p->high), c.zero_point);                                               \
            vi acc = sub_s32(load_##in(x + k * LANES), c.input_zero_point);                                     \
            code[k] = add_s32(clamp_s32(RULE_##rule(acc, &c, below, above), below, above), c.zero_point);       \
        }                                                                                                       \
        (void)shifts_left;                                                                                      \
        store4_##out(y, code, false);                                                                           \
    }                                                                                                           \
    INLINE void step_left_##rule##_##in##_##out(const element_##in *x, element_##out *y,                        \
                                                const tq_requantize_params *p, size_t at, bool lanes,           \
                                                bool unused)                                                    \
    {                                                                                                           \
        step_requantize_##rule##_##in##_##out(x, y, p, at, lanes, !unused);                                     \
    }                                                                                                           \
    INLINE void sweep_requantize_##rule##_##in##_##out(const element_##in *x, element_##out *y, size_t n,       \
                                                       const tq_requantize_params *p, size_t first, bool lanes) \
    {                                                                                                           \
        if (p->wide || BEYOND_##rule(p))                                                                        \
            (lanes ? tq_requantize_##rule##_##in##_##out##__scalar_lanes                                        \
                   : tq_requantize_##rule##_##in##_##out##__scalar_row)(x, y, n, p, first);                     \
        else if (LEFT_##rule(p))                                                                                \
            WALK(in, out, step_left_##rule##_##in##_##out, false);                                              \
        else                                                                                                    \
            WALK(in, out, step_requantize_##rule##_##in##_##out, false);                                        \
    }
#define DEFINE_requantize_double(in, out) DEFINE_requantize(double, in, out)
#define DEFINE_requantize_single(in, out) DEFINE_requantize(single, in, out)
#define DEFINE_requantize_up(in, out) DEFINE_requantize(up, in, out)
#define DEFINE_requantize_float64_away(in, out) DEFINE_requantize(float64_away, in, out)
#define DEFINE_requantize_float32_even(in, out) DEFINE_requantize(float32_even, in, out)
