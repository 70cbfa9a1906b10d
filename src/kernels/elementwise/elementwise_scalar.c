/* SPDX-License-Identifier: Apache-2.0
 *
 * The scalar rows of elementwise.def: quant/rounding.h, element by element.  They are the definition: every other
 * variant equals them bit for bit.
 */
#include "kernels/elementwise.h"

#include "kernels/half.h"
#include "kernels/inline.h"
#include "quant/rounding.h"

#define INLINE TQ_INLINE

/* One element, with the parameters of entry `at`. */

INLINE int32_t quantize_away(float x, const tq_quantize_params *p, size_t at)
{
    return tq_quantize_away(x, p->scale[at], p->zero_point[at], p->low, p->high) & p->mask;
}

INLINE int32_t quantize_even(float x, const tq_quantize_params *p, size_t at)
{
    return tq_quantize_even(x, p->inverse[at], p->zero_point[at], p->low, p->high) & p->mask;
}

INLINE float dequantize(int32_t q, const tq_dequantize_params *p, size_t at)
{
    return tq_dequantize(q, p->scale[at], p->zero_point[at]);
}

INLINE int32_t requantize(int32_t q, const tq_requantize_params *p, size_t at, tq_requantize_rule rule)
{
    int32_t acc = tq_saturate_i32((int64_t)q - p->input_zero_point[at]);
    tq_multiplier m = {p->real[at], p->real_f32[at], p->multiplier[at], p->left[at] - p->right[at], rule};
    return tq_requantize(acc, &m, rule, p->zero_point[at], p->low, p->high);
}

typedef tq_quantize_params params_quantize_away, params_quantize_even;
typedef tq_dequantize_params params_dequantize;

INLINE float convert_f64_f32(double x)
{
    return (float)x;
}

#define convert_f16_f32 tq_half_to_float
#define convert_bf16_f32 tq_bfloat_to_float
#define convert_f32_f16 tq_float_to_half
#define convert_f32_bf16 tq_float_to_bfloat

/* Loops of costly elements serve both layouts; others are compiled for each. */
#define MAP(operation, in, out) MAP_WITH(__attribute__((noinline)), operation, in, out)

/* Element i of row r takes the parameters of entry first + r, or first + i of a lanes kernel. */
#define MAP_WITH(attributes, operation, in, out)                                                             \
    attributes static void operation##_##in##_##out(const tq_element_##in *x, tq_element_##out *y, size_t n, \
                                                    size_t rows, size_t stride, const params_##operation *p, \
                                                    size_t first, bool lanes)                                \
    {                                                                                                        \
        for (size_t r = 0; r < rows; r++, x += stride, y += stride)                                          \
            for (size_t i = 0; i < n; i++)                                                                   \
                y[i] = (tq_element_##out)operation(x[i], p, first + (lanes ? i : r));                        \
    }                                                                                                        \
    SYMBOL(operation, in, out, row, operation##_##in##_##out(x, y, n, rows, stride, p, first, false))        \
    SYMBOL(operation, in, out, lanes, operation##_##in##_##out(x, y, n, rows, stride, p, first, true))
#define SYMBOL(operation, in, out, layout, ...)                                                          \
    void tq_##operation##_##in##_##out##__scalar_##layout(const void *x, void *y, size_t n, size_t rows, \
                                                          size_t stride, const void *p, size_t first)    \
    {                                                                                                    \
        __VA_ARGS__;                                                                                     \
    }

#define MAP_quantize_away MAP
#define MAP_quantize_even MAP
#define MAP_dequantize(operation, in, out) MAP_WITH(__attribute__((always_inline)) inline, operation, in, out)
/* One loop for all rules: they are many, and few elements are requantized here. */
#define MAP_requantize_double(operation, in, out)                                            \
    static __attribute__((noinline)) void requantize_##in##_##out(                           \
        const tq_element_##in *x, tq_element_##out *y, size_t n, size_t rows, size_t stride, \
        const tq_requantize_params *p, size_t first, bool lanes, tq_requantize_rule rule)    \
    {                                                                                        \
        for (size_t r = 0; r < rows; r++, x += stride, y += stride)                          \
            for (size_t i = 0; i < n; i++)                                                   \
                y[i] = (tq_element_##out)requantize(x[i], p, first + (lanes ? i : r), rule); \
    }                                                                                        \
    REQUANTIZE_SYMBOLS(operation, in, out, TQ_REQUANTIZE_DOUBLE)
#define REQUANTIZE_SYMBOLS(operation, in, out, rule)                                                       \
    SYMBOL(operation, in, out, row, requantize_##in##_##out(x, y, n, rows, stride, p, first, false, rule)) \
    SYMBOL(operation, in, out, lanes, requantize_##in##_##out(x, y, n, rows, stride, p, first, true, rule))
#define MAP_requantize_single(operation, in, out) REQUANTIZE_SYMBOLS(operation, in, out, TQ_REQUANTIZE_SINGLE)
#define MAP_requantize_up(operation, in, out) REQUANTIZE_SYMBOLS(operation, in, out, TQ_REQUANTIZE_UP)
#define MAP_requantize_float64_away(operation, in, out) \
    REQUANTIZE_SYMBOLS(operation, in, out, TQ_REQUANTIZE_FLOAT64_AWAY)
#define MAP_requantize_float32_even(operation, in, out) \
    REQUANTIZE_SYMBOLS(operation, in, out, TQ_REQUANTIZE_FLOAT32_EVEN)
#define MAP_convert(operation, in, out)                                                                              \
    static __attribute__((noinline)) void rows_##in##_##out(const tq_element_##in *x, tq_element_##out *y, size_t n, \
                                                            size_t rows, size_t stride)                              \
    {                                                                                                                \
        for (size_t r = 0; r < rows; r++, x += stride, y += stride)                                                  \
            for (size_t i = 0; i < n; i++)                                                                           \
                y[i] = convert_##in##_##out(x[i]);                                                                   \
    }                                                                                                                \
    SYMBOL(operation, in, out, row, (void)p, (void)first; rows_##in##_##out(x, y, n, rows, stride))                  \
    SYMBOL(operation, in, out, lanes, (void)p, (void)first; rows_##in##_##out(x, y, n, rows, stride))

#define ROW_scalar(operation, in, out) MAP_##operation(operation, in, out)
#define ROW_avx2(operation, in, out)
#define ROW_avx512(operation, in, out)
#define ROW_neon(operation, in, out)
#define KERNEL(operation, in, out, isa) ROW_##isa(operation, in, out)
#include "kernels/elementwise.def"
