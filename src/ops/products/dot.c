/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/products/dot.h"

#include <stdbool.h>
#include <string.h>

#include "base/sizes.h"
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

enum { VECTOR = 32, FEW = 4, LONG = 1024 };

/* Four rows at once read b once.  More than FEW products after the last whole vector, which would be made one after
   the other, become a vector: rows that others follow reach over their ends, where a copy of b is 0. */
#define DOT_ROWS(isa, target)                                                                                      \
    target static void dot_rows_##isa(const int8_t *matrix, size_t rows, const int8_t *b, size_t n, int32_t *sums) \
    {                                                                                                              \
        int8_t copy[LONG];                                                                                         \
        const size_t reach = n <= LONG && n % VECTOR > FEW ? tq_round_up(n, VECTOR) : n;                           \
        if (reach > n) {                                                                                           \
            memcpy(copy, b, n);                                                                                    \
            memset(copy + n, 0, reach - n);                                                                        \
        }                                                                                                          \
        for (; rows >= 4; rows -= 4, matrix += 4 * n, sums += 4) {                                                 \
            const int8_t *second = matrix + n, *third = second + n, *fourth = third + n;                           \
            const bool reaches = reach > n && (rows - 4) * n >= reach - n;                                         \
            const size_t end = reaches ? reach : n;                                                                \
            const int8_t *by = reaches ? copy : b;                                                                 \
            uint32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;                                                               \
            for (size_t i = 0; i < end; i++) {                                                                     \
                s0 += (uint32_t)(matrix[i] * by[i]);                                                               \
                s1 += (uint32_t)(second[i] * by[i]);                                                               \
                s2 += (uint32_t)(third[i] * by[i]);                                                                \
                s3 += (uint32_t)(fourth[i] * by[i]);                                                               \
            }                                                                                                      \
            sums[0] = (int32_t)s0, sums[1] = (int32_t)s1, sums[2] = (int32_t)s2, sums[3] = (int32_t)s3;            \
        }                                                                                                          \
        for (; rows > 0; rows--, matrix += n)                                                                      \
            *sums++ = (int32_t)(uint32_t)(uint64_t)dot_##isa(matrix, b, n);                                        \
    }
TQ_EVERY_ISA(DOT_ROWS)

void tq_dot_rows_i8(const int8_t *matrix, size_t rows, const int8_t *b, size_t n, int32_t *sums)
{
    static void (*const bodies[TQ_ISAS])(const int8_t *, size_t, const int8_t *, size_t, int32_t *) =
        TQ_ISA_FUNCTIONS(dot_rows);
    bodies[tq_isa()](matrix, rows, b, n, sums);
}
