/* SPDX-License-Identifier: Apache-2.0
 *
 * Requirements on the compiler and the machine; docs/machines.md says which have it.
 */
#ifndef TQ_BASE_MACHINE_H
#define TQ_BASE_MACHINE_H

#if !defined(__GNUC__)
#error "tq needs gcc or clang (on Windows: mingw-w64): its kernels are written with their extensions"
#endif
#if defined(__FAST_MATH__)
#error "tq needs IEEE arithmetic: compile it without -ffast-math and -Ofast"
#endif
#if defined(__i386__) && !defined(__SSE2_MATH__)
#error "tq needs SSE2 arithmetic, as x87 rounds twice: compile it with -msse2 -mfpmath=sse (TQ_CFLAGS of setup.py)"
#endif

#define TQ_IS_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

#endif
