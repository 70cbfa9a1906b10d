/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums to 8-bit codes, in the vocabulary of simd_<isa>.h: by fixed_simd.h, and by the scalar rule where that says so.
 * And the copies that make 16-bit rows of 8-bit ones.
 *
 * Sums lie in whole panels, so whole vectors of them are read; columns have TQ_COLUMN_PADDING entries more.
 */
#include "kernels/fixed_simd.h"

/* n < 64 codes out of a block that has them all. */
static inline void store_part(char *to, const char *from, size_t n)
{
    if (n >= 32) {
        memcpy(to, from, 32);
        memcpy(to + n - 32, from + n - 32, 32);
    } else if (n >= 16) {
        memcpy(to, from, 16);
        memcpy(to + n - 16, from + n - 16, 16);
    } else if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else {
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}

static __attribute__((noinline, cold)) void store_exactly(const tq_tile_store *t, size_t row, size_t at, size_t n)
{
    tq_tile_store part = *t;
    size_t size = tq_element_size(t->store->out);
    part.sums += row * t->sums_stride + at;
    part.adjust += row;
    part.rows = 1;
    part.channels = n;
    part.first += at;
    part.out = (char *)t->out + (row * t->out_stride + at) * size;
    tq_store_tile_scalar(&part);
}

INLINE vi store_fixed_of(const tq_gemm_store *s, const int32_t *sums, vi adjust, size_t channel)
{
    vi sum = add_s32(load_s32(sums), adjust);
    vf offset = choose_by_sign(sum, load_f32(s->offset + channel), load_f32(s->offset_negative + channel));
    return fixed_of(float_of_s32(sum), load_f32(s->slope + channel), offset);
}

#define DEFINE_GEMM_STORE(out_t, type, lowest, highest)                                                       \
    static TARGET void gemm_store_##out_t(const tq_tile_store *t)                                             \
    {                                                                                                         \
        const tq_gemm_store *s = t->store;                                                                    \
        const int32_t low = s->low, high = s->high;                                                           \
        const bool clamp = low > (lowest) || high < (highest);                                                \
        const size_t n = t->channels;                                                                         \
        if (s->exact) {                                                                                       \
            tq_store_tile_scalar(t);                                                                          \
            return;                                                                                           \
        }                                                                                                     \
        for (size_t r = 0; r < t->rows; r++) {                                                                \
            const int32_t *sums = t->sums + r * t->sums_stride;                                               \
            type *y = (type *)t->out + r * t->out_stride;                                                     \
            const vi adjust = splat_s32(t->adjust[r]);                                                        \
            size_t c = 0;                                                                                     \
            for (; c + 4 * LANES <= n; c += 4 * LANES) {                                                      \
                vi v[4];                                                                                      \
                for (size_t k = 0; k < 4; k++)                                                                \
                    v[k] = store_fixed_of(s, sums + c + k * LANES, adjust, t->first + c + k * LANES);         \
                if (!store_fixed_##out_t(y + c, v, clamp, low, high, false))                                  \
                    store_exactly(t, r, c, 4 * LANES);                                                        \
            }                                                                                                 \
            if (c < n) {                                                                                      \
                type part[4 * LANES];                                                                         \
                vi v[4];                                                                                      \
                for (size_t k = 0; k < 4; k++)                                                                \
                    v[k] = c + k * LANES < n                                                                  \
                               ? store_fixed_of(s, sums + c + k * LANES, adjust, t->first + c + k * LANES)    \
                               : splat_s32(0x8000);                                                           \
                if (store_fixed_##out_t(part, v, clamp, low, high, false))                                    \
                    store_part((char *)(y + c), (const char *)part, n - c);                                   \
                else                                                                                          \
                    store_exactly(t, r, c, n - c);                                                            \
            }                                                                                                 \
        }                                                                                                     \
    }
DEFINE_GEMM_STORE(i8, int8_t, INT8_MIN, INT8_MAX)
DEFINE_GEMM_STORE(u8, uint8_t, 0, UINT8_MAX)

static TARGET void gemm_copy_i8(const int8_t *from, int16_t *to, size_t n, int32_t zero_point)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (int16_t)(from[i] - zero_point);
}

static TARGET void gemm_copy_u8(const uint8_t *from, int16_t *to, size_t n, int32_t zero_point)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (int16_t)(from[i] - zero_point);
}
