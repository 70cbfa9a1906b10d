/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantize, float32 to 8- and 16-bit codes: tq_quantize_away and tq_quantize_even of quant/rounding.h.
 *
 * 8-bit codes go through fixed_simd.h, and by the exact rule where that says so: a division is slow next to
 * memory.  16-bit codes lie near ties too often for that; they follow the rule at once.
 */

/* ---- the exact rule ---- */

struct quantize_lane {
    vf scale, below, above; /* scale: or its inverse, as the rule has it */
    vi zero_point;
};

/* The bounds are exact: 8- and 16-bit codes. */
INLINE struct quantize_lane quantize_lane(const tq_quantize_params *p, vf scale, vi zero_point)
{
    vf below = float_of_s32(sub_s32(splat_s32(p->low), zero_point));
    vf above = float_of_s32(sub_s32(splat_s32(p->high), zero_point));
    return (struct quantize_lane){scale, below, above, zero_point};
}

INLINE struct quantize_lane quantize_set(const tq_quantize_params *p, size_t at, bool even)
{
    return quantize_lane(p, splat_f32(even ? p->inverse[at] : p->scale[at]), splat_s32(p->zero_point[at]));
}

INLINE struct quantize_lane quantize_load(const tq_quantize_params *p, size_t at, bool even)
{
    return quantize_lane(p, load_f32((even ? p->inverse : p->scale) + at), load_s32(p->zero_point + at));
}

INLINE struct quantize_lane quantize_mix(const struct quantize_lane *a, const struct quantize_lane *b, int32_t cut,
                                         enum vary vary)
{
    vf scale = mix_f32(a->scale, b->scale, cut);
    if (vary == VARY_SCALE)
        return (struct quantize_lane){scale, a->below, a->above, a->zero_point};
    return (struct quantize_lane){scale, mix_f32(a->below, b->below, cut),
                                  mix_f32(a->above, b->above, cut), mix_s32(a->zero_point, b->zero_point, cut)};
}

INLINE vi quantize_vector(vf x, const struct quantize_lane *c, bool even)
{
    vf quotient = even ? mul_f32(x, c->scale) : div_f32(x, c->scale);
    vf y = zero_if_nan(clamp_f32(quotient, c->below, c->above)); /* the bounds are integers: no tie moves */
    return add_s32(even ? even_s32(y) : away_s32(y), c->zero_point);
}

/* ---- 16 bits ---- */

#define DEFINE_quantize_16(rule, is_even, out)                                                                     \
    INLINE struct quantize_lane set_quantize_##rule##_##out(const tq_quantize_params *p, size_t entry,             \
                                                            const struct quantize_lane *first, enum vary vary)     \
    {                                                                                                              \
        struct quantize_lane c = vary == VARY_ALL ? quantize_set(p, entry, is_even) : *first;                      \
        c.scale = splat_f32((is_even ? p->inverse : p->scale)[entry]);                                             \
        return c;                                                                                                  \
    }                                                                                                              \
    INLINE struct quantize_lane load_quantize_##rule##_##out(const tq_quantize_params *p, size_t at,               \
                                                             const struct quantize_lane *first, enum vary vary)    \
    {                                                                                                              \
        struct quantize_lane c = vary == VARY_ALL ? quantize_load(p, at, is_even) : *first;                        \
        c.scale = load_f32((is_even ? p->inverse : p->scale) + at);                                                \
        return c;                                                                                                  \
    }                                                                                                              \
    INLINE struct quantize_lane mix_quantize_##rule##_##out(const struct quantize_lane *a,                         \
                                                            const struct quantize_lane *b, int32_t cut,            \
                                                            enum vary vary)                                        \
    {                                                                                                              \
        return quantize_mix(a, b, cut, vary);                                                                      \
    }                                                                                                              \
    INLINE fixed_lows block_quantize_##rule##_##out(const float *x, element_##out *y,                              \
                                                    const struct quantize_lane c[4], const tq_quantize_params *p,  \
                                                    bool stream)                                                   \
    {                                                                                                              \
        vi code[4];                                                                                                \
        (void)p;                                                                                                   \
        for (int k = 0; k < 4; k++)                                                                                \
            code[k] = quantize_vector(load_f32(x + k * LANES), &c[k], is_even);                                    \
        store4_##out(y, code, stream);                                                                             \
        return fixed_no_doubt();                                                                                   \
    }                                                                                                              \
    NO_DOUBTS(quantize_##rule##_##out, f32, out, tq_quantize_params)

/* ---- 8 bits ---- */

struct quantize_fast {
    vf slope, offset;
};


#define DEFINE_quantize_8(rule, is_even, out)                                                                      \
    INLINE struct quantize_fast set_quantize_##rule##_##out(const tq_quantize_params *p, size_t entry,             \
                                                            const struct quantize_fast *first, enum vary vary)     \
    {                                                                                                              \
        return (struct quantize_fast){splat_f32(p->slope[entry]),                                                  \
                                      vary == VARY_ALL ? splat_f32(p->offset[entry]) : first->offset};             \
    }                                                                                                              \
    INLINE struct quantize_fast load_quantize_##rule##_##out(const tq_quantize_params *p, size_t at,               \
                                                             const struct quantize_fast *first, enum vary vary)    \
    {                                                                                                              \
        return (struct quantize_fast){load_f32(p->slope + at),                                                     \
                                      vary == VARY_ALL ? load_f32(p->offset + at) : first->offset};                \
    }                                                                                                              \
    INLINE struct quantize_fast mix_quantize_##rule##_##out(const struct quantize_fast *a,                         \
                                                            const struct quantize_fast *b, int32_t cut,            \
                                                            enum vary vary)                                        \
    {                                                                                                              \
        return (struct quantize_fast){mix_f32(a->slope, b->slope, cut),                                            \
                                      vary == VARY_ALL ? mix_f32(a->offset, b->offset, cut) : a->offset};          \
    }                                                                                                              \
    INLINE fixed_lows block_quantize_##rule##_##out(const float *x, element_##out *y,                              \
                                                    const struct quantize_fast c[4], const tq_quantize_params *p,  \
                                                    bool stream)                                                   \
    {                                                                                                              \
        vi v[4];                                                                                                   \
        for (int k = 0; k < 4; k++)                                                                                \
            v[k] = fixed_of(load_f32(x + k * LANES), c[k].slope, c[k].offset);                                     \
        struct fixed_block block = fixed_narrow(v);                                                                \
        vi codes = fixed_codes_##out(&block);                                                                      \
        if (p->clamp)                                                                                              \
            codes = and_s32(clamp_##out(codes, splat_s32(p->low_bytes), splat_s32(p->high_bytes)),                 \
                            splat_s32(p->mask_bytes));                                                             \
        put(y, codes, stream);                                                                                     \
        return block.least;                                                                                        \
    }                                                                                                              \
    INLINE bool doubts_quantize_##rule##_##out(fixed_lows least) { return fixed_doubts(least, 2 * TQ_FIXED_ERROR); } \
    /* A function of its own, out of the way of the loops' registers. */                                           \
    APART void exact_quantize_##rule##_##out(const float *x, element_##out *y, const tq_quantize_params *p,       \
                                              size_t at, bool lanes, size_t cut)                                   \
    {                                                                                                              \
        const struct quantize_lane a = quantize_set(p, at, is_even);                                               \
        const struct quantize_lane b = !lanes && cut < BLOCK ? quantize_set(p, at + 1, is_even) : a;               \
        vi code[4];                                                                                                \
        for (int k = 0; k < 4; k++) {                                                                              \
            struct quantize_lane c = a;                                                                            \
            if (lanes)                                                                                             \
                c = quantize_load(p, at + (size_t)k * LANES, is_even);                                             \
            else if (cut < BLOCK)                                                                                  \
                c = quantize_mix(&a, &b, (int32_t)cut - k * LANES, VARY_ALL);                                          \
            code[k] = and_s32(quantize_vector(load_f32(x + k * LANES), &c, is_even), splat_s32(p->mask));          \
        }                                                                                                          \
        store4_##out(y, code, false);                                                                              \
    }

#define DEFINE_quantize(rule, is_even, out, width, lane_t)                                                         \
    DEFINE_quantize_##width(rule, is_even, out)                                                                    \
    DEFINE_STREAM(quantize_##rule##_##out, f32, out, tq_quantize_params, lane_t)                                   \
    INLINE void sweep_quantize_##rule##_f32_##out(const float *x, element_##out *y, size_t n, size_t rows,         \
                                                  size_t stride, const tq_quantize_params *params, size_t first,   \
                                                  bool lanes)                                                      \
    {                                                                                                              \
        const tq_quantize_params copy = *params, *p = &copy; /* which stores to y cannot change */                 \
        if (p->steep)                                                                                              \
            (lanes ? tq_quantize_##rule##_f32_##out##__scalar_lanes                                                \
                   : tq_quantize_##rule##_f32_##out##__scalar_row)(x, y, n, rows, stride, p, first);               \
        else if (!lanes)                                                                                           \
            sweep_rows_quantize_##rule##_##out(x, y, n, rows, stride, p, first,                                    \
                                               p->one_zero_point ? VARY_SCALE : VARY_ALL, p->stream);              \
        else if (p->one_zero_point)                                                                                \
            sweep_lanes_quantize_##rule##_##out(x, y, n, rows, stride, p, first, VARY_SCALE);                      \
        else                                                                                                       \
            sweep_lanes_quantize_##rule##_##out(x, y, n, rows, stride, p, first, VARY_ALL);                        \
    }

#define WIDTH_i8 8, struct quantize_fast
#define WIDTH_u8 8, struct quantize_fast
#define WIDTH_i16 16, struct quantize_lane
#define WIDTH_u16 16, struct quantize_lane
#define DEFINE_quantize_of(...) DEFINE_quantize(__VA_ARGS__)
#define DEFINE_quantize_away(in, out) DEFINE_quantize_of(away, false, out, WIDTH_##out)
#define DEFINE_quantize_even(in, out) DEFINE_quantize_of(even, true, out, WIDTH_##out)
