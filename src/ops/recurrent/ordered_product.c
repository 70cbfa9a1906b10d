/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recurrent/ordered_product.h"

#include <string.h>

#include "kernels/isa.h"

#define SIDE 16
#include "ops/recurrent/channel_block_template.h"
#define SIDE 8
#include "ops/recurrent/channel_block_template.h"
#define SIDE 4
#include "ops/recurrent/channel_block_template.h"
#define SIDE 1
#include "ops/recurrent/channel_block_template.h"

#define PRODUCT(isa, target)                                                                                       \
    target static void product_##isa(const float *w, size_t stride, size_t channels, const float *x, size_t depth, \
                                     bool in_lanes, float *out)                                                    \
    {                                                                                                              \
        size_t c = 0;                                                                                              \
        for (; TQ_FLOATS_##isa >= 16 && c + 16 <= channels; c += 16)                                               \
            add_block_16(w + c, stride, x, depth, in_lanes, out + c);                                              \
        for (; TQ_FLOATS_##isa >= 8 && c + 8 <= channels; c += 8)                                                  \
            add_block_8(w + c, stride, x, depth, in_lanes, out + c);                                               \
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
