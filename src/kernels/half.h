/* SPDX-License-Identifier: Apache-2.0
 *
 * Float16 and bfloat16, as bits, to and from float32.  Widening is exact.  Narrowing rounds to nearest, ties to even;
 * overflow gives infinity; a NaN stays one, quiet, with its sign and its leading payload bits.
 */
#ifndef TQ_KERNELS_HALF_H
#define TQ_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t tq_bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float tq_float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float tq_half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7FFF;
    if (magnitude >= 0x7C00) { /* infinity, or NaN, which becomes quiet */
        uint32_t payload = (magnitude & 0x3FF) << 13;
        return tq_float_of_bits(sign | 0x7F800000 | payload | (payload ? 0x400000 : 0));
    }
    if (magnitude < 0x400) { /* a multiple of 2^-24: exact */
        float x = (float)magnitude * 0x1p-24f;
        return tq_float_of_bits(sign | tq_bits_of_float(x));
    }
    return tq_float_of_bits(sign | ((magnitude << 13) + ((127 - 15) << 23)));
}

static inline uint16_t tq_float_to_half(float x)
{
    uint32_t bits = tq_bits_of_float(x), magnitude = bits & 0x7FFFFFFF;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (magnitude > 0x7F800000)
        return (uint16_t)(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
    if (magnitude >= 0x47800000) /* 2^16 and above; 65520 to 2^16 rounds up below */
        return (uint16_t)(sign | 0x7C00);
    if (magnitude < 0x38800000) { /* below 2^-14: the sum with 0.5 rounds to a multiple of 2^-24 */
        float sum = tq_float_of_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (tq_bits_of_float(sum) - 0x3F000000));
    }
    uint32_t odd = magnitude >> 13 & 1;
    return (uint16_t)(sign | (magnitude - ((127 - 15) << 23) + 0xFFF + odd) >> 13);
}

static inline float tq_bfloat_to_float(uint16_t bfloat)
{
    return tq_float_of_bits((uint32_t)bfloat << 16);
}

static inline uint16_t tq_float_to_bfloat(float x)
{
    uint32_t bits = tq_bits_of_float(x);
    if ((bits & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

#endif
