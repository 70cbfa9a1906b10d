/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: the elementwise kernels of one instruction set, from its vector operations.
 *
 * The includer has included kernels/elementwise.h and a simd_<isa>.h, and has defined ROW_<isa> for every isa of
 * elementwise.def: INSTANTIATE for its own, empty for the others.  Each operation has a template of its vectors;
 * walk_simd.h, the walk over an array, is included once for every kernel.  This file has the names that they share, and
 * the rows' symbols.
 */
#include <string.h>

#include "quant/rounding.h"

#define BLOCK (4 * LANES) /* the elements of one step */
#define LONG_WALK (64 * BLOCK) /* elements; in shorter rows, aligning costs more than it saves */
#define SHORT_ROW 256 /* elements */
#define VECTOR_BYTES (4 * LANES)

_Static_assert(BLOCK <= TQ_COLUMN_PADDING, "lanes kernels read whole blocks of parameters");

/* Rare work of loops: functions of their own, so that loops keep their registers. */
#define RARELY static __attribute__((noinline, cold)) TARGET

/* A function that is never inlined, optimized for speed. */
#define APART static __attribute__((noinline, unused)) TARGET

/* A pointer whose origin is hidden from the compiler; otherwise it spends a register on each sum of stride and offset.
 */
#define OPAQUE(name, pointer)           \
    __typeof__(pointer) name = pointer; \
    __asm__("" : "+r"(name))

#define GLUE_(a, b) a##_##b
#define GLUE(a, b) GLUE_(a, b)
#define NAMED(name) GLUE(name, KERNEL)
#define in_t GLUE(tq_element, IN)
#define out_t GLUE(tq_element, OUT)

/* 16.16 fixed point, of quantize and requantize. */
#include "kernels/fixed_simd.h"

/* ---- quantize ---- */

#include "kernels/elementwise/quantize_simd.h"

/* ---- dequantize ---- */

struct dequantize_lane {
    vf scale;
    vi zero_point;
};

#define IN i8
#include "kernels/elementwise/dequantize_simd.h"
#define IN u8
#include "kernels/elementwise/dequantize_simd.h"
#define IN i16
#include "kernels/elementwise/dequantize_simd.h"
#define IN u16
#include "kernels/elementwise/dequantize_simd.h"
#define IN i32
#include "kernels/elementwise/dequantize_simd.h"

/* ---- requantize ---- */

#include "kernels/elementwise/requantize_simd.h"

/* ---- convert ---- */

struct no_params {
    bool stream;
};
static const struct no_params no_params = {false};

#define WIDEN(x, y, stream, vector)             \
    do {                                        \
        vf value[4];                            \
        for (size_t k = 0; k < 4; k++)          \
            value[k] = vector((x) + k * LANES); \
        store4_f32(y, value, stream);           \
    } while (0)
#define NARROW(x, y, vector)                          \
    do {                                              \
        for (size_t k = 0; k < 4; k++)                \
            vector((x) + k * LANES, (y) + k * LANES); \
    } while (0)

#define IN f64
#define OUT f32
#define CONVERT_BLOCK(x, y, stream) WIDEN(x, y, stream, convert_f64_f32)
#include "kernels/elementwise/convert_simd.h"
#define IN f16
#define OUT f32
#define CONVERT_BLOCK(x, y, stream) WIDEN(x, y, stream, convert_f16_f32)
#include "kernels/elementwise/convert_simd.h"
#define IN bf16
#define OUT f32
#define CONVERT_BLOCK(x, y, stream) WIDEN(x, y, stream, convert_bf16_f32)
#include "kernels/elementwise/convert_simd.h"
#define IN f32
#define OUT f16
#define CONVERT_BLOCK(x, y, stream) NARROW(x, y, convert_f32_f16)
#include "kernels/elementwise/convert_simd.h"
#define IN f32
#define OUT bf16
#define CONVERT_BLOCK(x, y, stream) NARROW(x, y, convert_f32_bf16)
#include "kernels/elementwise/convert_simd.h"

/* ---- the symbols of the rows of elementwise.def: tq_<operation>_<in>_<out>__<isa>_row and _lanes ---- */

#define SYMBOL_(operation, in, out, isa, layout) tq_##operation##_##in##_##out##__##isa##_##layout
#define SYMBOL(operation, in, out, isa, layout) SYMBOL_(operation, in, out, isa, layout)

/* One symbol: walk(x, y, n, rows, stride, p, first, rule), or the scalar row where vectors cannot compute p. */
#define DEFINE_SYMBOL(operation, in, out, layout, params_t, needs_scalar, walk, rule)                                 \
    TARGET void SYMBOL(operation, in, out, ISA, layout)(const void *x, void *y, size_t n, size_t rows, size_t stride, \
                                                        const void *params, size_t first)                             \
    {                                                                                                                 \
        const params_t *p = params;                                                                                   \
        if (needs_scalar)                                                                                             \
            SYMBOL(operation, in, out, scalar, layout)(x, y, n, rows, stride, p, first);                              \
        else                                                                                                          \
            walk(x, y, n, rows, stride, p, first, rule);                                                              \
    }
#define DEFINE_SYMBOLS(operation, in, out, params_t, needs_scalar, kernel, rule)        \
    DEFINE_SYMBOL(operation, in, out, row, params_t, needs_scalar, rows_##kernel, rule) \
    DEFINE_SYMBOL(operation, in, out, lanes, params_t, needs_scalar, lanes_##kernel, rule)

#define QUANTIZE_KERNEL_i8(rule) quantize_8bit
#define QUANTIZE_KERNEL_u8(rule) quantize_8bit
#define QUANTIZE_KERNEL_i16(rule) quantize_##rule##_i16
#define QUANTIZE_KERNEL_u16(rule) quantize_##rule##_u16
#define REQUANTIZE_KERNEL_i8(in) requantize_##in##_8bit
#define REQUANTIZE_KERNEL_u8(in) requantize_##in##_8bit
#define REQUANTIZE_KERNEL_i16(in) requantize_##in##_i16
#define REQUANTIZE_KERNEL_i32(in) requantize_##in##_i32
#define DEFINE_SYMBOLS_OF(...) DEFINE_SYMBOLS(__VA_ARGS__)
#define DEFINE_quantize_away(in, out)                                                                             \
    DEFINE_SYMBOLS_OF(quantize_away, in, out, tq_quantize_params, p->infinite_slope, QUANTIZE_KERNEL_##out(away), \
                      TQ_QUANTIZE_AWAY)
#define DEFINE_quantize_even(in, out)                                                                             \
    DEFINE_SYMBOLS_OF(quantize_even, in, out, tq_quantize_params, p->infinite_slope, QUANTIZE_KERNEL_##out(even), \
                      TQ_QUANTIZE_EVEN)
#define DEFINE_dequantize(in, out) \
    DEFINE_SYMBOLS(dequantize, in, out, tq_dequantize_params, p->wide, dequantize_##in, 0)
#define DEFINE_requantize(name, in, out, rule)                                                            \
    DEFINE_SYMBOLS_OF(requantize_##name, in, out, tq_requantize_params, requantize_needs_scalar(p, rule), \
                      REQUANTIZE_KERNEL_##out(in), rule)
#define DEFINE_requantize_double(in, out) DEFINE_requantize(double, in, out, TQ_REQUANTIZE_DOUBLE)
#define DEFINE_requantize_single(in, out) DEFINE_requantize(single, in, out, TQ_REQUANTIZE_SINGLE)
#define DEFINE_requantize_up(in, out) DEFINE_requantize(up, in, out, TQ_REQUANTIZE_UP)
#define DEFINE_requantize_float64_away(in, out) DEFINE_requantize(float64_away, in, out, TQ_REQUANTIZE_FLOAT64_AWAY)
#define DEFINE_requantize_float32_even(in, out) DEFINE_requantize(float32_even, in, out, TQ_REQUANTIZE_FLOAT32_EVEN)

/* Conversions have no parameters: p is NULL. */
#define DEFINE_convert(in, out)     \
    DEFINE_CONVERSION(in, out, row) \
    DEFINE_CONVERSION(in, out, lanes)
#define DEFINE_CONVERSION(in, out, layout)                                                                          \
    TARGET void SYMBOL(convert, in, out, ISA, layout)(const void *x, void *y, size_t n, size_t rows, size_t stride, \
                                                      const void *p, size_t first)                                  \
    {                                                                                                               \
        (void)p;                                                                                                    \
        rows_convert_##in##_##out(x, y, n, rows, stride, &no_params, first, 0);                                     \
    }

#define INSTANTIATE(operation, in, out) DEFINE_##operation(in, out)
#define KERNEL(operation, in, out, isa) ROW_##isa(operation, in, out)
#include "kernels/elementwise.def"
