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

#define ELEMENT(name, type, low, high) typedef type element_##name;
#include "kernels/elements.def"
#undef ELEMENT

#define BLOCK (4 * LANES) /* the elements of one step */

_Static_assert(BLOCK <= TQ_COLUMN_PADDING, "lanes kernels read whole blocks of parameters");

/* The body of a sweep(x, y, n, p, first, lanes): walks n elements from x to y in blocks, of which
   step(x, y, p, &row, at, lanes, stream) does one with the parameters of entry `at`; row holds those of
   entry `first`, in registers, for a row kernel.  What is left over goes
   through a copy on the stack, so that nothing outside the arrays is touched.  Non-temporal stores want
   aligned addresses: then a partial block goes first. */
#define PART(in, out, step, size)                                       \
    do {                                                                \
        size_t part = (size);                                           \
        element_##in from_part[BLOCK] = {0};                            \
        element_##out to_part[BLOCK];                                   \
        memcpy(from_part, x + i, part * sizeof *x);                     \
        step(from_part, to_part, p, &row, lanes ? first + i : first, lanes, false); \
        memcpy(y + i, to_part, part * sizeof *y);                       \
        i += part;                                                      \
    } while (0)

#define WALK(in, out, step, streams)                                                              \
    do {                                                                                          \
        size_t i = 0;                                                                             \
        if ((streams) && n >= 2 * BLOCK && (uintptr_t)y % sizeof *y == 0) {                       \
            size_t past = (uintptr_t)y % STREAM_ALIGNMENT;                                        \
            if (past)                                                                             \
                PART(in, out, step, (STREAM_ALIGNMENT - past) / sizeof *y);                       \
            for (; i + BLOCK <= n; i += BLOCK)                                                    \
                step(x + i, y + i, p, &row, lanes ? first + i : first, lanes, true);                    \
            end_stream();                                                                         \
        }                                                                                         \
        for (; i + BLOCK <= n; i += BLOCK)                                                        \
            step(x + i, y + i, p, &row, lanes ? first + i : first, lanes, false);                       \
        if (i < n)                                                                                \
            PART(in, out, step, n - i);                                                           \
    } while (0)

/* The two symbols of a row, out of sweep_<operation>(x, y, n, params, first, lanes). */
#define SYMBOL_(operation, in, out, isa, layout) tq_##operation##_##in##_##out##__##isa##_##layout
#define SYMBOL(operation, in, out, isa, layout) SYMBOL_(operation, in, out, isa, layout)
#define LAYOUT(operation, in, out, layout, is_lanes)                                                     \
    TARGET void SYMBOL(operation, in, out, ISA, layout)(const void *x, void *y, size_t n, const void *p, \
                                                        size_t first)                                    \
    {                                                                                                    \
        sweep_##operation##_##in##_##out(x, y, n, p, first, is_lanes);                                   \
    }
#define INSTANTIATE(operation, in, out)       \
    DEFINE_##operation(in, out)               \
    LAYOUT(operation, in, out, row, false)    \
    LAYOUT(operation, in, out, lanes, true)

/* What loops seldom need. */
#define RARELY static __attribute__((noinline, cold)) TARGET

#include "kernels/fixed_simd.h"

#include "kernels/convert_simd.h"
#include "kernels/dequantize_simd.h"
#include "kernels/quantize_simd.h"
#include "kernels/requantize_simd.h"

#define KERNEL(operation, in, out, isa) ROW_##isa(operation, in, out)
#include "kernels/kernels.def"
