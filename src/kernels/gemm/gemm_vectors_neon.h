/* SPDX-License-Identifier: Apache-2.0
 *
 * Vector operations of the products in Advanced SIMD, beside those of simd_neon.h.
 */
/* clang-format off: one operation a line */
#define IN_REGISTER(x) __asm__("" : "+w"(x))

INLINE void store_f32(float *p, vf x)
{
    vst1q_f32(p, x);
}

/* Quantized values of 4 / vectors rows, `stride` bytes apart; 1 or 2 vectors each. */
INLINE void store_rows(char *p, size_t stride, vi values, size_t vectors)
{
    int32_t lanes[4];
    vst1q_s32(lanes, values);
    for (size_t i = 0; i < 4; i += vectors)
        memcpy(p + i / vectors * stride, lanes + i, vectors * LANES);
}

/* The first n bytes of each of these rows. */
INLINE void store_row_parts(char *p, size_t stride, vi values, size_t vectors, size_t n)
{
    char part[4 * LANES];
    put(part, values, false);
    for (size_t i = 0; i < 4; i += vectors, p += stride)
        tq_copy_part(p, part + i * LANES, n);
}

/* Bit i: the low half of lane i is below `limit`. */
INLINE uint32_t lanes_below(vi x, int32_t limit)
{
    int32_t lanes[4];
    uint32_t below = 0;
    vst1q_s32(lanes, x);
    for (uint32_t i = 0; i < LANES; i++)
        below |= (uint32_t)((lanes[i] & 0xFFFF) < limit) << i;
    return below;
}

/* The first n bytes, n < 16. */
INLINE void store_part(void *p, vi values, size_t n)
{
    char part[16];
    vst1q_s32((int32_t *)(void *)part, values);
    tq_copy_part(p, part, n);
}

/* Sums of 8 channels. */
typedef struct {
    int32x4_t low, high;
} eight_sums;
INLINE eight_sums load_eight(const void *p)
{
    return (eight_sums){vld1q_s32(p), vld1q_s32((const int32_t *)p + 4)};
}
INLINE void save_eight(void *p, eight_sums x)
{
    vst1q_s32(p, x.low);
    vst1q_s32((int32_t *)p + 4, x.high);
}
INLINE eight_sums multiply_eight(eight_sums sums, int16x8_t a, int16x8_t b)
{
    sums.low = vmlal_s16(sums.low, vget_low_s16(a), vget_low_s16(b));
    sums.high = vmlal_high_s16(sums.high, a, b);
    return sums;
}

/* tq_multiply_i64 and the clamp; compilers vectorize it in two lanes. */
#define WIDE_LANES 4
INLINE void wide_values(const tq_gemm_store *s, const int64_t *sums, size_t channel, int16_t *out)
{
    const int64_t limit = (int64_t)1 << 47;
    const int64_t low = (int64_t)s->low - s->zero_point, high = (int64_t)s->high - s->zero_point;
    for (size_t i = 0; i < WIDE_LANES; i++) {
        int64_t sum = sums[i] < -limit ? -limit : sums[i] >= limit ? limit - 1 : sums[i];
        int32_t total = s->total[channel + i];
        int64_t value = (sum * s->reduced[channel + i] + ((int64_t)1 << (total - 1))) >> total;
        value = value < low ? low : value > high ? high : value;
        out[i] = (int16_t)(value + s->zero_point);
    }
}
/* clamp(away(f64(sum) * by) + zero point). */
INLINE void wide_away(const tq_gemm_store *s, const int64_t *sums, const double *by, int16_t *out)
{
    const double least = (double)s->low - s->zero_point, most = (double)s->high - s->zero_point;
    for (size_t i = 0; i < WIDE_LANES; i++) {
        double value = (double)sums[i] * by[i];
        value = value < least ? least : value > most ? most : value;
        out[i] = (int16_t)(vcvtad_s64_f64(value) + s->zero_point);
    }
}
/* clang-format on */
