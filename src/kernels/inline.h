/* SPDX-License-Identifier: Apache-2.0
 *
 * TQ_INLINE: a function that is always inlined; it depends on the registers, constants and instruction set of its
 * callers.
 *
 * Under the address sanitizer the function is not inlined: checks around each load and store of each inlined copy take
 * compilers minutes a file, and one function has the same checks once.
 */
#ifndef TQ_KERNELS_INLINE_H
#define TQ_KERNELS_INLINE_H

#include "base/sanitized.h"

#if TQ_SANITIZED
#define TQ_INLINE static __attribute__((unused))
#else
#define TQ_INLINE static inline __attribute__((always_inline))
#endif

#endif
