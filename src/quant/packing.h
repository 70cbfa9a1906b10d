/* SPDX-License-Identifier: Apache-2.0
 *
 * TFLite's packing of values narrower than a byte: element i lies in byte i / (8 / bits), the first element
 * of a byte in its low bits (tflite/kernels/internal/portable_tensor_utils.cc).  bits is 2 or 4.
 */
#ifndef TQ_QUANT_PACKING_H
#define TQ_QUANT_PACKING_H

#include <stddef.h>
#include <stdint.h>

/* The bytes that hold `count` values; the last one's unused bits are zero.  Cannot overflow. */
static inline size_t tq_packed_size(size_t count, int bits)
{
    size_t each = 8 / (size_t)bits;
    return count / each + (count % each != 0);
}

/* values: the low bits of each byte. */
void tq_pack_values(const uint8_t *values, size_t count, int bits, uint8_t *packed);

/* The same, for loops of any instruction set.  Inner loops have a constant number of steps, so that compilers make
   vectors of them. */
static inline void tq_pack_values_inline(const uint8_t *values, size_t count, int bits, uint8_t *packed)
{
    size_t each = 8 / (size_t)bits, whole = count / each;
    if (bits == 4)
        for (size_t i = 0; i < whole; i++)
            packed[i] = (uint8_t)((values[2 * i] & 15) | values[2 * i + 1] << 4);
    else
        for (size_t i = 0; i < whole; i++)
            packed[i] = (uint8_t)((values[4 * i] & 3) | (values[4 * i + 1] & 3) << 2 | (values[4 * i + 2] & 3) << 4 |
                                  values[4 * i + 3] << 6);
    if (count % each) {
        unsigned byte = 0;
        for (size_t i = whole * each; i < count; i++)
            byte |= (values[i] & ((1u << bits) - 1)) << ((i - whole * each) * (size_t)bits);
        packed[whole] = (uint8_t)byte;
    }
}

/* low: the type's lowest value, 0 or -2^(bits - 1), which tells whether values are sign-extended. */
void tq_unpack_values(const uint8_t *packed, size_t count, int bits, int low, uint8_t *values);

#endif
