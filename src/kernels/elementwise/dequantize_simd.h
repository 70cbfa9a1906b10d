/* SPDX-License-Identifier: Apache-2.0
 *
 * Dequantize, codes to float32: tq_dequantize of quant/rounding.h, where q - zero point fits int32.
 */
struct dequantize_lane {
    vf scale;
    vi zero_point;
};

INLINE struct dequantize_lane dequantize_mix(const struct dequantize_lane *a, const struct dequantize_lane *b,
                                             int32_t cut, enum vary vary)
{
    return (struct dequantize_lane){mix_f32(a->scale, b->scale, cut),
                                    vary == VARY_ALL ? mix_s32(a->zero_point, b->zero_point, cut) : a->zero_point};
}

#define DEFINE_dequantize(in, out)                                                                              \
    INLINE struct dequantize_lane set_dequantize_##in(const tq_dequantize_params *p, size_t entry,              \
                                                      const struct dequantize_lane *first, enum vary vary)      \
    {                                                                                                           \
        return (struct dequantize_lane){splat_f32(p->scale[entry]), vary == VARY_ALL                            \
                                                                        ? splat_s32(p->zero_point[entry])       \
                                                                        : first->zero_point};                   \
    }                                                                                                           \
    INLINE struct dequantize_lane load_dequantize_##in(const tq_dequantize_params *p, size_t at,                \
                                                       const struct dequantize_lane *first, enum vary vary)     \
    {                                                                                                           \
        return (struct dequantize_lane){load_f32(p->scale + at),                                                \
                                        vary == VARY_ALL ? load_s32(p->zero_point + at) : first->zero_point};   \
    }                                                                                                           \
    INLINE struct dequantize_lane mix_dequantize_##in(const struct dequantize_lane *a,                          \
                                                      const struct dequantize_lane *b, int32_t cut,             \
                                                      enum vary vary)                                           \
    {                                                                                                           \
        return dequantize_mix(a, b, cut, vary);                                                                 \
    }                                                                                                           \
    INLINE fixed_lows block_dequantize_##in(const element_##in *x, float *y, const struct dequantize_lane c[4], \
                                            const tq_dequantize_params *p, bool stream)                         \
    {                                                                                                           \
        vf value[4];                                                                                            \
        (void)p;                                                                                                \
        for (int k = 0; k < 4; k++)                                                                             \
            value[k] = mul_f32(float_of_s32(sub_s32(load_##in(x + k * LANES), c[k].zero_point)), c[k].scale);   \
        store4_f32(y, value, stream);                                                                           \
        return fixed_no_doubt();                                                                                \
    }                                                                                                           \
    NO_DOUBTS(dequantize_##in, in, f32, tq_dequantize_params)                                                   \
    DEFINE_STREAM(dequantize_##in, in, f32, tq_dequantize_params, struct dequantize_lane)                       \
    INLINE void sweep_dequantize_##in##_f32(const element_##in *x, float *y, size_t n, size_t rows,             \
                                            size_t stride, const tq_dequantize_params *params, size_t first,    \
                                            bool lanes)                                                         \
    {                                                                                                           \
        const tq_dequantize_params copy = *params, *p = &copy; /* which stores to y cannot change */            \
        if (p->wide)                                                                                            \
            (lanes ? tq_dequantize_##in##_f32__scalar_lanes : tq_dequantize_##in##_f32__scalar_row)(            \
                x, y, n, rows, stride, p, first);                                                               \
        else if (!lanes)                                                                                        \
            sweep_rows_dequantize_##in(x, y, n, rows, stride, p, first,                                         \
                                       p->one_zero_point ? VARY_SCALE : VARY_ALL, p->stream);                   \
        else if (p->one_zero_point)                                                                             \
            sweep_lanes_dequantize_##in(x, y, n, rows, stride, p, first, VARY_SCALE);                           \
        else                                                                                                    \
            sweep_lanes_dequantize_##in(x, y, n, rows, stride, p, first, VARY_ALL);                             \
    }
