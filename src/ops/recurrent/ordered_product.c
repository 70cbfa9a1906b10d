/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recurrent/ordered_product.h"

#include <string.h>

/* Channels of a block, and partial sums of each channel. */
enum { SIDE = 16, LANES = 4 };

typedef struct block {
    float sums[LANES][SIDE];
} block;

/* Adds the products of rows [begin, end) of w to the partial sums; row i to partial sum i % LANES. */
static void add_rows(const float *w, size_t stride, const float *x, size_t begin, size_t end, size_t lane_mask,
                     block *b)
{
    for (size_t k = begin; k < end; k++) {
        float *sums = b->sums[k & lane_mask];
        const float *row = w + k * stride;
        for (size_t c = 0; c < SIDE; c++)
            sums[c] += row[c] * x[k];
    }
}

static void sum_block(const float *w, size_t stride, const float *x, size_t depth, bool in_lanes, float *out)
{
    block b = {{{0}}};
    size_t whole = in_lanes ? depth - depth % LANES : 0;
    add_rows(w, stride, x, 0, whole, LANES - 1, &b);
    for (size_t c = 0; c < SIDE; c++)
        b.sums[0][c] = (b.sums[0][c] + b.sums[2][c]) + (b.sums[1][c] + b.sums[3][c]);
    add_rows(w, stride, x, whole, depth, 0, &b);
    memcpy(out, b.sums[0], sizeof b.sums[0]);
}

/* For channels after the last whole block. */
static float sum_column(const float *w, size_t stride, const float *x, size_t depth, bool in_lanes)
{
    float sums[LANES] = {0, 0, 0, 0};
    size_t whole = in_lanes ? depth - depth % LANES : 0;
    for (size_t k = 0; k < whole; k++)
        sums[k % LANES] += w[k * stride] * x[k];
    float sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
    for (size_t k = whole; k < depth; k++)
        sum += w[k * stride] * x[k];
    return sum;
}

void tq_ordered_product(const float *w, size_t stride, size_t channels, const float *x, size_t depth, bool in_lanes,
                        float *out)
{
    size_t c = 0;
    for (; c + SIDE <= channels; c += SIDE) {
        float sums[SIDE];
        sum_block(w + c, stride, x, depth, in_lanes, sums);
        for (size_t i = 0; i < SIDE; i++)
            out[c + i] += sums[i];
    }
    for (; c < channels; c++)
        out[c] += sum_column(w + c, stride, x, depth, in_lanes);
}
