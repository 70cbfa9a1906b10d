/* SPDX-License-Identifier: Apache-2.0
 *
 * Dequantize, codes to float32: tq_dequantize of quant/rounding.h, where q - zero point fits int32.
 */
struct dequantize_lane {
    vf scale;
    vi zero_point;
};

INLINE struct dequantize_lane dequantize_load(const tq_dequantize_params *p, size_t at, bool lanes)
{
    if (lanes)
        return (struct dequantize_lane){load_f32(p->scale + at), load_s32(p->zero_point + at)};
    return (struct dequantize_lane){splat_f32(p->scale[at]), splat_s32(p->zero_point[at])};
}

/* As many rows at a time use parameters that are loaded once. */
#define ROWS_A_LOAD 4

#define DEFINE_dequantize(in, out)                                                                              \
    INLINE void step_dequantize_##in(const element_##in *x, float *y, const tq_dequantize_params *p,            \
                                     const struct dequantize_lane *row, size_t at, enum vary vary,              \
                                     bool stream)                                                               \
    {                                                                                                           \
        vf value[4];                                                                                            \
        for (int k = 0; k < 4; k++) {                                                                           \
            size_t here = at + (size_t)k * LANES;                                                               \
            struct dequantize_lane c = vary ? dequantize_load(p, here, true) : *row;                            \
            c.zero_point = vary == VARY_ALL ? c.zero_point : row->zero_point;                                   \
            value[k] = mul_f32(float_of_s32(sub_s32(load_##in(x + k * LANES), c.zero_point)), c.scale);         \
        }                                                                                                       \
        store4_f32(y, value, stream);                                                                           \
    }                                                                                                           \
    DEFINE_PAIR_OF_STEPS(dequantize_##in, in, f32, tq_dequantize_params, struct dequantize_lane)                \
    DEFINE_PART(dequantize_##in, in, f32, tq_dequantize_params, struct dequantize_lane, dequantize_load)        \
    DEFINE_BRIEF(dequantize_##in, in, f32, tq_dequantize_params, struct dequantize_lane, dequantize_load)       \
    INLINE void group_dequantize_##in(const element_##in *x, float *y, size_t stride, const tq_dequantize_params *p, \
                                      size_t at, enum vary vary)                                                \
    {                                                                                                           \
        struct dequantize_lane c[4], row = dequantize_load(p, at, false);                                       \
        for (size_t k = 0; k < 4; k++) {                                                                        \
            c[k] = dequantize_load(p, at + k * LANES, true);                                                    \
            c[k].scale = keep_f32(c[k].scale);                                                                  \
            c[k].zero_point = vary == VARY_ALL ? c[k].zero_point : row.zero_point;                              \
        }                                                                                                       \
        for (int r = 0; r < ROWS_A_LOAD; r++, x += stride, y += stride) {                                       \
            vf value[4];                                                                                        \
            for (size_t k = 0; k < 4; k++)                                                                      \
                value[k] = mul_f32(float_of_s32(sub_s32(load_##in(x + k * LANES), c[k].zero_point)), c[k].scale);  \
            store4_f32(y, value, false);                                                                        \
        }                                                                                                       \
    }                                                                                                           \
    INLINE void sweep_dequantize_##in##_f32(const element_##in *x, float *y, size_t n, size_t rows,             \
                                            size_t stride, const tq_dequantize_params *params, size_t first,    \
                                            bool lanes)                                                         \
    {                                                                                                           \
        const tq_dequantize_params copy = *params, *p = &copy; /* which stores to y cannot change */            \
        if (p->wide)                                                                                            \
            (lanes ? tq_dequantize_##in##_f32__scalar_lanes : tq_dequantize_##in##_f32__scalar_row)(            \
                x, y, n, rows, stride, p, first);                                                               \
        else if (!lanes && IS_BRIEF)                                                                            \
            brief_dequantize_##in(x, y, n, rows, stride, p, first);                                             \
        else if (!lanes)                                                                                        \
            WALK_ROWS(dequantize_##in, struct dequantize_lane, dequantize_load, p->stream);                     \
        else {                                                                                                  \
            for (; rows >= ROWS_A_LOAD && n % BLOCK == 0 && n <= GROUPED; rows -= ROWS_A_LOAD) {                \
                for (size_t i = 0; i < n; i += BLOCK)                                                           \
                    group_dequantize_##in(x + i, y + i, stride, p, first + i,                                   \
                                          p->one_zero_point ? VARY_SCALE : VARY_ALL);                           \
                x += ROWS_A_LOAD * stride;                                                                      \
                y += ROWS_A_LOAD * stride;                                                                      \
            }                                                                                                   \
            WALK_LANES(dequantize_##in, struct dequantize_lane, dequantize_load, VARY_ALL, 0);                  \
        }                                                                                                       \
    }
