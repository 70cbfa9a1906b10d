/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: add_block_SIDE, which adds the products of SIDE channels to out.  The includer defines SIDE, and this file
 * undefines it at its end.
 *
 * Each partial sum is a vector of the channels; products and sums are rounded by themselves (-ffp-contract=off).
 */
#include "base/names.h"
#define CHANNELS TQ_GLUE(channels_, SIDE)

typedef float CHANNELS __attribute__((vector_size(4 * SIDE)));

TQ_BODY void TQ_GLUE(add_block_, SIDE)(const float *w, size_t stride, const float *x, size_t depth, bool in_lanes,
                                       float *out)
{
    CHANNELS sums[4] = {{0}}, row;
    size_t k = 0;
    for (; in_lanes && k + 4 <= depth; k += 4)
        for (size_t lane = 0; lane < 4; lane++) {
            memcpy(&row, w + (k + lane) * stride, sizeof row);
            sums[lane] += row * x[k + lane];
        }
    sums[0] = (sums[0] + sums[2]) + (sums[1] + sums[3]);
    for (; k < depth; k++) {
        memcpy(&row, w + k * stride, sizeof row);
        sums[0] += row * x[k];
    }
    memcpy(&row, out, sizeof row);
    row += sums[0];
    memcpy(out, &row, sizeof row);
}

#undef SIDE
#undef CHANNELS
