/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: from int32 sums to 8-bit values.  gemm_store_simd.h defines, and this file undefines at its end:
 *
 *   OUT                  the output's elements: i8 or u8
 *   OUT_LOW, OUT_HIGH    their range
 *
 * The unit of work is a block: 4 * LANES channels of one row, or the last `vectors` vectors of channels of as many rows
 * as fill four vectors.  A block's parameters stay in registers for all rows.
 */
#define LOCAL__(name, out) name##_##out
#define LOCAL_(name, out) LOCAL__(name, out)
#define LOCAL(name) LOCAL_(name, OUT)
#define OUT_TYPE LOCAL(tq_element)

INLINE const int32_t *LOCAL(sums_at)(const tq_tile_store *t, size_t row, size_t channel)
{
    return (const int32_t *)t->sums + row * t->sums_stride + channel;
}

/* Stores n channels from c on of rows [r, r + together). */
INLINE void LOCAL(put_rows)(const tq_tile_store *t, size_t r, const size_t together, size_t c, size_t n,
                            const size_t vectors, vi values)
{
    OUT_TYPE *y = (OUT_TYPE *)t->out + r * t->out_stride + c;
    if (together == 1)
        store_values(y, values, n);
    else if (n == vectors * LANES)
        store_rows((char *)y, t->out_stride, values, vectors);
    else
        store_row_parts((char *)y, t->out_stride, values, vectors, n);
}

/* put_rows for values in fixed point. */
INLINE void LOCAL(put_fixed)(const tq_tile_store *t, size_t r, const size_t together, size_t c, size_t n,
                             const size_t vectors, const vi v[4], bool clamp, uint8_t undecided)
{
    const tq_gemm_store *s = t->store;
    const struct fixed_block block = fixed_narrow(v);
    const vi values = LOCAL(fixed_values)(&block);
    LOCAL(put_rows)(t, r, together, c, n, vectors,
                    clamp ? LOCAL(clamp)(values, splat_s8(s->low), splat_s8(s->high)) : values);
    if (fixed_undecided(block.least, undecided)) {
        const vi in_memory[4] = {v[0], v[1], v[2], v[3]}; /* v itself stays in registers */
        put_undecided(t, r, together, c, n, vectors, in_memory);
    }
}

INLINE void LOCAL(gemm_fixed_block)(const tq_tile_store *t, size_t c, size_t n, const size_t vectors, const bool plain)
{
    const tq_gemm_store *s = t->store;
    const bool clamp = s->low > OUT_LOW || s->high < OUT_HIGH;
    const uint8_t undecided = s->undecided;
    const size_t together = 4 / vectors;
    struct store_columns columns[4];
    for (size_t k = 0; k < vectors; k++)
        columns[k] = load_columns(s, t->first + c + k * LANES);
    size_t r = 0;
    for (; together > 1 && r + together <= t->rows; r += together) {
        vi v[4];
        for (size_t k = 0; k < 4; k++) {
            const size_t row = r + k / vectors, at = k % vectors;
            v[k] =
                store_fixed_of(&columns[at], LOCAL(sums_at)(t, row, c) + at * LANES, splat_s32(t->adjust[row]), plain);
        }
        LOCAL(put_fixed)(t, r, together, c, n, vectors, v, clamp, undecided);
    }
    for (; r < t->rows; r++) {
        const int32_t *sums = LOCAL(sums_at)(t, r, c);
        const vi adjust = splat_s32(t->adjust[r]);
        vi v[4];
        for (size_t k = 0; k < 4; k++)
            v[k] = k < vectors ? store_fixed_of(&columns[k], sums + k * LANES, adjust, plain) : splat_s32(0x8000);
        LOCAL(put_fixed)(t, r, 1, c, n, vectors, v, clamp, undecided);
    }
}

/* The rule float32-even. */
INLINE void LOCAL(gemm_even_block)(const tq_tile_store *t, size_t c, size_t n, const size_t vectors)
{
    const tq_gemm_store *s = t->store;
    const vf most = splat_f32((float)(s->high - s->zero_point));
    const vi zero = splat_s16(s->zero_point), low = splat_s8(s->low), high = splat_s8(s->high);
    const size_t together = 4 / vectors;
    vf by[4];
    for (size_t k = 0; k < vectors; k++)
        by[k] = load_f32(s->slope + t->first + c + k * LANES);
    size_t r = 0;
    for (; together > 1 && r + together <= t->rows; r += together) {
        vi v[4];
        for (size_t k = 0; k < 4; k++) {
            const size_t row = r + k / vectors, at = k % vectors;
            v[k] = store_even_of(LOCAL(sums_at)(t, row, c) + at * LANES, splat_s32(t->adjust[row]), by[at], most);
        }
        LOCAL(put_rows)(t, r, together, c, n, vectors, LOCAL(clamp)(LOCAL(saturated)(v, zero), low, high));
    }
    for (; r < t->rows; r++) {
        const int32_t *sums = LOCAL(sums_at)(t, r, c);
        const vi adjust = splat_s32(t->adjust[r]);
        vi v[4];
        for (size_t k = 0; k < 4; k++)
            v[k] = k < vectors ? store_even_of(sums + k * LANES, adjust, by[k], most) : splat_s32(0);
        LOCAL(put_rows)(t, r, 1, c, n, vectors, LOCAL(clamp)(LOCAL(saturated)(v, zero), low, high));
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

#define PLAIN_BLOCK(t, c, n, vectors) LOCAL(gemm_fixed_block)(t, c, n, vectors, true)
#define FIXED_BLOCK(t, c, n, vectors) LOCAL(gemm_fixed_block)(t, c, n, vectors, false)
static TARGET void LOCAL(gemm_plain)(const tq_tile_store *t)
{
    EACH_BLOCK(PLAIN_BLOCK);
}
static TARGET void LOCAL(gemm_fixed)(const tq_tile_store *t)
{
    EACH_BLOCK(FIXED_BLOCK);
}
static TARGET void LOCAL(gemm_even)(const tq_tile_store *t)
{
    EACH_BLOCK(LOCAL(gemm_even_block));
}

static TARGET void LOCAL(gemm_store)(const tq_tile_store *t)
{
    if (t->store->exact)
        tq_store_integers_scalar(t);
    else if (t->store->rule == TQ_REQUANTIZE_FLOAT32_EVEN)
        LOCAL(gemm_even)(t);
    else if (t->store->one_offset && !t->adjusted)
        LOCAL(gemm_plain)(t);
    else
        LOCAL(gemm_fixed)(t);
}

#undef EACH_BLOCK
#undef PLAIN_BLOCK
#undef FIXED_BLOCK
#undef LOCAL__
#undef LOCAL_
#undef LOCAL
#undef OUT_TYPE
#undef OUT
#undef OUT_LOW
#undef OUT_HIGH
