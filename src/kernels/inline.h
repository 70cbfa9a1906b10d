/* SPDX-License-Identifier: Apache-2.0
 *
 * TQ_INLINE begins a function that is always a part of its callers, whose registers, constants and instruction set it
 * is written for.
 *
 * Not under the address sanitizer: it puts its checks around each load and store of each copy, which takes compilers
 * minutes a file.  As a function of its own the same source has the same checks, once.
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
