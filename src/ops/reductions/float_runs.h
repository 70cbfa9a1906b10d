/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of floats: sums in order, of several runs at once; sums in XNNPACK's lanes; the greatest and the least float, in
 * sixteen lanes, with the bits of a comparison of one after the other: NaN is ignored, and of zeros of both signs the
 * first counts.
 * Source: XNNPACK 75db3c09, src/f32-rsum/gen/f32-rsum-avx-u32-acc4.c.
 */
#ifndef TQ_OPS_REDUCTIONS_FLOAT_RUNS_H
#define TQ_OPS_REDUCTIONS_FLOAT_RUNS_H

#include "kernels/isa.h"

/* `acc` after "acc = acc op x[i] ? x[i] : acc" for n elements.  Lanes meet the elements in another order, and the last
   ones twice, by which only the sign of a zero can differ. */
#define TQ_FLOAT_EXTREME(name, op)                                             \
    TQ_BODY float name(float acc, const float *x, size_t n)                    \
    {                                                                          \
        float lanes[16], found = acc;                                          \
        for (size_t i = 0; n < 16 && i < n; i++)                               \
            found = found op x[i] ? x[i] : found;                              \
        if (n >= 16) {                                                         \
            TQ_EACH_LANE (k, 16)                                               \
                lanes[k] = acc;                                                \
            for (size_t i = 0; i < n; i += 16) {                               \
                const float *now = x + (i + 16 <= n ? i : n - 16);             \
                TQ_EACH_LANE (k, 16)                                           \
                    lanes[k] = lanes[k] op now[k] ? now[k] : lanes[k];         \
            }                                                                  \
            TQ_EACH_LANE (k, 8)                                                \
                lanes[k] = lanes[k] op lanes[k + 8] ? lanes[k + 8] : lanes[k]; \
            TQ_EACH_LANE (k, 4)                                                \
                lanes[k] = lanes[k] op lanes[k + 4] ? lanes[k + 4] : lanes[k]; \
            for (int k = 0; k < 4; k++)                                        \
                found = found op lanes[k] ? lanes[k] : found;                  \
        }                                                                      \
        if (found != 0 || !(acc op found))                                     \
            return found;                                                      \
        while (*x != 0)                                                        \
            x++;                                                               \
        return *x;                                                             \
    }
TQ_FLOAT_EXTREME(tq_greatest_float, <)
TQ_FLOAT_EXTREME(tq_least_float, >)

/* Runs that tq_sum_runs adds fastest at once. */
#define TQ_SUM_RUNS 16

/* sums[k] = sums[k] + x[k * n] + x[k * n + 1] + ... + x[k * n + n - 1], in this order, for each k < runs. */
void tq_sum_runs(float *sums, const float *x, size_t n, size_t runs);

/* sums[k] = the sum of x[k * n] to x[k * n + n - 1] as XNNPACK adds with AVX, for each k < runs: in four accumulators
   of 8 lanes. */
void tq_sum_runs_in_lanes(float *sums, const float *x, size_t n, size_t runs);

#endif
