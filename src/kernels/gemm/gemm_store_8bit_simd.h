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

INLINE const int32_t *sums_at(const tq_tile_store *t, size_t row, size_t channel)
{
    return (const int32_t *)t->sums + row * t->sums_stride + channel;
}

/* Stores n channels from c on of rows [r, r + together). */
INLINE void put_rows(const tq_tile_store *t, size_t r, const size_t together, size_t c, size_t n, const size_t vectors,
                     vi values)
{
    char *y = (char *)t->out + r * t->out_stride + c;
    if (together == 1)
        store_values(y, values, n);
    else if (n == vectors * LANES)
        store_rows(y, t->out_stride, values, vectors);
    else
        store_row_parts(y, t->out_stride, values, vectors, n);
}

/* put_rows for values in fixed point. */
INLINE void put_fixed(const tq_tile_store *t, size_t r, const size_t together, size_t c, size_t n, const size_t vectors,
                      const vi v[4], const struct store_limits *l)
{
    const struct fixed_block block = fixed_narrow(v);
    const vi values = fixed_values(&block), limited = l->clamp ? clamp_s8(values, l->low, l->high) : values;
    put_rows(t, r, together, c, n, vectors, xor_s32(limited, l->flip));
    if (fixed_undecided(block.least, l->undecided)) {
        const vi in_memory[4] = {v[0], v[1], v[2], v[3]}; /* v itself stays in registers */
        put_undecided(t, r, together, c, n, vectors, in_memory);
    }
}

INLINE void gemm_fixed_block(const tq_tile_store *t, size_t c, size_t n, const size_t vectors, const bool plain)
{
    const tq_gemm_store *s = t->store;
    const struct store_limits limits = load_limits(s);
    const size_t together = 4 / vectors;
    struct store_columns columns[4];
    for (size_t k = 0; k < vectors; k++)
        columns[k] = load_columns(s, t->first + c + k * LANES);
    size_t r = 0;
    for (; together > 1 && r + together <= t->rows; r += together) {
        vi v[4];
        for (size_t k = 0; k < 4; k++) {
            const size_t row = r + k / vectors, at = k % vectors;
            v[k] = store_fixed_of(&columns[at], sums_at(t, row, c) + at * LANES, splat_s32(t->adjust[row]), plain);
        }
        put_fixed(t, r, together, c, n, vectors, v, &limits);
    }
    for (; r < t->rows; r++) {
        const int32_t *sums = sums_at(t, r, c);
        const vi adjust = splat_s32(t->adjust[r]);
        vi v[4];
        for (size_t k = 0; k < 4; k++)
            v[k] = k < vectors ? store_fixed_of(&columns[k], sums + k * LANES, adjust, plain) : splat_s32(0x8000);
        put_fixed(t, r, 1, c, n, vectors, v, &limits);
    }
}

/* The rule float32-even. */
INLINE void gemm_even_block(const tq_tile_store *t, size_t c, size_t n, const size_t vectors)
{
    const tq_gemm_store *s = t->store;
    const vf most = splat_f32((float)(s->high - s->zero_point));
    const vi zero = splat_s16(s->zero_point - store_center(s));
    const struct store_limits l = load_limits(s);
    const size_t together = 4 / vectors;
    vf by[4];
    for (size_t k = 0; k < vectors; k++)
        by[k] = load_f32(s->slope + t->first + c + k * LANES);
    size_t r = 0;
    for (; together > 1 && r + together <= t->rows; r += together) {
        vi v[4];
        for (size_t k = 0; k < 4; k++) {
            const size_t row = r + k / vectors, at = k % vectors;
            v[k] = store_even_of(sums_at(t, row, c) + at * LANES, splat_s32(t->adjust[row]), by[at], most);
        }
        put_rows(t, r, together, c, n, vectors, xor_s32(clamp_s8(saturated_s8(v, zero), l.low, l.high), l.flip));
    }
    for (; r < t->rows; r++) {
        const int32_t *sums = sums_at(t, r, c);
        const vi adjust = splat_s32(t->adjust[r]);
        vi v[4];
        for (size_t k = 0; k < 4; k++)
            v[k] = k < vectors ? store_even_of(sums + k * LANES, adjust, by[k], most) : splat_s32(0);
        put_rows(t, r, 1, c, n, vectors, xor_s32(clamp_s8(saturated_s8(v, zero), l.low, l.high), l.flip));
    }
}

/* All channels, a block at a time. */
#define EACH_BLOCK(block)                          \
    do {                                           \
        const size_t n = t->channels;              \
        size_t c = 0;                              \
        for (; c + 4 * LANES <= n; c += 4 * LANES) \
            block(t, c, 4 * LANES, 4);             \
        switch ((n - c + LANES - 1) / LANES) {     \
        case 4: block(t, c, n - c, 4); break;      \
        case 3: block(t, c, n - c, 3); break;      \
        case 2: block(t, c, n - c, 2); break;      \
        case 1: block(t, c, n - c, 1); break;      \
        default: break;                            \
        }                                          \
    } while (0)

#define PLAIN_BLOCK(t, c, n, vectors) gemm_fixed_block(t, c, n, vectors, true)
#define FIXED_BLOCK(t, c, n, vectors) gemm_fixed_block(t, c, n, vectors, false)
static TARGET void gemm_plain(const tq_tile_store *t)
{
    EACH_BLOCK(PLAIN_BLOCK);
}
static TARGET void gemm_fixed(const tq_tile_store *t)
{
    EACH_BLOCK(FIXED_BLOCK);
}
static TARGET void gemm_even(const tq_tile_store *t)
{
    EACH_BLOCK(gemm_even_block);
}

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

#undef EACH_BLOCK
#undef PLAIN_BLOCK
#undef FIXED_BLOCK
