/* SPDX-License-Identifier: Apache-2.0
 *
 * Philox 4x32-10 (Salmon and others, Parallel random numbers: as easy as 1, 2, 3; 2011): a counter of four 32-bit
 * values and a key of two give four random values.
 */
#ifndef TQ_OPS_RANDOM_PHILOX_H
#define TQ_OPS_RANDOM_PHILOX_H

#include <stdint.h>

/* out: the four random values of a counter and a key. */
static inline void tq_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t first = UINT64_C(0xD2511F53) * a, second = UINT64_C(0xCD9E8D57) * c;
        a = (uint32_t)(second >> 32) ^ b ^ k0;
        b = (uint32_t)second;
        c = (uint32_t)(first >> 32) ^ d ^ k1;
        d = (uint32_t)first;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

#endif
