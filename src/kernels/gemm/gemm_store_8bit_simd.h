/* SPDX-License-Identifier: Apache-2.0
 *
 * From int32 sums to 8-bit values; included by gemm_store_simd.h.  Values are computed as int8: a uint8 value less 128
 * is the int8 value with the high bit flipped.
 *
 * The unit of work is a block: 4 * LANES channels of one row, or the last `vectors` vectors of channels of as many rows
 * as fill four vectors.  A block's parameters stay in registers for all rows.
 */

/* The distance from signed values to the output's. */
INLINE int32_t store_center(const tq_gemm_store *s)
{
    return s->out == TQ_u8 ? 128 : 0;
}

/* The limits of signed values, and the bit that makes them the output's. */
struct store_limits {
    vi low, high, flip;
    bool clamp;        /* the limits are narrower than 8 bits */
    uint8_t undecided; /* tq_gemm_store.undecided */
};

INLINE struct store_limits load_limits(const tq_gemm_store *s)
{
    const int32_t center = store_center(s), low = s->low - center, high = s->high - center;
    return (struct store_limits){splat_s8(low), splat_s8(high), splat_s8(-center), low > INT8_MIN || high < INT8_MAX,
                                 s->undecided};
}

/* The sums, their adjustment and the outputs of a block's next row, in registers: a store of bytes might change `t`. */
struct store_walk {
    const int32_t *sums, *adjust;
    char *out;
    size_t sums_stride, out_stride;
};

INLINE struct store_walk first_of(const tq_tile_store *t, size_t c)
{
    return (struct store_walk){(const int32_t *)t->sums + c, t->adjust, (char *)t->out + c, t->sums_stride,
                               t->out_stride};
}

INLINE void walk_on(struct store_walk *w, size_t rows)
{
    w->sums += rows * w->sums_stride;
    w->adjust += rows;
    w->out += rows * w->out_stride;
}

/* Stores n channels of `together` rows. */
INLINE void put_rows(const struct store_walk *w, const size_t together, size_t n, const size_t vectors, vi values)
{
    if (together == 1)
        store_values(w->out, values, n);
    else if (n < vectors * LANES)
        store_row_parts(w->out, w->out_stride, values, vectors, n);
    else if (w->out_stride == n)
        put(w->out, values, false);
    else
        store_rows(w->out, w->out_stride, values, vectors);
}

/* ---- fixed point ---- */

INLINE void put_fixed(const tq_tile_store *t, size_t r, const size_t together, size_t c, size_t n, const size_t vectors,
                      const struct store_walk *w, const vi v[4], const struct store_limits *l)
{
    const struct fixed_block block = fixed_narrow(v);
    const vi values = fixed_values(&block), limited = l->clamp ? clamp_s8(values, l->low, l->high) : values;
    put_rows(w, together, n, vectors, xor_s32(limited, l->flip));
    if (fixed_undecided(block.least, l->undecided)) {
        const vi in_memory[4] = {v[0], v[1], v[2], v[3]}; /* v itself stays in registers */
        put_undecided(t, r, together, c, n, vectors, in_memory);
    }
}

INLINE void gemm_fixed_block(const tq_tile_store *t, size_t c, size_t n, const size_t vectors, const bool plain)
{
    const tq_gemm_store *s = t->store;
    const struct store_limits limits = load_limits(s);
    const size_t together = 4 / vectors, rows = t->rows;
    struct store_walk w = first_of(t, c);
    struct store_columns columns[4];
    for (size_t k = 0; k < vectors; k++)
        columns[k] = load_columns(s, t->first + c + k * LANES);
    size_t r = 0;
    for (; together > 1 && r + together <= rows; r += together, walk_on(&w, together)) {
        vi v[4];
        for (size_t k = 0; k < 4; k++) {
            const size_t row = k / vectors, at = k % vectors;
            v[k] = store_fixed_of(&columns[at], w.sums + row * w.sums_stride + at * LANES, w.adjust + row, plain);
        }
        put_fixed(t, r, together, c, n, vectors, &w, v, &limits);
    }
    for (; r < rows; r++, walk_on(&w, 1)) {
        vi v[4];
        for (size_t k = 0; k < 4; k++)
            v[k] = k < vectors ? store_fixed_of(&columns[k], w.sums + k * LANES, w.adjust, plain) : splat_s32(0x8000);
        put_fixed(t, r, 1, c, n, vectors, &w, v, &limits);
    }
}

/* ---- the rule float32-even ---- */

INLINE void gemm_even_block(const tq_tile_store *t, size_t c, size_t n, const size_t vectors)
{
    const tq_gemm_store *s = t->store;
    const vf most = splat_f32((float)(s->high - s->zero_point));
    const vi zero = splat_s16(s->zero_point - store_center(s));
    const struct store_limits l = load_limits(s);
    const size_t together = 4 / vectors, rows = t->rows;
    struct store_walk w = first_of(t, c);
    vf by[4];
    for (size_t k = 0; k < vectors; k++)
        by[k] = load_f32(s->slope + t->first + c + k * LANES);
    size_t r = 0;
    for (; together > 1 && r + together <= rows; r += together, walk_on(&w, together)) {
        vi v[4];
        for (size_t k = 0; k < 4; k++) {
            const size_t row = k / vectors, at = k % vectors;
            v[k] = store_even_of(w.sums + row * w.sums_stride + at * LANES, w.adjust + row, by[at], most);
        }
        put_rows(&w, together, n, vectors, xor_s32(clamp_s8(saturated_s8(v, zero), l.low, l.high), l.flip));
    }
    for (; r < rows; r++, walk_on(&w, 1)) {
        vi v[4];
        for (size_t k = 0; k < 4; k++)
            v[k] = k < vectors ? store_even_of(w.sums + k * LANES, w.adjust, by[k], most) : splat_s32(0);
        put_rows(&w, 1, n, vectors, xor_s32(clamp_s8(saturated_s8(v, zero), l.low, l.high), l.flip));
    }
}

/* All channels, a block at a time. */
#define DEFINE_STORE(name, block)                   \
    static TARGET void name(const tq_tile_store *t) \
    {                                               \
        const size_t n = t->channels;               \
        size_t c = 0;                               \
        for (; c + 4 * LANES <= n; c += 4 * LANES)  \
            block(t, c, 4 * LANES, 4);              \
        switch ((n - c + LANES - 1) / LANES) {      \
        case 4: block(t, c, n - c, 4); break;       \
        case 3: block(t, c, n - c, 3); break;       \
        case 2: block(t, c, n - c, 2); break;       \
        case 1: block(t, c, n - c, 1); break;       \
        default: break;                             \
        }                                           \
    }
#define PLAIN_BLOCK(t, c, n, vectors) gemm_fixed_block(t, c, n, vectors, true)
#define FIXED_BLOCK(t, c, n, vectors) gemm_fixed_block(t, c, n, vectors, false)
DEFINE_STORE(gemm_plain, PLAIN_BLOCK)
DEFINE_STORE(gemm_fixed, FIXED_BLOCK)
DEFINE_STORE(gemm_even, gemm_even_block)

static TARGET void gemm_store_8bit(const tq_tile_store *t)
{
    if (t->store->exact)
        tq_store_integers_scalar(t);
    else if (t->store->rule == TQ_REQUANTIZE_FLOAT32_EVEN)
        gemm_even(t);
    else if (t->store->one_offset && !t->adjusted)
        gemm_plain(t);
    else
        gemm_fixed(t);
}

#undef DEFINE_STORE
#undef PLAIN_BLOCK
#undef FIXED_BLOCK
