/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantize, float32 to 8- and 16-bit codes: tq_quantize_away and tq_quantize_even of quant/rounding.h.
 *
 * 8-bit codes go through fixed_simd.h, and by the exact rule where that says so: a division is slow next to
 * memory.  16-bit codes lie near ties too often for that; they follow the rule at once.
 */
struct quantize_lane {
    vf scale, inverse, slope, offset, below, above;
    vi zero_point, lowest, highest; /* lowest, highest: bytes */
};

INLINE struct quantize_lane quantize_load(const tq_quantize_params *p, size_t at, bool lanes)
{
    struct quantize_lane c;
    c.scale = lanes ? load_f32(p->scale + at) : splat_f32(p->scale[at]);
    c.inverse = lanes ? load_f32(p->inverse + at) : splat_f32(p->inverse[at]);
    c.slope = lanes ? load_f32(p->slope + at) : splat_f32(p->slope[at]);
    c.offset = lanes ? load_f32(p->offset + at) : splat_f32(p->offset[at]);
    c.zero_point = lanes ? load_s32(p->zero_point + at) : splat_s32(p->zero_point[at]);
    /* exact: 8- and 16-bit codes */
    c.below = float_of_s32(sub_s32(splat_s32(p->low), c.zero_point));
    c.above = float_of_s32(sub_s32(splat_s32(p->high), c.zero_point));
    c.lowest = splat_s8(p->low);
    c.highest = splat_s8(p->high);
    return c;
}

INLINE vi quantize_vector(vf x, const struct quantize_lane *c, bool even)
{
    vf quotient = even ? mul_f32(x, c->inverse) : div_f32(x, c->scale);
    vf y = zero_if_nan(clamp_f32(quotient, c->below, c->above)); /* the bounds are integers: no tie moves */
    return add_s32(even ? even_s32(y) : away_s32(y), c->zero_point);
}

INLINE void quantize_exactly(const float *x, vi code[4], const tq_quantize_params *p, const struct quantize_lane *row,
                             size_t at, bool lanes, bool even)
{
    for (int k = 0; k < 4; k++) {
        struct quantize_lane c = lanes ? quantize_load(p, at + (size_t)k * LANES, true) : *row;
        code[k] = quantize_vector(load_f32(x + k * LANES), &c, even);
    }
}

struct quantize_fast {
    vf slope, offset;
};

INLINE struct quantize_fast quantize_load_fast(const tq_quantize_params *p, const struct quantize_lane *row, size_t at,
                                               enum vary vary)
{
    return (struct quantize_fast){vary ? keep_f32(load_f32(p->slope + at)) : row->slope,
                                  vary == VARY_ALL ? keep_f32(load_f32(p->offset + at)) : row->offset};
}

INLINE vi quantize_fixed(const float *x, const struct quantize_fast *c)
{
    return fixed_of(load_f32(x), c->slope, c->offset);
}

#define DEFINE_quantize_16(rule, is_even, out)                                                                     \
    INLINE void step_quantize_##rule##_##out(const float *x, element_##out *y, const tq_quantize_params *p,        \
                                             const struct quantize_lane *row, size_t at, enum vary vary,           \
                                             bool stream)                                                          \
    {                                                                                                              \
        vi code[4];                                                                                                \
        quantize_exactly(x, code, p, row, at, vary, is_even);                                                      \
        store4_##out(y, code, stream);                                                                             \
    }                                                                                                              \
    DEFINE_PAIR_OF_STEPS(quantize_##rule##_##out, f32, out, tq_quantize_params, struct quantize_lane)

/* The exact rule is a function of its own, out of the way of the loop's registers. */
#define DEFINE_quantize_8(rule, is_even, out)                                                                      \
    RARELY void exact_quantize_##rule##_##out(const float *x, element_##out *y, const tq_quantize_params *p,       \
                                              size_t at, bool lanes)                                               \
    {                                                                                                              \
        struct quantize_lane row = quantize_load(p, at, false);                                                    \
        vi code[4];                                                                                                \
        quantize_exactly(x, code, p, &row, at, lanes, is_even);                                                    \
        store4_##out(y, code, false);                                                                              \
    }                                                                                                              \
    INLINE void put_quantize_##rule##_##out(element_##out *y, const struct fixed_block *block,                     \
                                            const struct quantize_lane *row, bool clamp, bool stream)              \
    {                                                                                                              \
        vi codes = fixed_codes_##out(block);                                                                       \
        put(y, clamp ? clamp_##out(codes, row->lowest, row->highest) : codes, stream);                             \
    }                                                                                                              \
    INLINE void end_quantize_##rule##_##out(const struct fixed_block *block, const float *x, element_##out *y,     \
                                            const tq_quantize_params *p, const struct quantize_lane *row, size_t at,\
                                            bool lanes, bool stream)                                               \
    {                                                                                                              \
        if (fixed_doubts(block->least, 2 * TQ_FIXED_ERROR))                                                            \
            exact_quantize_##rule##_##out(x, y, p, at, lanes);                                                     \
        else                                                                                                       \
            put_quantize_##rule##_##out(y, block, row, p->clamp, stream);                                          \
    }                                                                                                              \
    INLINE void step_quantize_##rule##_##out(const float *x, element_##out *y, const tq_quantize_params *p,        \
                                             const struct quantize_lane *row, size_t at, enum vary vary,           \
                                             bool stream)                                                          \
    {                                                                                                              \
        struct fixed_block block;                                                                                  \
        FIXED_BLOCK(block, struct quantize_fast, quantize_load_fast, quantize_fixed);                              \
        end_quantize_##rule##_##out(&block, x, y, p, row, at, vary, stream);                                       \
    }                                                                                                              \
    INLINE void pair_quantize_##rule##_##out(const float *x, element_##out *y, const float *x2, element_##out *y2, \
                                             const tq_quantize_params *p, const struct quantize_lane *row,         \
                                             size_t at, size_t further, enum vary vary, bool stream)               \
    {                                                                                                              \
        struct fixed_block one, two;                                                                               \
        FIXED_PAIR(one, two, struct quantize_fast, quantize_load_fast, quantize_fixed);                            \
        if (fixed_doubts(fixed_least(one.least, two.least), 2 * TQ_FIXED_ERROR)) {                                     \
            end_quantize_##rule##_##out(&one, x, y, p, row, at, vary, stream);                                     \
            end_quantize_##rule##_##out(&two, x2, y2, p, row, at + further, vary, stream);                         \
        } else {                                                                                                   \
            put_quantize_##rule##_##out(y, &one, row, p->clamp, stream);                                           \
            put_quantize_##rule##_##out(y2, &two, row, p->clamp, stream);                                          \
        }                                                                                                          \
    }

/* Groups of rows (fixed_group_simd.h). */
INLINE struct quantize_fast quantize_load_group(const tq_quantize_params *p, size_t at)
{
    return (struct quantize_fast){keep_f32(load_f32(p->slope + at)), keep_f32(load_f32(p->offset + at))};
}

INLINE vi quantize_grouped(const float *x, const struct quantize_fast *c, const float *slope)
{
    (void)slope;
    return quantize_fixed(x, c);
}

#define GROUPS_16(rule, out)
#define WALK_GROUPS_16(rule, out) (void)0
#define GROUPS_8(rule, out)                                                                                        \
    DEFINE_GROUPS(quantize_##rule##_##out, f32, out, tq_quantize_params, struct quantize_lane, struct quantize_fast, \
                  quantize_load, quantize_load_group, quantize_grouped, 2 * TQ_FIXED_ERROR)
#define WALK_GROUPS_8(rule, out)                                                                                   \
    if (!p->clamp)                                                                                                 \
    WALK_GROUPS(quantize_##rule##_##out)

/* Brief rows: one look at the doubts of BRIEF_ROWS of them, after their codes are stored; where there are any, these
   rows are done again. */
#define BRIEF_ROWS 4
#define BRIEF_16(rule, out) \
    DEFINE_BRIEF(quantize_##rule##_##out, f32, out, tq_quantize_params, struct quantize_lane, quantize_load)
#define BRIEF_8(rule, out)                                                                                         \
    RARELY void careful_quantize_##rule##_##out(const float *x, element_##out *y, size_t n, size_t rows,           \
                                                size_t stride, const tq_quantize_params *p, size_t first)          \
    {                                                                                                              \
        for (; rows > 0; rows--, first++, x += stride, y += stride) {                                              \
            const struct quantize_lane row = quantize_load(p, first, false);                                       \
            for (size_t i = 0; i < n; i += BLOCK)                                                                  \
                step_quantize_##rule##_##out(x + i, y + i, p, &row, first, VARY_NOTHING, false);                   \
        }                                                                                                          \
    }                                                                                                              \
    static __attribute__((noinline)) TARGET void brief_quantize_##rule##_##out(                                    \
        const float *x, element_##out *y, size_t n, size_t rows, size_t stride, const tq_quantize_params *params,  \
        size_t first)                                                                                              \
    {                                                                                                              \
        const tq_quantize_params copy = *params, *p = &copy;                                                       \
        const float *slope = p->slope + first, *offset = p->offset + first;                                        \
        for (; rows >= BRIEF_ROWS; rows -= BRIEF_ROWS, first += BRIEF_ROWS) {                                      \
            const float *x0 = x;                                                                                   \
            element_##out *y0 = y;                                                                                 \
            fixed_lows least = fixed_no_doubt();                                                                   \
            for (int r = 0; r < BRIEF_ROWS; r++, x += stride, y += stride) {                                       \
                const struct quantize_fast c = {splat_f32(*slope++), splat_f32(*offset++)};                        \
                for (size_t i = 0; i < n; i += BLOCK) {                                                            \
                    vi v[4];                                                                                       \
                    for (size_t k = 0; k < 4; k++)                                                                 \
                        v[k] = quantize_fixed(x + i + k * LANES, &c);                                              \
                    struct fixed_block block = fixed_narrow(v);                                                    \
                    put(y + i, fixed_codes_##out(&block), false);                                                  \
                    least = fixed_least(least, block.least);                                                       \
                }                                                                                                  \
            }                                                                                                      \
            if (fixed_doubts(least, 2 * TQ_FIXED_ERROR))                                                           \
                careful_quantize_##rule##_##out(x0, y0, n, BRIEF_ROWS, stride, p, first);                          \
        }                                                                                                          \
        careful_quantize_##rule##_##out(x, y, n, rows, stride, p, first);                                          \
    }

#define DEFINE_quantize(rule, is_even, out, width)                                                                 \
    DEFINE_quantize_##width(rule, is_even, out)                                                                    \
    DEFINE_PART(quantize_##rule##_##out, f32, out, tq_quantize_params, struct quantize_lane, quantize_load)        \
    BRIEF_##width(rule, out)                                                                                       \
    GROUPS_##width(rule, out)                                                                                      \
    INLINE void sweep_quantize_##rule##_f32_##out(const float *x, element_##out *y, size_t n, size_t rows,         \
                                                  size_t stride, const tq_quantize_params *params, size_t first,   \
                                                  bool lanes)                                                      \
    {                                                                                                              \
        const tq_quantize_params copy = *params, *p = &copy; /* which stores to y cannot change */                 \
        if (p->steep)                                                                                              \
            (lanes ? tq_quantize_##rule##_f32_##out##__scalar_lanes                                                \
                   : tq_quantize_##rule##_f32_##out##__scalar_row)(x, y, n, rows, stride, p, first);               \
        else if (!lanes && IS_BRIEF && !p->clamp)                                                                  \
            brief_quantize_##rule##_##out(x, y, n, rows, stride, p, first);                                        \
        else if (!lanes)                                                                                           \
            WALK_ROWS(quantize_##rule##_##out, struct quantize_lane, quantize_load, p->stream);                    \
        else {                                                                                                     \
            WALK_GROUPS_##width(rule, out);                                                                        \
            if (p->one_zero_point)                                                                                 \
                WALK_LANES(quantize_##rule##_##out, struct quantize_lane, quantize_load, VARY_SCALE, 64);          \
            else                                                                                                   \
                WALK_LANES(quantize_##rule##_##out, struct quantize_lane, quantize_load, VARY_ALL, 64);            \
        }                                                                                                          \
    }

#define WIDTH_i8 8
#define WIDTH_u8 8
#define WIDTH_i16 16
#define WIDTH_u16 16
#define DEFINE_quantize_of(rule, is_even, out, width) DEFINE_quantize(rule, is_even, out, width)
#define DEFINE_quantize_away(in, out) DEFINE_quantize_of(away, false, out, WIDTH_##out)
#define DEFINE_quantize_even(in, out) DEFINE_quantize_of(even, true, out, WIDTH_##out)
