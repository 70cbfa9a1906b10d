/* SPDX-License-Identifier: Apache-2.0
 *
 * The elementwise kernels of one instruction set, out of a vocabulary of its vectors.
 *
 * The includer has included kernels/kernels.h and a simd_<isa>.h, and has defined ROW_<isa> for every
 * isa of kernels.def: INSTANTIATE for its own, nothing for the others.  The bodies are in the four
 * headers below, one for each operation; this file is what they share: the element types, the walk over
 * an array, and the rows' symbols.
 */
#include <string.h>

#include "kernels/elementwise/code_line.h"

#define ELEMENT(name, type, low, high) typedef type element_##name;
#include "kernels/elements.def"
#undef ELEMENT

#define BLOCK (4 * LANES) /* the elements of one step */
#define LONG_WALK (64 * BLOCK) /* elements; in less, a part costs more than alignment brings */
#define VECTOR_BYTES (4 * LANES)
#define CACHE_LINE 64 /* bytes */

_Static_assert(BLOCK <= TQ_COLUMN_PADDING, "lanes kernels read whole blocks of parameters");

/* What loops seldom need: functions of their own, out of the way of the loops' registers. */
#define RARELY static __attribute__((noinline, cold)) TARGET

/* What they need more often than that: not made for size, which unrolls nothing and keeps vectors on the stack. */
#define APART static __attribute__((noinline)) TARGET

/* A pointer whose origin the compiler does not know, or it takes a register for each sum of a stride and an offset. */
#define OPAQUE(name, pointer)           \
    __typeof__(pointer) name = pointer; \
    __asm__("" : "+r"(name))

/* Which parameters differ from lane to lane. */
enum vary { VARY_NOTHING, VARY_ALL, VARY_SCALE };

/* A kernel is two functions, where row holds the parameters of entry `at`, in registers, for what does not vary:
     step_<kernel>(x, y, p, &row, at, vary, stream)                 does a block;
     pair_<kernel>(x, y, x2, y2, p, &row, at, further, vary, stream)   does two, the parameters of the second
                                                                    `further` entries on.
   part_<kernel>(x, y, n, p, at, lanes) does n <= BLOCK elements through a copy on the stack, so that nothing
   outside the arrays is touched. */
#define DEFINE_PAIR_OF_STEPS(kernel, in, out, params_t, row_t)                                                     \
    INLINE void pair_##kernel(const element_##in *x, element_##out *y, const element_##in *x2, element_##out *y2,  \
                              const params_t *p, const row_t *row, size_t at, size_t further, enum vary vary,      \
                              bool stream)                                                                         \
    {                                                                                                              \
        step_##kernel(x, y, p, row, at, vary, stream);                                                             \
        step_##kernel(x2, y2, p, row, at + further, vary, stream);                                                 \
    }

#define DEFINE_PART(kernel, in, out, params_t, row_t, load_row)                                                    \
    RARELY void part_##kernel(const element_##in *x, element_##out *y, size_t n, const params_t *p, size_t at,     \
                              bool lanes)                                                                          \
    {                                                                                                              \
        const row_t row = load_row(p, at, false);                                                                  \
        element_##in from[BLOCK] = {0};                                                                            \
        element_##out to[BLOCK];                                                                                   \
        memcpy(from, x, n * sizeof *x);                                                                            \
        if (lanes)                                                                                                 \
            step_##kernel(from, to, p, &row, at, VARY_ALL, false);                                                 \
        else                                                                                                       \
            step_##kernel(from, to, p, &row, at, VARY_NOTHING, false);                                             \
        memcpy(y, to, n * sizeof *y);                                                                              \
    }

/* Where the parameters of element i of a row are. */
#define ENTRY(vary) ((vary) ? first + i : first)

/* The last elements of a row, fewer than a block: the block that ends with them once more, if there is one and
   its input is still there (x and y may be the same where elements have one size). */
#define FINISH(kernel, vary)                                                                                       \
    do {                                                                                                           \
        if (i < n && n >= BLOCK && sizeof *x != sizeof *y) {                                                       \
            i = n - BLOCK;                                                                                         \
            step_##kernel(x + i, y + i, p, &row, ENTRY(vary), vary, false);                                        \
        } else if (i < n)                                                                                          \
            part_##kernel(x + i, y + i, n - i, p, ENTRY(vary), (vary) != VARY_NOTHING);                            \
    } while (0)

/* The elements of a row from i on. */
#define PAIR_AT_I(kernel, vary, stream)                                                                            \
    pair_##kernel(x + i, y + i, x + i + BLOCK, y + i + BLOCK, p, &row, ENTRY(vary), (vary) ? BLOCK : 0, vary, stream)
#define WALK(kernel, vary)                                                                                         \
    do {                                                                                                           \
        for (; i + 2 * BLOCK <= n; i += 2 * BLOCK)                                                                 \
            PAIR_AT_I(kernel, vary, false);                                                                        \
        for (; i + BLOCK <= n; i += BLOCK)                                                                         \
            step_##kernel(x + i, y + i, p, &row, ENTRY(vary), vary, false);                                        \
        FINISH(kernel, vary);                                                                                      \
    } while (0)

/* The start of a long row: a part, after which the array of the larger elements is aligned; non-temporal stores ask for
   that of the output.  Such a part is less than a vector's bytes, so at most BLOCK elements. */
#define START_LONG(kernel, streams)                                                                                \
    do {                                                                                                           \
        bool stream = streams, by_output = stream || sizeof *y >= sizeof *x;                                       \
        size_t size = by_output ? sizeof *y : sizeof *x;                                                           \
        size_t past = (by_output ? (uintptr_t)y : (uintptr_t)x) % VECTOR_BYTES;                                    \
        if (past % size != 0 || (!by_output && n < 8 * LONG_WALK)) /* loads mind less than stores */               \
            break;                                                                                                 \
        i = past ? (VECTOR_BYTES - past) / size : 0;                                                               \
        if (i)                                                                                                     \
            part_##kernel(x, y, i, p, first, false);                                                               \
        if (stream) {                                                                                              \
            for (; i + 2 * BLOCK <= n; i += 2 * BLOCK)                                                             \
                PAIR_AT_I(kernel, VARY_NOTHING, true);                                                             \
            end_stream();                                                                                          \
        }                                                                                                          \
    } while (0)

/* Rows whose parameters vary along them: two at a time if they are no longer than `paired`, so that each parameter is
   loaded once for two.  Reading longer ones by turns is slower than loading more. */
#define WALK_LANES(kernel, row_t, load_row, vary, paired)                                                          \
    do {                                                                                                           \
        const row_t row = load_row(p, first, false);                                                               \
        for (; rows >= 2 && n <= (paired) && n % BLOCK == 0; rows -= 2, x += 2 * stride, y += 2 * stride) {        \
            OPAQUE(x2, x + stride);                                                                                \
            OPAQUE(y2, y + stride);                                                                                \
            for (size_t i = 0; i < n; i += BLOCK)                                                                  \
                pair_##kernel(x + i, y + i, x2 + i, y2 + i, p, &row, first + i, 0, vary, false);                   \
        }                                                                                                          \
        for (; rows > 0; rows--, x += stride, y += stride) {                                                       \
            size_t i = 0;                                                                                          \
            WALK(kernel, vary);                                                                                    \
        }                                                                                                          \
    } while (0)

/* Rows with parameters of their own.  There are few long ones in what would be the time of many short ones, and a
   loop without their start is quicker to enter. */
#define WALK_ROWS(kernel, row_t, load_row, streams)                                                                \
    do {                                                                                                           \
        for (; n < LONG_WALK && rows > 0; rows--, x += stride, y += stride, first++) {                             \
            const row_t row = load_row(p, first, false);                                                           \
            size_t i = 0;                                                                                          \
            WALK(kernel, VARY_NOTHING);                                                                            \
        }                                                                                                          \
        for (; rows > 0; rows--, x += stride, y += stride, first++) {                                              \
            const row_t row = load_row(p, first, false);                                                           \
            size_t i = 0;                                                                                          \
            START_LONG(kernel, streams);                                                                           \
            WALK(kernel, VARY_NOTHING);                                                                            \
        }                                                                                                          \
    } while (0)

/* The two symbols of a row of kernels.def. */
#define SYMBOL_(operation, in, out, isa, layout) tq_##operation##_##in##_##out##__##isa##_##layout
#define SYMBOL(operation, in, out, isa, layout) SYMBOL_(operation, in, out, isa, layout)
#define LAYOUT(operation, in, out, layout, is_lanes)                                                               \
    TARGET void SYMBOL(operation, in, out, ISA, layout)(const void *x, void *y, size_t n, size_t rows,             \
                                                        size_t stride, const void *p, size_t first)                \
    {                                                                                                              \
        sweep_##operation##_##in##_##out(x, y, n, rows, stride, p, first, is_lanes);                               \
    }
#define INSTANTIATE(operation, in, out)                                                                            \
    DEFINE_##operation(in, out)                                                                                    \
    LAYOUT(operation, in, out, row, false)                                                                         \
    LAYOUT(operation, in, out, lanes, true)

#include "kernels/fixed_simd.h"
#include "kernels/elementwise/fixed_group_simd.h"
#include "kernels/elementwise/stream_simd.h"

#include "kernels/elementwise/convert_simd.h"
#include "kernels/elementwise/dequantize_simd.h"
#include "kernels/elementwise/quantize_simd.h"
#include "kernels/elementwise/line_simd.h"
#include "kernels/elementwise/requantize_simd.h"

#define KERNEL(operation, in, out, isa) ROW_##isa(operation, in, out)
#include "kernels/kernels.def"
