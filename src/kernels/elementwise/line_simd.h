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

/* tq_line_limits.  A limit differs from its fraction by what lines and rules differ by: 0.2 of an acc for the slope
   (count_slopes of code_line.c), and a half of the last place of sums below 128 and of products below 256, over 2^-11:
   0.224 of what 2^32 units are.  So the limits of steps on the one side are from -0.724 to 0.224 of these, on the other
   from -0.224 to 0.724.  Less a QUARTER, the first rise as unsigned integers, the others as signed ones; and those that
   wrap are beyond TQ_LINE_WIDEST. */
#define QUARTER (1 << 30)
struct line_search {
    vi fraction, stride, leaning, leaning_stride, above, below;
    vf units;
};

/* A vector's steps.  Fractions are less than they are by UNSURE. */
INLINE void line_look(struct line_search *at, const float *border, const float *rule_border)
{
    const vi limit = add_s32(at->leaning, even_s32(mul_f32(load_f32(border), at->units)));
    vi fraction = at->fraction;
    if (rule_border)
        fraction = add_s32(fraction, even_s32(mul_f32(load_f32(rule_border), at->units)));
    const vi sure = add_s32(fraction, splat_s32(2 * TQ_LINE_UNSURE));
    at->above = max_u32(at->above, choose_s32(fraction, splat_s32(0), limit));
    at->below = min_s32(at->below, choose_s32(sure, limit, splat_s32(INT32_MAX)));
    at->fraction = add_s32(at->fraction, at->stride);
    at->leaning = add_s32(at->leaning, at->leaning_stride);
}

INLINE vi line_first(uint32_t start, uint32_t stride)
{
    static const int32_t lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return add_s32(splat_s32((int32_t)start), mul_s32(load_s32(lanes), splat_s32((int32_t)stride)));
}

INLINE void line_search(struct line_search *at, const tq_line_steps *s, const float *rule_border)
{
    int32_t n = 0;
    for (; n + LANES <= s->count; n += LANES)
        line_look(at, s->border + n, rule_border ? rule_border + n : NULL);
    if (n < s->count) {
        const vi above = at->above, below = at->below;
        line_look(at, s->border + n, rule_border ? rule_border + n : NULL);
        at->above = mix_s32(at->above, above, s->count - n);
        at->below = mix_s32(at->below, below, s->count - n);
    }
}

#define LINE_LIMITS_(isa) tq_line_limits__##isa
#define LINE_LIMITS(isa) LINE_LIMITS_(isa)
TARGET void LINE_LIMITS(ISA)(const tq_line_steps *s, tq_line_limits *limits)
{
    const vi reversed = splat_s32(INT32_MAX); /* the least signed integer becomes the most unsigned one */
    struct line_search at = {line_first(s->fraction - TQ_LINE_UNSURE, s->stride),
                             splat_s32((int32_t)(s->stride * LANES)),
                             line_first(s->leaning - QUARTER, s->leaning_stride),
                             splat_s32((int32_t)(s->leaning_stride * LANES)),
                             splat_s32(-TQ_LINE_WIDEST - QUARTER), splat_s32(TQ_LINE_WIDEST - QUARTER),
                             splat_f32(s->units)};
    if (s->rule_border)
        line_search(&at, s, s->rule_border);
    else
        line_search(&at, s, NULL);
    limits->above = (int32_t)(most_u32(at.above) + QUARTER);
    limits->below = (int32_t)((most_u32(xor_s32(at.below, reversed)) ^ INT32_MAX) + QUARTER);
}

/* Rows whose parameters vary along them are done LINED at a time, so that parameters are loaded once for all of them.
   In sixteen registers, half a block's fit beside what is done. */
#define LINED 6

/* The vectors of a block that are done together, in each of LINED rows. */
enum line_part { LINE_WHOLE, LINE_LEFT, LINE_RIGHT };

/* No vector waits for its own numbers: each step is taken so many vectors behind the first, which turns them to floats,
   and compilers keep that order (a gain of a fiftieth over each vector from end to end). */
enum { LINE_SUM = 1, LINE_CODE = 3, LINE_WORDS = 5 };
#define LINE_VECTORS (CACHE_LINE / VECTOR_BYTES) /* of a cache line */
#define LINE_ROW 64 /* rows of so many elements have their distances in the instructions */
#define LINE_UNROLLED 32 /* as many steps as there are, and more */

/* The lines of a row's elements, from the one on with which all rows are taken to begin. */
struct line_pattern {
    _Alignas(VECTOR_BYTES) float slope[TQ_GROUPED], offset[TQ_GROUPED], offset_negative[TQ_GROUPED];
    _Alignas(VECTOR_BYTES) int32_t exception[2][TQ_GROUPED];
    size_t excepted[TQ_GROUPED / LANES], vectors; /* where those begin that have exceptions */
    bool second; /* some have two */
};

/* Columns are of numbers of four bytes. */
INLINE void turn(void *to, const void *from, size_t n, size_t head)
{
    memcpy(to, (const char *)from + head * 4, (n - head) * 4);
    memcpy((char *)to + (n - head) * 4, from, head * 4);
}

static __attribute__((unused)) TARGET void line_turn(struct line_pattern *c, const tq_requantize_params *p,
                                                     size_t first, size_t n, size_t head)
{
    turn(c->slope, p->line_slope + first, n, head);
    turn(c->offset, p->line_offset + first, n, head);
    turn(c->offset_negative, p->line_offset_negative + first, n, head);
    turn(c->exception[0], p->line_exception[0] + first, n, head);
    turn(c->exception[1], p->line_exception[1] + first, n, head);
    c->vectors = 0;
    c->second = false;
    for (size_t i = 0; i < n; i += LANES) { /* who has a second has a first */
        if (any_s32(xor_s32(load_s32(c->exception[0] + i), splat_s32(TQ_NO_EXCEPTION))))
            c->excepted[c->vectors++] = i;
        c->second |= any_s32(xor_s32(load_s32(c->exception[1] + i), splat_s32(TQ_NO_EXCEPTION)));
    }
}

INLINE struct line_lane line_at(const struct line_pattern *c, size_t at)
{
    return (struct line_lane){keep_f32(load_f32(c->slope + at)), keep_f32(load_f32(c->offset + at)),
                              keep_f32(load_f32(c->offset_negative + at))};
}

/* The elements before the first that is at the start of a cache line, where no load takes two: less than BLOCK. */
INLINE size_t line_head(const void *x, size_t size)
{
    size_t past = (uintptr_t)x % CACHE_LINE;
    return past % size || !past ? 0 : (CACHE_LINE - past) / size;
}

/* lined_<kernel>: long rows with a line of their own; lines_<kernel>: groups of rows of n elements, n a multiple of
   BLOCK, and at most TQ_GROUPED; the rows that are done are returned.  Where rows follow each other they are taken to
   begin `head` elements later than they do, so that what is loaded is aligned. */
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
            if (!is_straight(p->line_slope + first, 1) || p->line_exception[0][first] != TQ_NO_EXCEPTION) {            \
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
    /* `right`: words of right halves, which are done before left ones.  ahead: what is asked for, by lines, or 0. */  \
    INLINE void along_##kernel(const element_##in *x, element_##out *y, size_t stride, const struct line_lane *c,      \
                               enum line_part part, words right[LINED], uintptr_t ahead)                               \
    {                                                                                                                  \
        const int each = part == LINE_WHOLE ? 4 : 2, count = each * LINED;                                             \
        vf acc[4 * LINED], sum[4 * LINED];                                                                             \
        vi code[4 * LINED];                                                                                            \
        words half[2 * LINED];                                                                                         \
        UNROLL(LINE_UNROLLED) for (int k = 0; k < count + LINE_WORDS; k++)                                             \
        {                                                                                                              \
            const int add = k - LINE_SUM, round = k - LINE_CODE, last = k - LINE_WORDS;                                \
            if (ahead && k < count && k % LINE_VECTORS == 0)                                                           \
                __builtin_prefetch((const void *)(ahead + (uintptr_t)k * VECTOR_BYTES));                               \
            if (k < count) {                                                                                           \
                acc[k] = in_order_f32(float_of_s32(load_##in(x + k / each * stride + k % each * LANES)));              \
                sum[k] = in_order_f32(OFFSET_##rule(acc[k], c[k % each]));                                             \
            }                                                                                                          \
            if (add >= 0 && add < count)                                                                               \
                sum[add] = in_order_f32(fma_onto_f32(acc[add], c[add % each].slope, sum[add]));                        \
            if (round >= 0 && round < count)                                                                           \
                code[round] = in_order_s32(even_s32(sum[round]));                                                      \
            if (last < 0 || last % 2 == 0)                                                                             \
                continue;                                                                                              \
            half[last / 2] = words_of(code[last - 1], code[last]);                                                     \
            element_##out *to = y + last / each * stride;                                                              \
            if (part == LINE_RIGHT)                                                                                    \
                right[last / each] = half[last / 2];                                                                   \
            else if (part == LINE_LEFT)                                                                                \
                put(to, line_codes_##out(half[last / 2], right[last / each]), false);                                  \
            else if (last % each == 3)                                                                                 \
                put(to, line_codes_##out(half[last / 2 - 1], half[last / 2]), false);                                  \
        }                                                                                                              \
    }                                                                                                                  \
    INLINE void along_block_##kernel(const element_##in *x, element_##out *y, size_t stride, const struct line_pattern *p,\
                               size_t at, uintptr_t ahead)                                                             \
    {                                                                                                                  \
        if (REGISTERS >= 32) {                                                                                         \
            const struct line_lane c[] = {line_at(p, at), line_at(p, at + LANES), line_at(p, at + 2 * LANES),          \
                                          line_at(p, at + 3 * LANES)};                                                 \
            along_##kernel(x, y, stride, c, LINE_WHOLE, NULL, ahead);                                                  \
            return;                                                                                                    \
        }                                                                                                              \
        words right[LINED];                                                                                            \
        const struct line_lane r[] = {line_at(p, at + 2 * LANES), line_at(p, at + 3 * LANES)};                         \
        along_##kernel(x + 2 * LANES, y, stride, r, LINE_RIGHT, right, ahead);                                         \
        const struct line_lane l[] = {line_at(p, at), line_at(p, at + LANES)};                                         \
        along_##kernel(x, y, stride, l, LINE_LEFT, right, ahead ? ahead + LINED * BLOCK / 2 * sizeof *x : 0);          \
    }                                                                                                                  \
    /* The blocks that a vector is in, exactly; where rows follow each other, one may be in the next row. */           \
    RARELY void again_lines_##kernel(const element_##in *x, element_##out *y, size_t n, size_t stride,                 \
                                     const tq_requantize_params *p, size_t first, size_t at)                           \
    {                                                                                                                  \
        for (int r = 0; r < LINED; r++, x += stride, y += stride)                                                      \
            for (size_t i = at / BLOCK * BLOCK; i < at + LANES; i += BLOCK)                                            \
                exact_##rule##_##in##_##out(x + i, y + i, p, first + i % n, true);                                     \
    }                                                                                                                  \
    /* Vectors with exceptions, of rows that are done: what is there is in the caches still. */                        \
    INLINE void except_##kernel(const element_##in *x, element_##out *y, size_t n, size_t stride, size_t head,         \
                                const tq_requantize_params *p, size_t first, const struct line_pattern *c)             \
    {                                                                                                                  \
        for (size_t k = 0; k < c->vectors; k++) {                                                                      \
            const size_t i = c->excepted[k];                                                                           \
            const vi one = load_s32(c->exception[0] + i), other = load_s32(c->exception[1] + i);                       \
            vi met = splat_s32(0);                                                                                     \
            UNROLL(LINED) for (int r = 0; r < LINED; r++)                                                              \
            {                                                                                                          \
                const vi distance = abs_s32(load_##in(x + r * stride + i));                                            \
                met = or_s32(met, equal_s32(distance, one));                                                           \
                if (c->second)                                                                                         \
                    met = or_s32(met, equal_s32(distance, other));                                                     \
            }                                                                                                          \
            if (any_s32(met))                                                                                          \
                again_lines_##kernel(x - head, y - head, n, stride, p, first, head + i);                               \
        }                                                                                                              \
    }                                                                                                                  \
    INLINE size_t lines_of_##kernel(const element_##in *x0, element_##out *y0, size_t n, size_t rows, size_t stride,   \
                                    const tq_requantize_params *p, size_t first)                                       \
    {                                                                                                                  \
        const size_t head = stride == n ? line_head(x0, sizeof *x0) : 0;                                               \
        struct line_pattern c;                                                                                         \
        line_turn(&c, p, first, n, head);                                                                              \
        if (c.vectors > n / LANES * 2 / 5) /* looking for exceptions in more takes longer than looking for doubts */   \
            return 0;                                                                                                  \
        if (head) { /* of which there is a row less */                                                                 \
            exact_##rule##_##in##_##out(x0, y0, p, first, true);                                                       \
            x0 += head, y0 += head, rows--;                                                                            \
        }                                                                                                              \
        const size_t done = rows / LINED * LINED;                                                                      \
        /* Rows that are longer are read by turns of more than processors expect: the next are asked for in order. */  \
        const bool ask = n > 64 && n == stride;                                                                        \
        uintptr_t ahead = (uintptr_t)x0 + LINED * n * sizeof *x0; /* perhaps past the array */                         \
        for (; rows >= LINED; rows -= LINED, x0 += LINED * stride, y0 += LINED * stride) {                             \
            for (size_t i = 0; i < n; i += BLOCK) {                                                                    \
                if (ask) {                                                                                             \
                    along_block_##kernel(x0 + i, y0 + i, stride, &c, i, ahead);                                        \
                    ahead += LINED * BLOCK * sizeof *x0;                                                               \
                } else {                                                                                               \
                    along_block_##kernel(x0 + i, y0 + i, stride, &c, i, 0);                                            \
                }                                                                                                      \
            }                                                                                                          \
            except_##kernel(x0, y0, n, stride, head, p, first, &c);                                                    \
        }                                                                                                              \
        return done;                                                                                                   \
    }                                                                                                                  \
    static __attribute__((noinline)) TARGET size_t lines_##kernel(const element_##in *x0, element_##out *y0, size_t n, \
                                                                  size_t rows, size_t stride,                          \
                                                                  const tq_requantize_params *p, size_t first)         \
    {                                                                                                                  \
        if (n == LINE_ROW && stride == LINE_ROW)                                                                       \
            return lines_of_##kernel(x0, y0, LINE_ROW, rows, LINE_ROW, p, first);                                      \
        return lines_of_##kernel(x0, y0, n, rows, stride, p, first);                                                   \
    }

#define WALK_LINES(kernel)                                                                                             \
    do {                                                                                                               \
        if (p->lines && n % BLOCK == 0 && n <= TQ_GROUPED && rows > LINED &&                                           \
            is_straight(p->line_slope + first, n)) {                                                                   \
            const size_t done = lines_##kernel(x, y, n, rows, stride, p, first);                                       \
            x += done * stride;                                                                                        \
            y += done * stride;                                                                                        \
            rows -= done;                                                                                              \
        }                                                                                                              \
    } while (0)
