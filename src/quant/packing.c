/* SPDX-License-Identifier: Apache-2.0
 *
 * Inner loops have a constant number of steps, so that compilers make vectors of them.
 */
#include "quant/packing.h"

void tq_pack_values(const uint8_t *values, size_t count, int bits, uint8_t *packed)
{
    tq_pack_values_inline(values, count, bits, packed);
}

void tq_unpack_values(const uint8_t *packed, size_t count, int bits, int low, uint8_t *values)
{
    /* (x ^ sign) - sign extends the sign bit; 0 leaves an unsigned value alone. */
    size_t each = 8 / (size_t)bits, whole = count / each;
    const uint8_t sign = (uint8_t)-low, mask = (uint8_t)((1 << bits) - 1);
    if (bits == 4)
        for (size_t i = 0; i < whole; i++) {
            values[2 * i] = (uint8_t)(((packed[i] & 15) ^ sign) - sign);
            values[2 * i + 1] = (uint8_t)((packed[i] >> 4 ^ sign) - sign);
        }
    else
        for (size_t i = 0; i < whole; i++)
            for (int k = 0; k < 4; k++)
                values[4 * i + (size_t)k] = (uint8_t)(((packed[i] >> 2 * k & 3) ^ sign) - sign);
    for (size_t i = whole * each; i < count; i++) {
        unsigned value = packed[whole] >> ((i - whole * each) * (size_t)bits) & mask;
        values[i] = (uint8_t)((value ^ sign) - sign);
    }
}
