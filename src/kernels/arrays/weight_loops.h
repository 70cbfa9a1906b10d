/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of quantize_weights.c over a part of one array, for several instruction sets.
 *
 * A value is w * factor rounded ties away from zero, or w / factor rounded ties to even, clamped; NaN gives 0.
 */
#ifndef TQ_KERNELS_WEIGHT_LOOPS_H
#define TQ_KERNELS_WEIGHT_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quant/axis_view.h"

/* How a rule rounds, and its limits. */
typedef struct tq_weight_quantizer {
    bool divides;        /* w / factor, ties to even; false: w * factor, ties away from zero */
    bool stays_in_range; /* no value lies beyond -high or high: tq_weight_stays_in_range */
    int32_t low, high;   /* low <= 0 <= high */
} tq_weight_quantizer;

/* Whether values of a channel need no clamp, given its factor from tq_weight_scales and its bound.  Not for blocks,
   whose scale was rounded to float16.

   The scale is at least bound / half, up to a rounding by u = 2^-24 in each operation.  So the quotient or product is
   at most half * (1 + 4 u) < half + 1/2, and rounds to at most half.  That needs a factor and a reciprocal that are
   neither infinite nor denormal; rules without a least scale give such factors for denormal bounds. */
bool tq_weight_stays_in_range(float factor);

/* Elements [begin, end).  bounds[channels] grow to the greatest |w|, or NaN. */
typedef void (*tq_weight_bounds_fn)(const float *w, tq_axis_view view, size_t begin, size_t end, float *bounds);

/* Quantized values of 8 bits and fewer for elements [begin, end), from q[0] on.  factors[channels]. */
typedef void (*tq_weight_bytes_fn)(tq_weight_quantizer quantizer, const float *w, tq_axis_view view, size_t begin,
                                   size_t end, const float *factors, int8_t *q);

/* As tq_pack_values. */
typedef void (*tq_weight_pack_fn)(const uint8_t *values, size_t count, int bits, uint8_t *packed);

typedef struct tq_weight_loops {
    tq_weight_bounds_fn bounds;
    tq_weight_bytes_fn bytes;
    tq_weight_pack_fn pack;
} tq_weight_loops;

/* The loops of the best of the chosen instruction sets. */
const tq_weight_loops *tq_weight_loops_chosen(void);

#endif
