/* SPDX-License-Identifier: Apache-2.0
 *
 * The processor's mode for denormal floats: normal, or operands and results count as 0.  Each thread has its own.  On
 * processors that this file does not know the mode is always 0.
 */
#ifndef TQ_BASE_DENORMALS_H
#define TQ_BASE_DENORMALS_H

#include <stdint.h>

#if defined(__SSE2__) /* by builtins: <xmmintrin.h> is half of what a compiler would read of an operator's file */
#define TQ_DENORMALS_MASK 0x8040u /* FTZ and DAZ */
#elif defined(__aarch64__)
#define TQ_DENORMALS_MASK (1u << 24) /* FZ */
#else
#define TQ_DENORMALS_MASK 0u
#endif

typedef uint32_t tq_denormals;

/* The mode of this thread. */
static inline tq_denormals tq_denormals_mode(void)
{
#if defined(__SSE2__)
    return __builtin_ia32_stmxcsr() & TQ_DENORMALS_MASK;
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return (uint32_t)control & TQ_DENORMALS_MASK;
#else
    return 0;
#endif
}

/* Sets the mode of this thread; mode: of tq_denormals_mode on any thread, or TQ_DENORMALS_ZERO.  Written only where it
   changes, since a write stalls the processor. */
static inline void tq_denormals_restore(tq_denormals mode)
{
#if defined(__SSE2__)
    const uint32_t control = __builtin_ia32_stmxcsr();
    if ((control & TQ_DENORMALS_MASK) != mode)
        __builtin_ia32_ldmxcsr((control & ~TQ_DENORMALS_MASK) | mode);
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    if ((control & TQ_DENORMALS_MASK) != mode) {
        control = (control & ~(uint64_t)TQ_DENORMALS_MASK) | mode;
        __asm__ volatile("msr fpcr, %0" : : "r"(control));
    }
#else
    (void)mode;
#endif
}

/* The mode in which denormals are 0. */
#define TQ_DENORMALS_ZERO ((tq_denormals)TQ_DENORMALS_MASK)

#endif
