/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files of a depthwise convolution share: the contract of a body, and the layout of its weights.
 */
#ifndef TQ_KERNELS_DEPTHWISE_PARTS_H
#define TQ_KERNELS_DEPTHWISE_PARTS_H

#include "base/sizes.h"
#include "kernels/depthwise/depthwise.h"
#include "kernels/gemm/products.h"

#define TQ_DEPTHWISE_ALIGN 64  /* bytes: of each part of a memory */
#define TQ_DEPTHWISE_SLACK 128 /* bytes that a vector may reach past a pixel */

/* sums[r][c] = bias[c] + products of taps with weights, for `vectors` vectors of channels.  Weights are int8, int16 or
   float: [vector][group of taps][channel of the vector][tap of the group]; weights past the last tap are 0. */
typedef struct tq_depthwise_tile {
    const void *const *row; /* row[tap * step + r]: a pixel, of which whole vectors of channels may be read */
    size_t step, taps, rows, vectors;
    size_t offset; /* bytes from a pixel to the tile's first channel */
    const char *weights;
    size_t vector_bytes; /* of the weights of a vector */
    const void *bias;
    void *sums; /* [rows][vectors * lanes]; this and the fields below: as in tq_tile */
    size_t sums_stride;
    float floor, ceiling;
} tq_depthwise_tile;

struct tq_depthwise_kernel {
    const char *isa;
    uint8_t lanes, group, weight_bytes;
    uint8_t flip; /* the kernel exclusive-ors 8-bit elements with it */
    void (*tile)(const tq_depthwise_tile *tile);
    const tq_stores *stores;
};

#define DEPTHWISE(in, isa) extern const tq_depthwise_kernel tq_depthwise_##in##__##isa;
#include "kernels/depthwise/depthwise.def"

/* Vectors that hold all channels; the last may be partly empty. */
static inline size_t tq_depthwise_vectors(const tq_depthwise *d)
{
    return d->channels / d->kernel->lanes + (d->channels % d->kernel->lanes != 0);
}

/* Bytes of the packed weights of one vector. */
static inline size_t tq_depthwise_vector_bytes(const tq_depthwise *d)
{
    return tq_round_up(d->taps, d->kernel->group) * d->kernel->lanes * d->kernel->weight_bytes;
}

/* depthwise_plan.c: the last usable row of depthwise.def for `in`.  small_weights: weights less their zero point fit
   8 bits. */
const tq_depthwise_kernel *tq_depthwise_find(tq_element in, bool fused, bool small_weights);

#endif
