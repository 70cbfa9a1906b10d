/* SPDX-License-Identifier: Apache-2.0
 *
 * Inner loops have a constant number of steps, so that compilers make vectors of them.
 */
#include "quant/packing.h"

void tq_pack_values(const uint8_t *codes, size_t count, int bits, uint8_t *packed)
{
    tq_pack_values_inline(codes, count, bits, packed);
}

void tq_unpack_values(const uint8_t *packed, size_t count, int bits, int low, uint8_t *codes)
{
    /* (x ^ sign) - sign extends the sign bit; 0 leaves an unsigned code alone. */
    size_t each = 8 / (size_t)bits, whole = count / each;
    const uint8_t sign = (uint8_t)-low, mask = (uint8_t)((1 << bits) - 1);
    if (bits == 4)
        for (size_t i = 0; i < whole; i++) {
            codes[2 * i] = (uint8_t)(((packed[i] & 15) ^ sign) - sign);
            codes[2 * i + 1] = (uint8_t)((packed[i] >> 4 ^ sign) - sign);
        }
    else
        for (size_t i = 0; i < whole; i++)
            for (int k = 0; k < 4; k++)
                codes[4 * i + (size_t)k] = (uint8_t)(((packed[i] >> 2 * k & 3) ^ sign) - sign);
    for (size_t i = whole * each; i < count; i++) {
        unsigned code = packed[whole] >> ((i - whole * each) * (size_t)bits) & mask;
        codes[i] = (uint8_t)((code ^ sign) - sign);
    }
}
