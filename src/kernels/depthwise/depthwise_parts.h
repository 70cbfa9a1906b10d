/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of a depthwise convolution share: how its packed weights lie.
 */
#ifndef TQ_KERNELS_DEPTHWISE_PARTS_H
#define TQ_KERNELS_DEPTHWISE_PARTS_H

#include "base/sizes.h"
#include "kernels/depthwise/depthwise.h"
#include "kernels/gemm/products.h"

#define TQ_DEPTHWISE_ALIGN 64  /* of each part of a memory */
#define TQ_DEPTHWISE_SLACK 128 /* bytes that a vector may reach past a pixel */

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

/* depthwise_plan.c: the last row of depthwise.def that the machine has for such elements.  small_weights: less their zero
   point, weights fit 8 bits. */
const tq_depthwise_kernel *tq_depthwise_find(tq_element in, bool fused, bool small_weights);

#endif
