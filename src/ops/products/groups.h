/* SPDX-License-Identifier: Apache-2.0
 *
 * Small groups of an integer convolution, merged: several become one, so that its channels fill a panel.  Integer sums
 * with weights of 0 are the same, and the panel takes as many steps as one of a single group's channels.
 */
#ifndef TQ_OPS_PRODUCTS_GROUPS_H
#define TQ_OPS_PRODUCTS_GROUPS_H

#include "kernels/gemm/gemm.h"

/* How many of `groups` groups of `each` channels become one: a divisor of `groups`. */
size_t tq_merged_groups(size_t groups, size_t each, size_t lanes);

/* Merged groups of `channels` channels in all, whose weights [channels][taps][depth] of int8 stand at w->data. */
typedef struct tq_merged_shape {
    size_t merged, channels, taps, depth; /* depth: of one of the groups */
} tq_merged_shape;

/* Writes the weights as those of one group to `to`, [channels][taps][merged * depth], in which a channel's weights for
   other groups' inputs are 0, and sets w's data and channel_stride. */
void tq_spread_groups(const tq_merged_shape *shape, tq_gemm_weights *w, uint8_t *to);

#endif
