/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of sizes that are known to fit.  checked.h has the arithmetic for all others.
 */
#ifndef TQ_BASE_SIZES_H
#define TQ_BASE_SIZES_H

#include <stddef.h>

/* The next multiple of `to`, which is above 0. */
static inline size_t tq_round_up(size_t x, size_t to)
{
    return (x + to - 1) / to * to;
}

static inline size_t tq_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t tq_divide_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

/* The greatest common divisor; of 0 and a, a. */
static inline size_t tq_common_divisor(size_t a, size_t b)
{
    while (b) {
        const size_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

#endif
