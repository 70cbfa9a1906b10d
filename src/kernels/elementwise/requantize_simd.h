/* SPDX-License-Identifier: Apache-2.0
 *
 * Requantize, integers to codes: tq_requantize of quant/rounding.h by each rule, where q - input zero
 * point and product + zero point fit int32.  Multipliers are not negative.
 *
 * 8-bit codes go through fixed_simd.h, and by the exact rule where that says so.  For that, each rule is a
 * floor.  With acc = q - input zero point, r = acc * M, M = m * 2^-(31 + n), and n > 0,
 *     single             floor(r + 1/2)
 *     up, double         H = floor(acc * m / 2^31 + 1/2), and floors nest, so that
 *                        floor((H + 2^(n-1)) / 2^n) = floor(r + 1/2 + d), d = 2^-(n + 1);
 *                        double takes one off H where H < 0 (or acc < 0, which differs for H = 0 alone, where
 *                        it changes nothing): there d = 2^-(n+1) - 2^-n = -2^-(n+1)
 *     float64-away       floor(r + 1/2), but for its ties and 2^-45 of r, rounded to float64
 *     float32-even       floor(r + 1/2), but for its ties and the roundings of acc, which v has too, and of r
 * and for n = 0 all of them are floor(r + 1/2).  A left shift that saturates leaves |r| > 2^30: the code
 * saturates too.
 *
 * In the exact rules the product is clamped to [low - z, high - z] before z is added, which cannot overflow and
 * gives the same code.
 */
struct requantize_lane {
    vi multiplier, left, right, zero_point, input_zero_point;
    vf real_f32, slope, offset, offset_negative;
    vd real;
};

INLINE struct requantize_lane requantize_load(const tq_requantize_params *p, size_t at, bool lanes)
{
    struct requantize_lane c;
    c.multiplier = lanes ? load_s32(p->multiplier + at) : splat_s32(p->multiplier[at]);
    c.left = lanes ? load_s32(p->left + at) : splat_s32(p->left[at]);
    c.right = lanes ? load_s32(p->right + at) : splat_s32(p->right[at]);
    c.zero_point = lanes ? load_s32(p->zero_point + at) : splat_s32(p->zero_point[at]);
    c.input_zero_point = lanes ? load_s32(p->input_zero_point + at) : splat_s32(p->input_zero_point[at]);
    c.real_f32 = lanes ? load_f32(p->real_f32 + at) : splat_f32(p->real_f32[at]);
    c.slope = lanes ? load_f32(p->slope + at) : splat_f32(p->slope[at]);
    c.offset = lanes ? load_f32(p->offset + at) : splat_f32(p->offset[at]);
    c.offset_negative = lanes ? load_f32(p->offset_negative + at) : splat_f32(p->offset_negative[at]);
    c.real = lanes ? load_f64(p->real + at) : splat_f64(p->real[at]);
    return c;
}

struct requantize_fast {
    vf slope, offset, offset_negative;
    vi input_zero_point;
};

INLINE struct requantize_fast requantize_load_fast(const tq_requantize_params *p, const struct requantize_lane *row,
                                                   size_t at, enum vary vary)
{
    if (!vary)
        return (struct requantize_fast){row->slope, row->offset, row->offset_negative, row->input_zero_point};
    return (struct requantize_fast){keep_f32(load_f32(p->slope + at)), keep_f32(load_f32(p->offset + at)),
                                    keep_f32(load_f32(p->offset_negative + at)), load_s32(p->input_zero_point + at)};
}

/* Each rule exactly: the product of acc, not yet clamped, but in range of int32. */
INLINE vi requantize_high(vi acc, const struct requantize_lane *c, bool shifts_left)
{
    return high_mul(shifts_left ? shift_left_saturating(acc, c->left) : acc, c->multiplier);
}
#define RULE_double(acc, c, below, above) shift_away(requantize_high(acc, c, p->shifts_left), (c)->right)
#define RULE_up(acc, c, below, above) shift_up(requantize_high(acc, c, p->shifts_left), (c)->right)
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

/* How acc becomes fixed point. */
#define OFFSET_double(acc, c) choose_by_sign(acc, (c).offset, (c).offset_negative)
#define OFFSET_up(acc, c) (c).offset
#define OFFSET_single(acc, c) (c).offset
#define OFFSET_float64_away(acc, c) (c).offset
#define OFFSET_float32_even(acc, c) (c).offset

#define DEFINE_requantize_exact(rule, in, out)                                                                     \
    INLINE void exactly_##rule##_##in##_##out(const element_##in *x, element_##out *y,                             \
                                              const tq_requantize_params *p, const struct requantize_lane *row,    \
                                              size_t at, bool lanes, bool stream)                                  \
    {                                                                                                              \
        vi code[4];                                                                                                \
        for (int k = 0; k < 4; k++) {                                                                              \
            struct requantize_lane c = lanes ? requantize_load(p, at + (size_t)k * LANES, true) : *row;            \
            vi below = sub_s32(splat_s32(p->low), c.zero_point);                                                   \
            vi above = sub_s32(splat_s32(p->high), c.zero_point);                                                  \
            vi acc = sub_s32(load_##in(x + k * LANES), c.input_zero_point);                                        \
            code[k] = add_s32(clamp_s32(RULE_##rule(acc, &c, below, above), below, above), c.zero_point);          \
        }                                                                                                          \
        store4_##out(y, code, stream);                                                                             \
    }

#define DEFINE_step_exact(rule, in, out)                                                                           \
    DEFINE_requantize_exact(rule, in, out)                                                                         \
    INLINE void step_requantize_##rule##_##in##_##out(const element_##in *x, element_##out *y,                     \
                                                      const tq_requantize_params *p,                               \
                                                      const struct requantize_lane *row, size_t at,                \
                                                      enum vary vary, bool stream)                                 \
    {                                                                                                              \
        exactly_##rule##_##in##_##out(x, y, p, row, at, vary, stream);                                             \
    }                                                                                                              \
    DEFINE_PAIR_OF_STEPS(requantize_##rule##_##in##_##out, in, out, tq_requantize_params, struct requantize_lane)

/* As in quantize_simd.h. */
#define DEFINE_step_fixed(rule, in, out)                                                                           \
    DEFINE_requantize_exact(rule, in, out)                                                                         \
    RARELY void exact_##rule##_##in##_##out(const element_##in *x, element_##out *y,                               \
                                            const tq_requantize_params *p, size_t at, bool lanes)                  \
    {                                                                                                              \
        struct requantize_lane row = requantize_load(p, at, false);                                                \
        exactly_##rule##_##in##_##out(x, y, p, &row, at, lanes, false);                                            \
    }                                                                                                              \
    INLINE vi fixed_##rule##_##in##_##out(const element_##in *x, const struct requantize_fast *c)                  \
    {                                                                                                              \
        vi q = load_##in(x);                                                                                       \
        vf acc = float_of_s32(sizeof *x == 4 ? q : sub_s32(q, c->input_zero_point)); /* not wide: int32 has 0 */   \
        return fixed_of(acc, c->slope, OFFSET_##rule(acc, *c));                                                    \
    }                                                                                                              \
    INLINE void end_##rule##_##in##_##out(const struct fixed_block *block, const element_##in *x, element_##out *y,\
                                          const tq_requantize_params *p, size_t at, bool lanes, bool stream)       \
    {                                                                                                              \
        if (fixed_doubts(block->least, p->doubtful))                                                                   \
            exact_##rule##_##in##_##out(x, y, p, at, lanes);                                                       \
        else                                                                                                       \
            put(y, fixed_codes_##out(block), stream);                                                              \
    }                                                                                                              \
    INLINE void step_requantize_##rule##_##in##_##out(const element_##in *x, element_##out *y,                     \
                                                      const tq_requantize_params *p,                               \
                                                      const struct requantize_lane *row, size_t at,                \
                                                      enum vary vary, bool stream)                                 \
    {                                                                                                              \
        struct fixed_block block;                                                                                  \
        FIXED_BLOCK(block, struct requantize_fast, requantize_load_fast, fixed_##rule##_##in##_##out);             \
        end_##rule##_##in##_##out(&block, x, y, p, at, vary, stream);                                              \
    }                                                                                                              \
    INLINE void pair_requantize_##rule##_##in##_##out(const element_##in *x, element_##out *y,                     \
                                                      const element_##in *x2, element_##out *y2,                   \
                                                      const tq_requantize_params *p,                               \
                                                      const struct requantize_lane *row, size_t at,                \
                                                      size_t further, enum vary vary, bool stream)                 \
    {                                                                                                              \
        struct fixed_block one, two;                                                                               \
        FIXED_PAIR(one, two, struct requantize_fast, requantize_load_fast, fixed_##rule##_##in##_##out);           \
        if (fixed_doubts(fixed_least(one.least, two.least), p->doubtful)) {                                            \
            end_##rule##_##in##_##out(&one, x, y, p, at, vary, stream);                                            \
            end_##rule##_##in##_##out(&two, x2, y2, p, at + further, vary, stream);                                \
        } else {                                                                                                   \
            put(y, fixed_codes_##out(&one), stream);                                                               \
            put(y2, fixed_codes_##out(&two), stream);                                                              \
        }                                                                                                          \
    }

/* Groups of rows (fixed_group_simd.h), of accumulators alone: their input has no zero point, and nothing is done in
   place. */
struct requantize_offsets {
    vf offset, offset_negative;
};

INLINE struct requantize_offsets requantize_load_offsets(const tq_requantize_params *p, size_t at)
{
    return (struct requantize_offsets){keep_f32(load_f32(p->offset + at)), keep_f32(load_f32(p->offset_negative + at))};
}

#define LINES_exact(rule, in, out)
#define WALK_LINES_exact(rule, in, out) (void)0
#define WALK_LINED_exact(rule, in, out) (void)0
#define LINES_fixed(rule, in, out) DEFINE_LINES(rule, in, out, requantize_##rule##_##in##_##out)
#define WALK_LINES_fixed(rule, in, out) \
    if (sizeof *x == 4)                 \
    WALK_LINES(requantize_##rule##_##in##_##out)
#define WALK_LINED_fixed(rule, in, out)                                                        \
    if (sizeof *x == 4 && p->lines) {                                                          \
        lined_requantize_##rule##_##in##_##out(x, y, n, stride, rows, p, first);               \
        return;                                                                                \
    }

#define GROUPS_exact(rule, in, out)
#define WALK_GROUPS_exact(rule, in, out) (void)0
#define GROUPS_fixed(rule, in, out)                                                                                \
    INLINE vi grouped_##rule##_##in##_##out(const element_##in *x, const struct requantize_offsets *c,             \
                                            const float *slope)                                                    \
    {                                                                                                              \
        vf acc = float_of_s32(load_##in(x));                                                                       \
        return even_s32(fma_from_f32(acc, slope, OFFSET_##rule(acc, *c)));                                         \
    }                                                                                                              \
    DEFINE_GROUPS(requantize_##rule##_##in##_##out, in, out, tq_requantize_params, struct requantize_lane,         \
                  struct requantize_offsets, requantize_load, requantize_load_offsets, grouped_##rule##_##in##_##out, \
                  p->doubtful)
#define WALK_GROUPS_fixed(rule, in, out)                                                                           \
    if (sizeof *x == 4)                                                                                            \
    WALK_GROUPS(requantize_##rule##_##in##_##out)

#define DEFINE_requantize(rule, in, out, way)                                                                      \
    DEFINE_step_##way(rule, in, out)                                                                               \
    DEFINE_PART(requantize_##rule##_##in##_##out, in, out, tq_requantize_params, struct requantize_lane,           \
                requantize_load)                                                                                   \
    GROUPS_##way(rule, in, out)                                                                                    \
    LINES_##way(rule, in, out)                                                                                     \
    INLINE void sweep_requantize_##rule##_##in##_##out(const element_##in *x, element_##out *y, size_t n,          \
                                                       size_t rows, size_t stride,                                 \
                                                       const tq_requantize_params *params, size_t first,           \
                                                       bool lanes)                                                 \
    {                                                                                                              \
        const tq_requantize_params copy = *params, *p = &copy; /* which stores to y cannot change */               \
        if (p->wide || BEYOND_##rule(p))                                                                           \
            (lanes ? tq_requantize_##rule##_##in##_##out##__scalar_lanes                                           \
                   : tq_requantize_##rule##_##in##_##out##__scalar_row)(x, y, n, rows, stride, p, first);          \
        else if (lanes) {                                                                                          \
            WALK_LINES_##way(rule, in, out);                                                                       \
            WALK_GROUPS_##way(rule, in, out);                                                                      \
            WALK_LANES(requantize_##rule##_##in##_##out, struct requantize_lane, requantize_load, VARY_ALL,        \
                       SIZE_MAX);                                                                                  \
        } else {                                                                                                   \
            WALK_LINED_##way(rule, in, out);                                                                       \
            WALK_ROWS(requantize_##rule##_##in##_##out, struct requantize_lane, requantize_load, p->stream);       \
        }                                                                                                          \
    }

#define WAY_i8 fixed
#define WAY_u8 fixed
#define WAY_i16 exact
#define WAY_i32 exact
#define DEFINE_requantize_by(rule, in, out, way) DEFINE_requantize(rule, in, out, way)
#define DEFINE_requantize_double(in, out) DEFINE_requantize_by(double, in, out, WAY_##out)
#define DEFINE_requantize_single(in, out) DEFINE_requantize_by(single, in, out, WAY_##out)
#define DEFINE_requantize_up(in, out) DEFINE_requantize_by(up, in, out, WAY_##out)
#define DEFINE_requantize_float64_away(in, out) DEFINE_requantize_by(float64_away, in, out, WAY_##out)
#define DEFINE_requantize_float32_even(in, out) DEFINE_requantize_by(float32_even, in, out, WAY_##out)
