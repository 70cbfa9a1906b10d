/* SPDX-License-Identifier: Apache-2.0
 *
 * The array work of quant/weights.h: bounds and values of constant weights by its symmetric rules, on threads.
 *
 * threads: at most so many; 0: as many as pay.  Results do not depend on it, nor on the instruction set.
 */
#ifndef TQ_KERNELS_QUANTIZE_WEIGHTS_H
#define TQ_KERNELS_QUANTIZE_WEIGHTS_H

#include <stdbool.h>

#include "quant/weights.h"

/* The greatest |w| for each scale; NaN where there is one among them. */
void tq_weight_bounds(const float *w, const tq_weight_layout *layout, int threads, float *bounds);

/* The values, from the factors of tq_weight_scales; one of `q8` (8 bits and fewer) and `q16` is written, the other
   NULL. */
void tq_quantize_weights(const tq_weight_target *target, const float *w, const tq_weight_layout *layout,
                         const float *factors, int threads, int8_t *q8, int16_t *q16);

/* Quantized values of fewer than 8 bits, packed as quant/packing.h says: tq_packed_size bytes. */
void tq_quantize_weights_packed(const tq_weight_target *target, const float *w, const tq_weight_layout *layout,
                                const float *factors, int threads, uint8_t *packed);

/* Bounds, scales, factors and values in one walk, so that weights come from memory once; the results are those of
   tq_weight_bounds, tq_weight_scales and the functions above.  One of q8 and packed is NULL.  False, and what was
   written means nothing, where a channel lies in several pieces or tq_weight_scales would fail. */
bool tq_weight_walk(const tq_weight_target *target, const float *w, const tq_weight_layout *layout, int threads,
                    float *factors, float *scales, int8_t *q8, uint8_t *packed);

/* Of rule TOCO: the range of n weights, which are finite or the call fails. */
tq_status tq_weight_range(const float *w, size_t n, double *min, double *max, tq_error *error);

#endif
