/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of weight_codes.h over a piece of one array, for several instruction sets.
 *
 * A value is w * factor rounded ties away from zero, or w / factor rounded ties to even, within limits; NaN gives 0.
 */
#ifndef TQ_KERNELS_WEIGHT_LOOPS_H
#define TQ_KERNELS_WEIGHT_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quant/axis_view.h"

/* How a rule rounds, and its limits.
   stays_in_range: no weight leads beyond `high` or `-high`, since factors were made from the greatest |w| of their
   channel: see tq_weight_stays_in_range. */
typedef struct tq_weight_quantizer {
    bool divides, stays_in_range;
    int32_t low, high;
} tq_weight_quantizer;

/* Whether a factor that tq_weight_scales made from the bound of finite weights allows stays_in_range; never that of a
   block, whose scale was rounded to float16.

   The scale is at least bound / half, but for roundings u = 2^-24 of each operation; what is divided or multiplied by
   it is at most half * (1 + 4 u) < half + 1/2, and rounds to half at most.  That needs a factor, and its reciprocal,
   which are neither infinite nor denormal: those of denormal bounds under rules that have no least scale are. */
bool tq_weight_stays_in_range(float factor);

/* Elements from begin to end.  bounds: by channel; grow to the greatest |w|, or NaN. */
typedef void (*tq_weight_bounds_fn)(const float *w, tq_axis_view view, size_t begin, size_t end, float *bounds);

/* q[0] is the first one's; values of 8 bits and fewer.  factors: by channel. */
typedef void (*tq_weight_bytes_fn)(tq_weight_quantizer quantizer, const float *w, tq_axis_view view, size_t begin,
                                   size_t end, const float *factors, int8_t *q);

/* What tq_pack_values does. */
typedef void (*tq_weight_pack_fn)(const uint8_t *values, size_t count, int bits, uint8_t *packed);

typedef struct tq_weight_loops {
    tq_weight_bounds_fn bounds;
    tq_weight_bytes_fn bytes;
    tq_weight_pack_fn pack;
} tq_weight_loops;

/* Those of the best of the chosen instruction sets. */
const tq_weight_loops *tq_weight_loops_chosen(void);

#endif
