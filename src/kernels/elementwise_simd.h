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
#define LONG_WALK (64 * BLOCK) /* elements; in less, a part costs more than alignment brings */
#define VECTOR_BYTES (4 * LANES)

_Static_assert(BLOCK <= TQ_COLUMN_PADDING, "lanes kernels read whole blocks of parameters");

/* What loops seldom need: functions of their own, out of the way of the loops' registers. */
#define RARELY static __attribute__((noinline, cold)) TARGET

/* part_<kernel>(x, y, n, p, at, lanes) does n <= BLOCK elements through a copy on the stack, so that nothing
   outside the arrays is touched.  step(x, y, p, &row, at, lanes, stream) does a block with the parameters of
   entry `at`; row holds those, in registers, for a row kernel.  A step may take more of `lanes` than whether:
   then it is one of enum vary. */
enum vary { VARY_NOTHING, VARY_ALL, VARY_SCALE }; /* which parameters differ from lane to lane */

#define DEFINE_PART(kernel, in, out, params_t, row_t, load_row, step)                                            \
    RARELY void part_##kernel(const element_##in *x, element_##out *y, size_t n, const params_t *p, size_t at,   \
                              bool lanes)                                                                        \
    {                                                                                                            \
        const row_t row = load_row(p, at, false);                                                                \
        element_##in from[BLOCK] = {0};                                                                          \
        element_##out to[BLOCK];                                                                                 \
        memcpy(from, x, n * sizeof *x);                                                                          \
        if (lanes)                                                                                               \
            step(from, to, p, &row, at, true, false);                                                            \
        else                                                                                                     \
            step(from, to, p, &row, at, false, false);                                                           \
        memcpy(y, to, n * sizeof *y);                                                                            \
    }

/* What a sweep(x, y, n, rows, stride, p, first, lanes) does for each row: walks it in blocks, with `part` for
   what is left over.  In a long walk a part goes first, after which the array of the larger elements is
   aligned; non-temporal stores ask for that of the output.  Such a part is less than a vector's bytes, so at
   most BLOCK elements. */
#define WALK(kernel, step, streams, vary)                                                              \
    do {                                                                                               \
        size_t i = 0;                                                                                  \
        bool stream = (streams) && n >= LONG_WALK;                                                     \
        bool by_output = stream || sizeof *y >= sizeof *x;                                             \
        if (n >= (by_output ? LONG_WALK : 8 * LONG_WALK)) { /* loads mind less than stores */          \
            size_t size = by_output ? sizeof *y : sizeof *x;                                           \
            size_t past = (by_output ? (uintptr_t)y : (uintptr_t)x) % VECTOR_BYTES;                    \
            stream = stream && past % size == 0;                                                       \
            if (past && past % size == 0) {                                                            \
                i = (VECTOR_BYTES - past) / size;                                                      \
                part_##kernel(x, y, i, p, first, lanes);                                               \
            }                                                                                          \
        }                                                                                              \
        if (stream) {                                                                                  \
            for (; i + BLOCK <= n; i += BLOCK)                                                         \
                step(x + i, y + i, p, &row, lanes ? first + i : first, vary, true);                    \
            end_stream();                                                                              \
        }                                                                                              \
        for (; i + BLOCK <= n; i += BLOCK)                                                             \
            step(x + i, y + i, p, &row, lanes ? first + i : first, vary, false);                       \
        if (i < n)                                                                                     \
            part_##kernel(x + i, y + i, n - i, p, lanes ? first + i : first, lanes);                   \
    } while (0)

#define EACH_ROW for (; rows > 0; rows--, x += stride, y += stride, first += lanes ? 0 : 1)

/* The two symbols of a row of kernels.def. */
#define SYMBOL_(operation, in, out, isa, layout) tq_##operation##_##in##_##out##__##isa##_##layout
#define SYMBOL(operation, in, out, isa, layout) SYMBOL_(operation, in, out, isa, layout)
#define LAYOUT(operation, in, out, layout, is_lanes)                                                           \
    TARGET void SYMBOL(operation, in, out, ISA, layout)(const void *x, void *y, size_t n, size_t rows,         \
                                                        size_t stride, const void *p, size_t first)            \
    {                                                                                                          \
        sweep_##operation##_##in##_##out(x, y, n, rows, stride, p, first, is_lanes);                           \
    }
#define INSTANTIATE(operation, in, out)       \
    DEFINE_##operation(in, out)               \
    LAYOUT(operation, in, out, row, false)    \
    LAYOUT(operation, in, out, lanes, true)

#include "kernels/fixed_simd.h"

#include "kernels/convert_simd.h"
#include "kernels/dequantize_simd.h"
#include "kernels/quantize_simd.h"
#include "kernels/requantize_simd.h"

#define KERNEL(operation, in, out, isa) ROW_##isa(operation, in, out)
#include "kernels/kernels.def"
