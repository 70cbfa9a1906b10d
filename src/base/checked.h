/* SPDX-License-Identifier: Apache-2.0
 *
 * Size arithmetic that reports overflow: false, and *out is unchanged.
 */
#ifndef TQ_BASE_CHECKED_H
#define TQ_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool tq_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a > UINT64_MAX - b)
        return false;
    *out = a + b;
    return true;
}

static inline bool tq_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b != 0 && a > UINT64_MAX / b)
        return false;
    *out = a * b;
    return true;
}

#endif
