/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounds and quantized values of constant weights, by the symmetric rules of quant/weights.h, on threads.
 *
 * threads: at most; 0: as many as pay.  Results depend neither on it nor on the instruction set.
 */
#ifndef TQ_KERNELS_QUANTIZE_WEIGHTS_H
#define TQ_KERNELS_QUANTIZE_WEIGHTS_H

#include <stdbool.h>

#include "quant/weights.h"

/* bounds[tq_weight_scale_count]: the greatest |w| of each scale; NaN where a weight is NaN. */
void tq_weight_bounds(const float *w, const tq_weight_layout *layout, int threads, float *bounds);

/* Quantized values, from the factors of tq_weight_scales.  q8: for 8 bits and fewer; q16: for 16 bits; the other is
   NULL. */
void tq_quantize_weights(const tq_weight_target *target, const float *w, const tq_weight_layout *layout,
                         const float *factors, int threads, int8_t *q8, int16_t *q16);

/* Quantized values of 2 or 4 bits, packed (quant/packing.h) into tq_packed_size bytes. */
void tq_quantize_weights_packed(const tq_weight_target *target, const float *w, const tq_weight_layout *layout,
                                const float *factors, int threads, uint8_t *packed);

/* Bounds, scales, factors and values in one walk, so that weights are read from memory once; results are those of
   tq_weight_bounds, tq_weight_scales and the functions above.  One of q8 and packed is NULL.  false: a channel is not
   contiguous, or tq_weight_scales would fail; outputs are unspecified. */
bool tq_weight_walk(const tq_weight_target *target, const float *w, const tq_weight_layout *layout, int threads,
                    float *factors, float *scales, int8_t *q8, uint8_t *packed);

/* Rule TOCO: the range of n weights and 0, or [0, 1] where all are 0.  TQ_BAD_ARGUMENT: a weight is not finite. */
tq_status tq_weight_range(const float *w, size_t n, double *min, double *max, tq_error *error);

#endif
