/* SPDX-License-Identifier: Apache-2.0
 *
 * TFLite's packing of values narrower than a byte: element i lies in byte i / (8 / bits), the first element
 * of a byte in its low bits (tflite/kernels/internal/portable_tensor_utils.cc).  bits is 2 or 4.
 */
#ifndef TQ_QUANT_PACKING_H
#define TQ_QUANT_PACKING_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of `count` packed values; unused bits of the last byte are 0.  Cannot overflow. */
static inline size_t tq_packed_size(size_t count, int bits)
{
    size_t each = 8 / (size_t)bits;
    return count / each + (count % each != 0);
}

/* Packs the low `bits` bits of each of `count` bytes into tq_packed_size bytes.  No overlap. */
void tq_pack_values(const uint8_t *values, size_t count, int bits, uint8_t *packed);

/* tq_pack_values, inlined into loops of an instruction set.  Inner loops have constant counts, so that compilers
   vectorize them. */
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

/* Unpacks `count` values, a byte each.  low: the type's lowest value; 0: zero-extended; -2^(bits - 1): sign-extended.
   No overlap. */
void tq_unpack_values(const uint8_t *packed, size_t count, int bits, int low, uint8_t *values);

#endif
