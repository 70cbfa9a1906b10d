/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of float_math.h over arrays: one by one, or by the best of the bodies of float_arrays_simd.h.
 */
#include "kernels/float_arrays.h"

#include "kernels/float_math.h"

#define OF_ONE(name, target, of_one)                            \
    target static void name(const float *x, float *y, size_t n) \
    {                                                           \
        for (size_t i = 0; i < n; i++)                          \
            y[i] = of_one(x[i]);                                \
    }
#if TQ_X86
#define FUNCTION(name, of_one)                                                                                    \
    OF_ONE(name##_scalar, , of_one)                                                                               \
    void tq_##name(const float *x, float *y, size_t n)                                                            \
    {                                                                                                             \
        static void (*const bodies[TQ_ISAS])(const float *, float *, size_t) = {name##_scalar, tq_##name##__avx2, \
                                                                                tq_##name##__pairs};              \
        bodies[tq_isa()](x, y, n);                                                                                \
    }
#else
#define FUNCTION(name, of_one)      \
    OF_ONE(name##_scalar, , of_one) \
    TQ_ISA_FLOATS(name)
#endif

FUNCTION(exponentials, tq_expf)
FUNCTION(logistics, tq_logistic)
FUNCTION(elus, tq_elu)
FUNCTION(hyperbolic_tangents, tq_tanhf)
FUNCTION(gelus, tq_gelu)

OF_ONE(approximate_gelus_scalar, , tq_gelu_by_ratio)
#if TQ_X86
OF_ONE(approximate_gelus_avx2, TQ_TARGET_AVX2, tq_gelu_by_ratio)
#define approximate_gelus_avx512 tq_approximate_gelus__avx512
#endif
TQ_ISA_FLOATS(approximate_gelus)
