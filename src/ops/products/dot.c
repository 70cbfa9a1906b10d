/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/products/dot.h"

#include "kernels/isa.h"

#define DOT(isa, target)                                                                  \
    target static int64_t dot_##isa(const int8_t *a, const int8_t *b, size_t n)           \
    {                                                                                     \
        int64_t sum = 0;                                                                  \
        for (; n > TQ_DOT_8_BIT; a += TQ_DOT_8_BIT, b += TQ_DOT_8_BIT, n -= TQ_DOT_8_BIT) \
            sum += dot_few(a, b, TQ_DOT_8_BIT);                                           \
        return sum + dot_few(a, b, n);                                                    \
    }

TQ_BODY int32_t dot_few(const int8_t *a, const int8_t *b, size_t n)
{
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (int32_t)a[i] * b[i];
    return sum;
}

TQ_EVERY_ISA(DOT)

int64_t tq_dot_long_i8(const int8_t *a, const int8_t *b, size_t n)
{
    static int64_t (*const bodies[TQ_ISAS])(const int8_t *, const int8_t *, size_t) = TQ_ISA_FUNCTIONS(dot);
    return bodies[tq_isa()](a, b, n);
}
