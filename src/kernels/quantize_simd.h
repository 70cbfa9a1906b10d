/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantize, float32 to 8- and 16-bit codes: tq_quantize_away and tq_quantize_even of quant/rounding.h.
 *
 * The rule "away" divides, and division is slow next to memory.  With u = 2^-24, t = f32(x / s) the
 * quotient wanted, i = f32(1 / s) and y = f32(x * i), each operation errs by a factor within 1 +- u while
 * i is a normal number, so |y - t| <= 3.01 u |x / s|, and for |y| <= L that is below 4 u L = L * 2^-22.
 * (Where x * i underflows, |t| is far below 1/2 as well, and where it overflows, both saturate.)
 * So if y is further than L * 2^-22 from every tie, y and t lie between the same two ties, and round to the
 * same integer, whichever way ties go.  y is first clamped to [low - z, high - z], whose ends are integers,
 * and L is the larger of their sizes: a y beyond an end has t beyond that end less a half, and clamps the
 * same.  A block with a lane within the bound of a tie, or with a NaN, is done again by division.
 * For 8-bit codes that is one block in some hundreds on spread-out data, and every block at worst.
 *
 * 16-bit codes lie near ties too often for that (L * 2^-22 is 1/64), but divisions keep up with the bytes
 * they move: they divide at once.
 */
struct quantize_lane {
    vf below, above;
    vi zero_point;
};

INLINE struct quantize_lane quantize_load(const tq_quantize_params *p, size_t at, bool lanes)
{
    if (lanes)
        return (struct quantize_lane){load_f32(p->below + at), load_f32(p->above + at), load_s32(p->zero_point + at)};
    return (struct quantize_lane){splat_f32(p->below[at]), splat_f32(p->above[at]), splat_s32(p->zero_point[at])};
}

/* BLOCK codes; false where a lane is too near a tie and codes are not to be used. */
INLINE bool quantize_by_product(const float *x, vi code[4], const tq_quantize_params *p, size_t at, bool lanes,
                                bool even)
{
    vi worst = none_near();
    for (int k = 0; k < 4; k++) {
        size_t here = lanes ? at + (size_t)k * LANES : at;
        struct quantize_lane c = quantize_load(p, here, lanes);
        vf inverse = lanes ? load_f32(p->inverse + here) : splat_f32(p->inverse[here]);
        vf y = clamp_f32(mul_f32(load_f32(x + k * LANES), inverse), c.below, c.above);
        vi nearest = even_s32(even ? zero_if_nan(y) : y);
        if (!even)
            worst = track_near(worst, y, nearest);
        code[k] = add_s32(nearest, c.zero_point);
    }
    return even || !any_near(worst, p->near);
}

INLINE void quantize_by_division(const float *x, vi code[4], const tq_quantize_params *p, size_t at, bool lanes)
{
    for (int k = 0; k < 4; k++) {
        size_t here = lanes ? at + (size_t)k * LANES : at;
        struct quantize_lane c = quantize_load(p, here, lanes);
        vf scale = lanes ? load_f32(p->scale + here) : splat_f32(p->scale[here]);
        vf t = clamp_f32(div_f32(load_f32(x + k * LANES), scale), c.below, c.above);
        code[k] = add_s32(away_s32(zero_if_nan(t)), c.zero_point);
    }
}

INLINE void quantize_block(const float *x, vi code[4], const tq_quantize_params *p, size_t at, bool lanes, bool even,
                           bool narrow)
{
    if (even)
        quantize_by_product(x, code, p, at, lanes, true);
    else if (!narrow || p->divide || !quantize_by_product(x, code, p, at, lanes, false))
        quantize_by_division(x, code, p, at, lanes);
}

#define DEFINE_quantize(rule, is_even, out)                                                                     \
    INLINE void step_quantize_##rule##_##out(const float *x, element_##out *y, const tq_quantize_params *p,     \
                                             size_t at, bool lanes, bool stream)                                \
    {                                                                                                           \
        vi code[4];                                                                                             \
        quantize_block(x, code, p, at, lanes, is_even, sizeof *y == 1);                                         \
        store4_##out(y, code, stream);                                                                          \
    }                                                                                                           \
    INLINE void sweep_quantize_##rule##_f32_##out(const float *x, element_##out *y, size_t n,                   \
                                                  const tq_quantize_params *p, size_t first, bool lanes)        \
    {                                                                                                           \
        WALK(f32, out, step_quantize_##rule##_##out, p->stream);                                                \
    }
#define DEFINE_quantize_away(in, out) DEFINE_quantize(away, false, out)
#define DEFINE_quantize_even(in, out) DEFINE_quantize(even, true, out)
