/* SPDX-License-Identifier: Apache-2.0
 *
 * The scalar rows of depthwise.def: what every other row equals.
 */
#include <math.h>

#include "kernels/depthwise/depthwise_parts.h"

#define LANES 8 /* channels of a vector: a compiler may see vectors in them */

#define ZERO(bias) 0
#define SAME(bias) bias
#define PLUS(sum, bias) ((sum) + (bias))
#define DONE(sum, bias) sum
#define ROUND_TWICE(x, w, sum) ((sum) + (x) * (w))

#define DEFINE_DEPTHWISE(in, type, weight_t, sum_t, first, last, multiply_add, finish)                          \
    static void depthwise_##in(const tq_depthwise_tile *t)                                                     \
    {                                                                                                          \
        for (size_t r = 0; r < t->rows; r++)                                                                   \
            for (size_t v = 0; v < t->vectors; v++) {                                                          \
                const weight_t *weights = (const weight_t *)(const void *)(t->weights + v * t->vector_bytes);   \
                sum_t sums[LANES];                                                                             \
                const sum_t *bias = (const sum_t *)t->bias + v * LANES;                                        \
                for (size_t c = 0; c < LANES; c++)                                                             \
                    sums[c] = first(bias[c]);                                                                  \
                for (size_t tap = 0; tap < t->taps; tap++, weights += LANES) {                                  \
                    const char *pixel = (const char *)t->row[tap * t->step + r] + t->offset;                   \
                    const type *x = (const type *)(const void *)pixel + v * LANES;                             \
                    for (size_t c = 0; c < LANES; c++)                                                         \
                        sums[c] = multiply_add(x[c], weights[c], sums[c]);                                     \
                }                                                                                              \
                sum_t *to = (sum_t *)(void *)((char *)t->sums + r * t->sums_stride) + v * LANES;               \
                for (size_t c = 0; c < LANES; c++)                                                             \
                    to[c] = finish(t, last(sums[c], bias[c]));                                                 \
            }                                                                                                  \
    }                                                                                                          \
    const tq_depthwise_kernel tq_depthwise_##in##__scalar = {                                                  \
        .isa = "scalar", .lanes = LANES, .group = 1, .weight_bytes = sizeof(weight_t), .tile = depthwise_##in, \
        .stores = &tq_stores__scalar,                                                                                      \
    };
#define AS_IT_IS(t, sum) sum
#define WITHIN(t, sum) tq_bounded(sum, (t)->floor, (t)->ceiling)
#define WRAPPING(x, w, sum) ((sum) + (uint32_t)((x) * (w)))
DEFINE_DEPTHWISE(i8, int8_t, int16_t, uint32_t, SAME, DONE, WRAPPING, AS_IT_IS)
DEFINE_DEPTHWISE(u8, uint8_t, int16_t, uint32_t, SAME, DONE, WRAPPING, AS_IT_IS)
DEFINE_DEPTHWISE(i16, int16_t, int16_t, uint32_t, SAME, DONE, WRAPPING, AS_IT_IS)
DEFINE_DEPTHWISE(f32, float, float, float, ZERO, PLUS, ROUND_TWICE, WITHIN)
DEFINE_DEPTHWISE(f32_fused, float, float, float, SAME, DONE, fmaf, WITHIN)
