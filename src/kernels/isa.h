/* SPDX-License-Identifier: Apache-2.0
 *
 * One plain C body, compiled for several instruction sets: the compiler vectorizes each.
 *
 *     #define SUM(isa, target) target static void sum_##isa(...) { sum(...); }   (sum: TQ_BODY)
 *     TQ_EVERY_ISA(SUM)
 *     static const sum_fn sums[TQ_ISAS] = TQ_ISA_FUNCTIONS(sum);
 *     run = sums[tq_isa()];
 *
 * The body is integer arithmetic, or floating point without contraction (-ffp-contract=off), so that every
 * variant gives the same bits; tests mask instruction sets with TQ_DISABLE_CPU.
 */
#ifndef TQ_KERNELS_ISA_H
#define TQ_KERNELS_ISA_H

#include "kernels/kernels.h"

#define TQ_BODY static inline __attribute__((always_inline))

/* A loop that is unrolled later, if at all: compilers find no vectors in an unrolled comparison. */
#define TQ_EACH_LANE(i, n) _Pragma("GCC unroll 1") for (size_t i = 0; i < (n); i++)

#if TQ_X86
#define TQ_TARGET_AVX2 __attribute__((target("avx2,fma,f16c")))
#define TQ_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")))
#define TQ_EVERY_ISA(DEFINE) DEFINE(scalar, ) DEFINE(avx2, TQ_TARGET_AVX2) DEFINE(avx512, TQ_TARGET_AVX512)
#define TQ_ISAS 3
#define TQ_ISA_FUNCTIONS(name) {name##_scalar, name##_avx2, name##_avx512}
#define TQ_ISA_SAME(name) {name, name, name}
/* The same without AVX-512, for loops that gain less than a tenth from it. */
#define TQ_EVERY_ISA_TO_AVX2(DEFINE) DEFINE(scalar, ) DEFINE(avx2, TQ_TARGET_AVX2)
#define TQ_ISA_FUNCTIONS_TO_AVX2(name) {name##_scalar, name##_avx2, name##_avx2}
#else
#define TQ_EVERY_ISA(DEFINE) DEFINE(scalar, )
#define TQ_EVERY_ISA_TO_AVX2 TQ_EVERY_ISA
#define TQ_ISAS 1
#define TQ_ISA_FUNCTIONS(name) {name##_scalar}
#define TQ_ISA_FUNCTIONS_TO_AVX2 TQ_ISA_FUNCTIONS
#define TQ_ISA_SAME(name) {name}
#endif

/* Defines name_scalar, name_avx2 ... by a macro DEFINE(name, target, ...), for TQ_ISA_FUNCTIONS(name). */
#if TQ_X86
#define TQ_ISA_DEFINE(DEFINE, name, ...)             \
    DEFINE(name##_scalar, , __VA_ARGS__)             \
    DEFINE(name##_avx2, TQ_TARGET_AVX2, __VA_ARGS__) \
    DEFINE(name##_avx512, TQ_TARGET_AVX512, __VA_ARGS__)
#else
#define TQ_ISA_DEFINE(DEFINE, name, ...) DEFINE(name##_scalar, , __VA_ARGS__)
#endif

/* Floats of the longest vector, for bodies with vectors by extension (vector_size): gcc keeps arrays of longer ones in
   memory, at a tenth to a half of the speed. */
enum { TQ_FLOATS_scalar = 4, TQ_FLOATS_avx2 = 8, TQ_FLOATS_avx512 = 16 };

/* The index in TQ_ISA_FUNCTIONS of the best of the chosen features: 0 to TQ_ISAS - 1. */
static inline int tq_isa(void)
{
#if TQ_X86
    uint32_t features = tq_kernels_features();
    return features & TQ_CPU_AVX512 ? 2 : features & TQ_CPU_AVX2 ? 1 : 0;
#else
    return 0;
#endif
}

/* Defines tq_name, a function of n floats, by the best of name_scalar, name_avx2 ... */
#define TQ_ISA_FLOATS(name)                                                                            \
    void tq_##name(const float *x, float *y, size_t n)                                                 \
    {                                                                                                  \
        static void (*const bodies[TQ_ISAS])(const float *, float *, size_t) = TQ_ISA_FUNCTIONS(name); \
        bodies[tq_isa()](x, y, n);                                                                     \
    }

#endif
