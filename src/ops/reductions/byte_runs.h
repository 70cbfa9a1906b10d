/* SPDX-License-Identifier: Apache-2.0
 *
 * The greatest byte of a run, in lanes.  A byte's key is the INT8 of x ^ flip: with a flip of 0 bytes compare as INT8,
 * with 128 as UINT8, and with the complements of these the least byte has the greatest key.
 */
#ifndef TQ_OPS_REDUCTIONS_BYTE_RUNS_H
#define TQ_OPS_REDUCTIONS_BYTE_RUNS_H

#include "kernels/isa.h"

/* The greatest key of n >= 1 bytes. */
TQ_BODY int8_t tq_greatest_byte(const uint8_t *x, int flip, size_t n)
{
    enum { LANES = 16 };
    int8_t lanes[LANES], found = INT8_MIN;
    for (size_t i = 0; n < LANES && i < n; i++)
        found = (int8_t)(x[i] ^ flip) > found ? (int8_t)(x[i] ^ flip) : found;
    if (n < LANES)
        return found;
    TQ_EACH_LANE (k, LANES)
        lanes[k] = INT8_MIN;
    for (size_t i = 0; i < n; i += LANES) {
        const uint8_t *now = x + (i + LANES <= n ? i : n - LANES); /* the last may be read again */
        TQ_EACH_LANE (k, LANES)
            lanes[k] = (int8_t)(now[k] ^ flip) > lanes[k] ? (int8_t)(now[k] ^ flip) : lanes[k];
    }
    TQ_EACH_LANE (k, LANES)
        found = lanes[k] > found ? lanes[k] : found;
    return found;
}

#endif
