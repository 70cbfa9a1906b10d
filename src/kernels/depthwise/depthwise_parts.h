/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of a depthwise convolution share: the contract of a body, and how its packed weights lie.
 */
#ifndef TQ_KERNELS_DEPTHWISE_PARTS_H
#define TQ_KERNELS_DEPTHWISE_PARTS_H

#include "base/sizes.h"
#include "kernels/depthwise/depthwise.h"
#include "kernels/gemm/products.h"

#define TQ_DEPTHWISE_ALIGN 64  /* of each part of a memory */
#define TQ_DEPTHWISE_SLACK 128 /* bytes that a vector may reach past a pixel */

/* sums[r][c] = bias[c] + products of the taps with their weights, for `vectors` vectors of channels.  Weights are
   int8, int16 or float: for each vector, for each `group` of taps, for each of its channels, the group's weights; those
   past the last tap are 0. */
typedef struct tq_depthwise_tile {
    const void *const *row; /* row[tap * step + r]: to the first of these channels; whole vectors may be read */
    size_t step, taps, rows, vectors;
    size_t offset; /* bytes added to each pointer */
    const char *weights;
    size_t vector_bytes; /* of weights */
    const void *bias;
    void *sums; /* [rows][vectors * lanes]; and so on as in tq_tile */
    size_t sums_stride;
    float floor, ceiling;
} tq_depthwise_tile;

struct tq_depthwise_kernel {
    const char *isa;
    uint8_t lanes, group, weight_bytes;
    uint8_t flip; /* what the kernel itself makes of 8-bit elements, by exclusive or */
    void (*tile)(const tq_depthwise_tile *tile);
    const tq_stores *stores;
};

#define DEPTHWISE(in, isa) extern const tq_depthwise_kernel tq_depthwise_##in##__##isa;
#include "kernels/depthwise/depthwise.def"

/* Vectors of channels, the last of which may be padded. */
static inline size_t tq_depthwise_vectors(const tq_depthwise *d)
{
    return d->channels / d->kernel->lanes + (d->channels % d->kernel->lanes != 0);
}

/* Of the packed weights of one such vector. */
static inline size_t tq_depthwise_vector_bytes(const tq_depthwise *d)
{
    return tq_round_up(d->taps, d->kernel->group) * d->kernel->lanes * d->kernel->weight_bytes;
}

/* depthwise_plan.c: the last row of depthwise.def that the machine has for such elements.  small_weights: less their
   zero point, weights fit 8 bits. */
const tq_depthwise_kernel *tq_depthwise_find(tq_element in, bool fused, bool small_weights);

#endif
