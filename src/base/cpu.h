/* SPDX-License-Identifier: Apache-2.0
 *
 * Which instruction sets this machine has, and the caller's mask over them.
 */
#ifndef TQ_BASE_CPU_H
#define TQ_BASE_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* gcc and clang compile one function for an instruction set that the rest of the file does not use;
   elsewhere only scalar bodies are built. */
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

/* The features that the processor and the operating system offer, as TQ_CPU_ bits, less those named
   in `disabled`, a list such as "avx512,avx2" (NULL: none).  Features of other machines may be named, so that one
   setting serves machines of several kinds. */
uint32_t tq_cpu_detect(const char *disabled);

/* The first name in such a list that no row has, *length characters; NULL: there is none. */
const char *tq_cpu_unknown_name(const char *list, size_t *length);

/* "avx2" for TQ_CPU_INDEX_AVX2; NULL past the end. */
const char *tq_cpu_name(int index);

/* Whether models run on a machine of that byte order; else TQ_MACHINE.  Operators read constants in place, which are
   little-endian. */
tq_status tq_cpu_check_byte_order(bool is_big_endian, tq_error *error);

#endif
