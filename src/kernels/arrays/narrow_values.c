/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/arrays/narrow_values.h"

#include "kernels/isa.h"

TQ_BODY void extend(const uint8_t *restrict from, size_t count, uint8_t mask, uint8_t sign, uint8_t *restrict to)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (uint8_t)(((from[i] & mask) ^ sign) - sign);
}

typedef void (*extend_fn)(const uint8_t *, size_t, uint8_t, uint8_t, uint8_t *);
#define EXTEND(isa, target)                                                                                     \
    target static void extend_##isa(const uint8_t *from, size_t count, uint8_t mask, uint8_t sign, uint8_t *to) \
    {                                                                                                           \
        extend(from, count, mask, sign, to);                                                                    \
    }
TQ_EVERY_ISA(EXTEND)

void tq_extend_values(const uint8_t *from, size_t count, uint8_t mask, bool is_signed, uint8_t *to)
{
    static const extend_fn bodies[TQ_ISAS] = TQ_ISA_FUNCTIONS(extend);
    bodies[tq_isa()](from, count, mask, is_signed ? (uint8_t)(mask / 2 + 1) : 0, to);
}
