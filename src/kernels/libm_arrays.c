/* SPDX-License-Identifier: Apache-2.0
 *
 * The C library's functions over arrays: vectors of libm_math.h for the usual arguments, calls for others.
 */
#include "kernels/float_arrays.h"
#include "kernels/libm_math.h"

#define CALLS(name, libm)                                         \
    static void name##_scalar(const float *x, float *y, size_t n) \
    {                                                             \
        for (size_t i = 0; i < n; i++)                            \
            y[i] = libm(x[i]);                                    \
    }
/* All elements of a part at once, and then again the unusual ones. */
#define VECTORS(isa, target, name, of_one, libm)                        \
    target static void name##_##isa(const float *x, float *y, size_t n) \
    {                                                                   \
        enum { PART = 256 };                                            \
        float part[PART];                                               \
        for (; n; x += PART, y += PART) {                               \
            const size_t count = n < PART ? n : PART;                   \
            int unusual = 0;                                            \
            for (size_t i = 0; i < count; i++) {                        \
                part[i] = of_one(x[i]);                                 \
                unusual |= !of_one##_takes(x[i]);                       \
            }                                                           \
            for (size_t i = 0; unusual && i < count; i++)               \
                if (!of_one##_takes(x[i]))                              \
                    part[i] = libm(x[i]);                               \
            memcpy(y, part, count * sizeof *y);                         \
            n -= count;                                                 \
        }                                                               \
    }
#if TQ_X86
#define FUNCTION(name, of_one, libm)                      \
    CALLS(name, libm)                                     \
    VECTORS(avx2, TQ_TARGET_AVX2, name, of_one, libm)     \
    VECTORS(avx512, TQ_TARGET_AVX512, name, of_one, libm) \
    TQ_ISA_FLOATS(name)
#else
#define FUNCTION(name, of_one, libm) \
    CALLS(name, libm)                \
    TQ_ISA_FLOATS(name)
#endif

FUNCTION(logarithms, tq_logarithm, logf)
FUNCTION(sines, tq_sine, sinf)
FUNCTION(cosines, tq_cosine, cosf)
