/* SPDX-License-Identifier: Apache-2.0
 *
 * Convert between floating-point types: kernels/half.h, and C's own rounding from float64.
 */
#define WIDEN(in)                                                                                            \
    INLINE void step_convert_##in##_f32(const element_##in *x, float *y, const void *p, const char *row,     \
                                        size_t at, enum vary vary, bool stream)                              \
    {                                                                                                        \
        vf value[4];                                                                                         \
        (void)p, (void)row, (void)at, (void)vary;                                                            \
        for (int k = 0; k < 4; k++)                                                                          \
            value[k] = convert_##in##_f32(x + k * LANES);                                                    \
        store4_f32(y, value, stream);                                                                        \
    }
#define NARROW(out)                                                                                          \
    INLINE void step_convert_f32_##out(const float *x, element_##out *y, const void *p, const char *row,     \
                                       size_t at, enum vary vary, bool stream)                               \
    {                                                                                                        \
        (void)p, (void)row, (void)at, (void)vary, (void)stream;                                              \
        for (int k = 0; k < 4; k++)                                                                          \
            convert_f32_##out(x + k * LANES, y + k * LANES);                                                 \
    }
WIDEN(f64)
WIDEN(f16)
WIDEN(bf16)
NARROW(f16)
NARROW(bf16)

#define convert_load(p, at, lanes) 0

#define DEFINE_convert(in, out)                                                                              \
    DEFINE_PAIR_OF_STEPS(convert_##in##_##out, in, out, void, char)                                          \
    DEFINE_PART(convert_##in##_##out, in, out, void, char, convert_load)                                     \
    INLINE void sweep_convert_##in##_##out(const element_##in *x, element_##out *y, size_t n, size_t rows,   \
                                           size_t stride, const void *p, size_t first, bool lanes)           \
    {                                                                                                        \
        (void)lanes;                                                                                         \
        WALK_ROWS(convert_##in##_##out, char, convert_load, false);                                          \
    }
