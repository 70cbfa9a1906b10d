/* SPDX-License-Identifier: Apache-2.0
 *
 * tq_stores of one instruction set, STORE_ISA, from the operations of simd_<isa>.h and gemm_vectors_<isa>.h.
 *
 * 8-bit values are computed in fixed point (fixed_simd.h), and by the scalar rule where fixed point is undecided; rule
 * float32-even is a multiplication and a conversion.
 *
 * Sums fill whole panels and columns have TQ_COLUMN_PADDING more entries, so that whole vectors of both are read.
 */
#include "kernels/fixed_simd.h"

/* Stores the first n bytes of a block. */
INLINE void store_values(void *to, vi values, size_t n)
{
    if (n == 4 * LANES)
        put(to, values, false);
    else
        store_part(to, values, n);
}

/* Stores by the scalar rule those of n values, from channel `at` of row `row` on, whose bit in `lanes` is set. */
static void store_exactly(const tq_tile_store *t, size_t row, size_t at, size_t n, uint64_t lanes)
{
    const tq_gemm_store *s = t->store;
    uint8_t *out = (uint8_t *)t->out + row * t->out_stride + at;
    const uint32_t *sums = (const uint32_t *)t->sums + row * t->sums_stride + at;
    for (; lanes; lanes &= lanes - 1) {
        const size_t i = (size_t)__builtin_ctzll(lanes);
        if (i >= n)
            return;
        const tq_multiplier *m = &s->multiplier[t->first + at + i];
        const int32_t sum = (int32_t)(sums[i] + (uint32_t)t->adjust[row]);
        out[i] = (uint8_t)tq_requantize(sum, m, m->rule, s->zero_point, s->low, s->high);
    }
}

/* Stores by the scalar rule the undecided values of a block: n channels from c on, in `vectors` of v each, of rows
   [r, r + together). */
static __attribute__((noinline, cold)) TARGET void put_undecided(const tq_tile_store *t, size_t r, size_t together,
                                                                 size_t c, size_t n, size_t vectors, const vi v[4])
{
    for (size_t k = 0; k < together; k++) {
        uint64_t lanes = 0;
        for (size_t i = 0; i < vectors; i++)
            lanes |= (uint64_t)lanes_below(v[k * vectors + i], t->store->undecided) << (i * LANES);
        store_exactly(t, r + k, c, n, lanes);
    }
}

/* The columns of a vector of channels. */
struct store_columns {
    vf slope, offset, offset_negative;
};

INLINE struct store_columns load_columns(const tq_gemm_store *s, size_t channel)
{
    return (struct store_columns){load_f32(s->slope + channel), load_f32(s->offset + channel),
                                  load_f32(s->offset_negative + channel)};
}

INLINE vf adjusted_sum(const int32_t *sums, const int32_t *adjust)
{
    return float_of_s32(add_s32(load_s32(sums), splat_s32(*adjust)));
}

/* plain: the adjustment and the sum's sign, which chooses an offset, do not matter. */
INLINE vi store_fixed_of(const struct store_columns *c, const int32_t *sums, const int32_t *adjust, const bool plain)
{
    if (plain)
        return fixed_of(float_of_s32(load_s32(sums)), c->slope, c->offset);
    const vf sum = adjusted_sum(sums, adjust);
    return fixed_of(sum, c->slope, choose_by_sign(sum, c->offset, c->offset_negative));
}

/* Rule float32-even: even(f32(f32(sum) * by)).  Values above `most` saturate and might overflow the conversion, so they
   are clamped first; below, the conversion saturates or gives INT32_MIN, which saturates later. */
INLINE vi store_even_of(const int32_t *sums, const int32_t *adjust, vf by, vf most)
{
    return even_s32(min_f32(mul_f32(adjusted_sum(sums, adjust), by), most));
}

#include "kernels/gemm/gemm_store_8bit_simd.h"

/* ---- 16-bit values: the fixed-point rules and float64-away, on vectors ---- */

/* The real multipliers of a tile's channels, and 0 for the lanes behind them. */
INLINE void load_reals(const tq_tile_store *t, double real[TQ_TILE_CHANNELS])
{
    for (size_t c = 0; c < (t->channels + LANES - 1) / LANES * LANES; c++)
        real[c] = c < t->channels ? t->store->multiplier[t->first + c].f64 : 0;
}

/* real: of rule float64-away; NULL of the others. */
INLINE vi store_i16_of(const tq_gemm_store *s, const int32_t *sums, vi adjust, size_t channel, const double *real)
{
    const vi zero_point = splat_s32(s->zero_point);
    const vi least = sub_s32(splat_s32(s->low), zero_point), most = sub_s32(splat_s32(s->high), zero_point);
    vi sum = add_s32(load_s32(sums), adjust);
    if (real)
        return add_s32(mul_f64_away(sum, load_f64(real), least, most), zero_point);
    vi left = load_s32(s->left + channel), right = load_s32(s->right + channel);
    vi high = high_mul(shift_left_saturating(sum, left), load_s32(s->fixed + channel));
    vi value = s->rule == TQ_REQUANTIZE_DOUBLE ? shift_away(high, right) : shift_up(high, right);
    return add_s32(clamp_s32(value, least, most), zero_point);
}

INLINE void store_rows_i16(const tq_tile_store *t, const double *real)
{
    for (size_t r = 0; r < t->rows; r++) {
        const int32_t *sums = (const int32_t *)t->sums + r * t->sums_stride;
        int16_t *y = (int16_t *)t->out + r * t->out_stride;
        const vi adjust = splat_s32(t->adjust[r]);
        for (size_t c = 0; c < t->channels; c += 4 * LANES) {
            const size_t n = t->channels - c;
            vi v[4];
            for (size_t k = 0; k < 4; k++) {
                const size_t at = c + k * LANES;
                v[k] = k * LANES < n ? store_i16_of(t->store, sums + at, adjust, t->first + at, real ? real + at : NULL)
                                     : splat_s32(0);
            }
            if (n >= 4 * LANES) {
                store4_i16(y + c, v, false);
            } else {
                int16_t part[4 * LANES];
                store4_i16(part, v, false);
                memcpy(y + c, part, n * sizeof *y);
            }
        }
    }
}

static TARGET void gemm_store_i16(const tq_tile_store *t)
{
    double real[TQ_TILE_CHANNELS];
    switch (t->store->rule) {
    case TQ_REQUANTIZE_FLOAT64_AWAY:
        load_reals(t, real);
        store_rows_i16(t, real);
        break;
    case TQ_REQUANTIZE_DOUBLE:
    case TQ_REQUANTIZE_UP: store_rows_i16(t, NULL); break;
    default: tq_store_integers_scalar(t);
    }
}

static TARGET void gemm_store_f32(const tq_tile_store *t)
{
    const vf low = splat_f32(t->store->floor), high = splat_f32(t->store->ceiling);
    for (size_t r = 0; r < t->rows; r++) {
        const float *sums = (const float *)t->sums + r * t->sums_stride;
        float *y = (float *)t->out + r * t->out_stride;
        size_t c = 0;
        for (; c + LANES <= t->channels; c += LANES)
            store_f32(y + c, clamp_f32(load_f32(sums + c), low, high));
        if (c < t->channels && t->channels >= LANES) { /* the last vector overlaps the one before */
            c = t->channels - LANES;
            store_f32(y + c, clamp_f32(load_f32(sums + c), low, high));
        } else if (c < t->channels) {
            float part[LANES];
            store_f32(part, clamp_f32(load_f32(sums), low, high));
            memcpy(y, part, t->channels * sizeof *y);
        }
    }
}

/* ---- 64-bit sums: tq_multiply_i64, WIDE_LANES at a time by wide_values ---- */

INLINE void store_rows_wide(const tq_tile_store *t, const double *real)
{
    for (size_t r = 0; r < t->rows; r++) {
        const int64_t *sums = (const int64_t *)t->sums + r * t->sums_stride;
        int16_t *y = (int16_t *)t->out + r * t->out_stride;
        for (size_t c = 0; c < t->channels; c += WIDE_LANES) {
            const size_t n = t->channels - c;
            int16_t part[WIDE_LANES], *to = n >= WIDE_LANES ? y + c : part;
            if (real)
                wide_away(t->store, sums + c, real + c, to);
            else
                wide_values(t->store, sums + c, t->first + c, to);
            if (n < WIDE_LANES)
                memcpy(y + c, part, n * sizeof *y);
        }
    }
}

static TARGET void gemm_store_wide(const tq_tile_store *t)
{
    double real[TQ_TILE_CHANNELS];
    if (t->store->rule != TQ_REQUANTIZE_FLOAT64_AWAY) {
        store_rows_wide(t, NULL);
        return;
    }
    load_reals(t, real);
    store_rows_wide(t, real);
}

#define GLUE_STORES_(isa) tq_stores__##isa
#define GLUE_STORES(isa) GLUE_STORES_(isa)
const tq_stores GLUE_STORES(STORE_ISA) = {.i8 = gemm_store_8bit,
                                          .u8 = gemm_store_8bit,
                                          .i16 = gemm_store_i16,
                                          .i16_wide = gemm_store_wide,
                                          .f32 = gemm_store_f32};
