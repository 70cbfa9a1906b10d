/* SPDX-License-Identifier: Apache-2.0
 *
 * The instruction sets of this machine, less the caller's mask.
 */
#ifndef TQ_BASE_CPU_H
#define TQ_BASE_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* Architectures with kernels for instruction sets; others have scalar bodies alone. */
#if defined(__x86_64__)
#define TQ_X86 1
#elif defined(__aarch64__)
#define TQ_ARM64 1
#endif

enum {
#define CPU_FEATURE(symbol, name, needs, text) TQ_CPU_INDEX_##symbol,
#include "base/cpu.def"
#undef CPU_FEATURE
    TQ_CPU_FEATURES
};

enum {
#define CPU_FEATURE(symbol, name, needs, text) TQ_CPU_##symbol = 1 << TQ_CPU_INDEX_##symbol,
#include "base/cpu.def"
#undef CPU_FEATURE
};

/* The features that processor and operating system support, as TQ_CPU_ bits, less those in `disabled`, a list such as
   "avx512,avx2", and less those that need them.  NULL: none.  The list may name features of other machines. */
uint32_t tq_cpu_detect(const char *disabled);

/* The first unknown name in such a list, of *length characters; NULL: there is none. */
const char *tq_cpu_unknown_name(const char *list, size_t *length);

/* "avx2" for TQ_CPU_INDEX_AVX2; NULL for other numbers. */
const char *tq_cpu_name(int index);

/* TQ_MACHINE on big-endian machines: operators read constants in place, which are little-endian. */
tq_status tq_cpu_check_byte_order(bool is_big_endian, tq_error *error);

#endif
