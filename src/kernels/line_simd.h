/* SPDX-License-Identifier: Apache-2.0
 *
 * Accumulators to 8-bit codes along straight lines (code_line.h), which are exact for every int32: two conversions, a
 * multiply-add, a choice by sign in "double", and narrowing.  Nothing is looked at for doubts.
 *
 * A set whose line was not found has NaN for a slope.  It goes the way of requantize_simd.h, and so do rows whose
 * parameters vary along them if one of these has no line.
 */
struct line_lane {
    vf slope, offset, offset_negative;
};

INLINE struct line_lane line_load(const tq_requantize_params *p, size_t at, bool lanes)
{
    struct line_lane c;
    c.slope = lanes ? keep_f32(load_f32(p->line_slope + at)) : splat_f32(p->line_slope[at]);
    c.offset = lanes ? keep_f32(load_f32(p->line_offset + at)) : splat_f32(p->line_offset[at]);
    c.offset_negative =
        lanes ? keep_f32(load_f32(p->line_offset_negative + at)) : splat_f32(p->line_offset_negative[at]);
    return c;
}

/* Lines are of signed codes. */
INLINE vi line_codes_i8(words ab, words cd) { return bytes_of(ab, cd); }
INLINE vi line_codes_u8(words ab, words cd) { return xor_s32(bytes_of(ab, cd), splat_s8(-128)); }

INLINE bool is_straight(const float *slope, size_t n)
{
    int straight = 1;
    for (size_t i = 0; i < n; i++)
        straight &= slope[i] == slope[i];
    return straight;
}

/* Rows whose parameters vary along them are done LINED at a time, so that parameters are loaded once for all of them:
   first the left half of a block of each, then the right, whose parameters fit the registers beside what is done. */
#define LINED 6

/* lined_<kernel>: long rows with a line of their own; lines_<kernel>: groups of rows of n elements, n a multiple of
   BLOCK, and at most TQ_GROUPED. */
#define DEFINE_LINES(rule, in, out, kernel)                                                                            \
    INLINE vi on_line_##kernel(const element_##in *x, const struct line_lane *c)                                       \
    {                                                                                                                  \
        vf acc = float_of_s32(load_##in(x));                                                                           \
        return even_s32(fma_onto_f32(acc, c->slope, OFFSET_##rule(acc, *c)));                                          \
    }                                                                                                                  \
    INLINE void step_lined_##kernel(const element_##in *x, element_##out *y, const tq_requantize_params *p,            \
                                    const struct line_lane *c, size_t at, enum vary vary, bool stream)                 \
    {                                                                                                                  \
        (void)p, (void)at, (void)vary;                                                                                 \
        words ab = words_of(on_line_##kernel(x, c), on_line_##kernel(x + LANES, c));                                   \
        words cd = words_of(on_line_##kernel(x + 2 * LANES, c), on_line_##kernel(x + 3 * LANES, c));                   \
        put(y, line_codes_##out(ab, cd), stream);                                                                      \
    }                                                                                                                  \
    DEFINE_PAIR_OF_STEPS(lined_##kernel, in, out, tq_requantize_params, struct line_lane)                              \
    DEFINE_PART(lined_##kernel, in, out, tq_requantize_params, struct line_lane, line_load)                            \
    static __attribute__((noinline)) TARGET void lined_##kernel(const element_##in *x, element_##out *y, size_t n,     \
                                                                size_t stride, size_t count,                           \
                                                                const tq_requantize_params *params, size_t first)      \
    {                                                                                                                  \
        const tq_requantize_params copy = *params, *p = &copy;                                                         \
        tq_requantize_params unlined = *params;                                                                        \
        unlined.lines = false;                                                                                         \
        for (; count > 0; count--, x += stride, y += stride, first++) {                                                \
            if (!is_straight(p->line_slope + first, 1)) {                                                              \
                SYMBOL(requantize_##rule, in, out, ISA, row)(x, y, n, 1, stride, &unlined, first);                     \
                continue;                                                                                              \
            }                                                                                                          \
            const struct line_lane row = line_load(p, first, false);                                                   \
            size_t i = 0;                                                                                              \
            if (n >= LONG_WALK)                                                                                        \
                START_LONG(lined_##kernel, p->stream);                                                                 \
            WALK(lined_##kernel, VARY_NOTHING);                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static __attribute__((noinline)) TARGET void lines_##kernel(                                                       \
        const element_##in *x0, element_##out *y0, size_t n, size_t rows, size_t stride,                               \
        const tq_requantize_params *params, size_t first)                                                              \
    {                                                                                                                  \
        const tq_requantize_params copy = *params, *p = &copy;                                                         \
        for (; rows >= LINED; rows -= LINED, x0 += LINED * stride, y0 += LINED * stride)                               \
            for (size_t i = 0; i < n; i += BLOCK) {                                                                    \
                const element_##in *x = x0 + i;                                                                        \
                element_##out *y = y0 + i;                                                                             \
                words left[LINED];                                                                                     \
                struct line_lane a = line_load(p, first + i, true), b = line_load(p, first + i + LANES, true);         \
                UNROLL(LINED) for (int r = 0; r < LINED; r++, x += stride)                                             \
                    left[r] = words_of(on_line_##kernel(x, &a), on_line_##kernel(x + LANES, &b));                      \
                x = x0 + i + 2 * LANES;                                                                                \
                a = line_load(p, first + i + 2 * LANES, true);                                                         \
                b = line_load(p, first + i + 3 * LANES, true);                                                         \
                UNROLL(LINED) for (int r = 0; r < LINED; r++, x += stride, y += stride)                                \
                {                                                                                                      \
                    words right = words_of(on_line_##kernel(x, &a), on_line_##kernel(x + LANES, &b));                  \
                    put(y, line_codes_##out(left[r], right), false);                                                   \
                }                                                                                                      \
            }                                                                                                          \
    }

#define WALK_LINES(kernel)                                                   \
    do {                                                                     \
        if (p->lines && n % BLOCK == 0 && n <= TQ_GROUPED && rows >= LINED &&   \
            is_straight(p->line_slope + first, n)) {                         \
            lines_##kernel(x, y, n, rows, stride, p, first);                 \
            x += rows / LINED * LINED * stride;                              \
            y += rows / LINED * LINED * stride;                              \
            rows %= LINED;                                                   \
        }                                                                    \
    } while (0)
