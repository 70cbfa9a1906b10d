/* SPDX-License-Identifier: Apache-2.0
 *
 * Weighted sums of two rows of 8-bit values in fixed point (fixed_simd.h), for ADD and SUB.
 *
 *   w = 2^16 (first x + second y + constant + 1/2),    out = clamp(floor(w / 2^16), low, high)
 *
 * x and y are the bytes as int8; with `flips` all values are uint8, those of int8 plus 128.  Let R = |first| +
 * |second|. With |constant| <= 128 + 255 R every intermediate value is below 2^16 (129 + 255 R), and v, which
 * approximates w + E, is off by at most
 *
 *     R                          both factors are rounded to float32, and multiplied by values below 2^8
 *     3 2^-8 (129 + 255 R)       the offset and two sums are rounded to float32
 *     1/2                        v is rounded to an integer
 *
 * which is less than 2.1 + 4 R.  A rule that differs from w by less than D, in any direction at ties, gives the same
 * values where 2^16 has no multiple in [v - 2E, v], for E = D + 2.1 + 4 R: the others are undecided.
 */
#ifndef TQ_KERNELS_ADD_8BIT_H
#define TQ_KERNELS_ADD_8BIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

#define TQ_ADD_8BIT_BLOCK 64 /* elements: a block of any body is a whole part of it */

typedef struct tq_add_8bit {
    float first, second, offset; /* 2^16 times the factors; 2^16 (constant + 1/2) + E */
    int8_t low, high;
    bool flips;
    uint8_t undecided; /* 2 E */
} tq_add_8bit;

/* Sets *p for 8-bit values; false where E would leave too many blocks undecided.  slack: D. */
bool tq_add_8bit_find(tq_add_8bit *p, double first, double second, double constant, double slack);

/* Computes blocks of a row of n elements up to the first that is undecided; returns their elements.  The last block is
   of the whole vectors that remain; fewer elements than a vector are left.  repeats[i]: input i has TQ_ADD_8BIT_BLOCK
   equal elements, which serve for all.  out is disjoint from the inputs or the same as one. */
typedef size_t (*tq_add_8bit_fn)(const tq_add_8bit *p, const void *const in[2], const bool repeats[2], void *out,
                                 size_t n);

/* The best body, or NULL. */
tq_add_8bit_fn tq_add_8bit_body(void);

#if TQ_X86
size_t tq_add_8bit__avx2(const tq_add_8bit *p, const void *const in[2], const bool repeats[2], void *out, size_t n);
size_t tq_add_8bit__avx512(const tq_add_8bit *p, const void *const in[2], const bool repeats[2], void *out, size_t n);
#endif
#if TQ_ARM64
size_t tq_add_8bit__neon(const tq_add_8bit *p, const void *const in[2], const bool repeats[2], void *out, size_t n);
#endif

#endif
