/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recurrent/ordered_product.h"

#include <string.h>

#include "kernels/isa.h"

/* Adds the products of `side` channels to out.  Each partial sum is a vector of the channels; products and sums are
   rounded by themselves (-ffp-contract=off). */
#define ADD_BLOCK(side)                                                                                       \
    TQ_BODY void add_block_##side(const float *w, size_t stride, const float *x, size_t depth, bool in_lanes, \
                                  float *out)                                                                 \
    {                                                                                                         \
        typedef float channels __attribute__((vector_size(4 * side)));                                        \
        channels sums[4] = {{0}}, row;                                                                        \
        size_t k = 0;                                                                                         \
        for (; in_lanes && k + 4 <= depth; k += 4)                                                            \
            for (size_t lane = 0; lane < 4; lane++) {                                                         \
                memcpy(&row, w + (k + lane) * stride, sizeof row);                                            \
                sums[lane] += row * x[k + lane];                                                              \
            }                                                                                                 \
        sums[0] = (sums[0] + sums[2]) + (sums[1] + sums[3]);                                                  \
        for (; k < depth; k++) {                                                                              \
            memcpy(&row, w + k * stride, sizeof row);                                                         \
            sums[0] += row * x[k];                                                                            \
        }                                                                                                     \
        memcpy(&row, out, sizeof row);                                                                        \
        row += sums[0];                                                                                       \
        memcpy(out, &row, sizeof row);                                                                        \
    }
ADD_BLOCK(16)
ADD_BLOCK(4)
ADD_BLOCK(1)

#define PRODUCT(isa, target)                                                                                       \
    target static void product_##isa(const float *w, size_t stride, size_t channels, const float *x, size_t depth, \
                                     bool in_lanes, float *out)                                                    \
    {                                                                                                              \
        size_t c = 0;                                                                                              \
        for (; c + 16 <= channels; c += 16)                                                                        \
            add_block_16(w + c, stride, x, depth, in_lanes, out + c);                                              \
        for (; c + 4 <= channels; c += 4)                                                                          \
            add_block_4(w + c, stride, x, depth, in_lanes, out + c);                                               \
        for (; c < channels; c++)                                                                                  \
            add_block_1(w + c, stride, x, depth, in_lanes, out + c);                                               \
    }
TQ_EVERY_ISA(PRODUCT)

void tq_ordered_product(const float *w, size_t stride, size_t channels, const float *x, size_t depth, bool in_lanes,
                        float *out)
{
    static void (*const bodies[TQ_ISAS])(const float *, size_t, size_t, const float *, size_t, bool, float *) =
        TQ_ISA_FUNCTIONS(product);
    bodies[tq_isa()](w, stride, channels, x, depth, in_lanes, out);
}
