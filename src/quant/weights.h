/* SPDX-License-Identifier: Apache-2.0
 *
 * Scales and quantized values of constant weights, by the rules of quant/weights.def; and of biases.
 */
#ifndef TQ_QUANT_WEIGHTS_H
#define TQ_QUANT_WEIGHTS_H

#include "base/status.h"
#include "quant/axis_view.h"
#include "quant/integers.h"
#include "quant/params.h"

typedef enum tq_weight_rule {
#define WEIGHT_RULE(symbol, name, text) TQ_WEIGHTS_##symbol,
#include "quant/weights.def"
#undef WEIGHT_RULE
    TQ_WEIGHT_RULES
} tq_weight_rule;

typedef struct tq_weight_target {
    tq_weight_rule rule;
    tq_integer_type type;
    bool per_channel; /* false: one scale a tensor */
    bool blocks;      /* a channel is a block, whose scale is a float16 value */
    bool positive;    /* a block's scale is at least float16's least value: XNNPACK rejects a scale of 0 */
} tq_weight_target;

/* Dense weights as `regions` consecutive arrays around one axis, with a scale for each channel of each region, in that
   order.  Per tensor or axis: one region.  Blocks of b elements along the last dimension are the channels of one
   region, {1, blocks, b}; along another dimension every row of blocks is a region, {b, elements after the dimension,
   1}. */
typedef struct tq_weight_layout {
    size_t regions;
    tq_axis_view region;
} tq_weight_layout;

/* regions * channels. */
static inline size_t tq_weight_scale_count(const tq_weight_layout *layout)
{
    return layout->regions * layout->region.channels;
}

/* ---- the symmetric rules ---- */

/* Computes scales[count] from bounds[count], the greatest |w| (tq_weight_bounds), and replaces each bound by the factor
   that tq_quantize_weights reads.  TQ_BAD_ARGUMENT: the rule has no such type or no blocks, or a bound or a scale is
   not finite; then nothing is written. */
tq_status tq_weight_scales(const tq_weight_target *target, float *bounds_to_factors, size_t count, float *scales,
                           tq_error *error);

/* The factor of a given scale > 0: the scale, where the rule divides, or its float32 reciprocal. */
float tq_weight_factor(const tq_weight_target *target, float scale);

/* ---- rule TOCO ---- */

/* Parameters for [min, max], min <= max, finite, and the quantized values of n weights in q8 (uint8) or q16 (int16);
   the other is NULL.  TQ_BAD_ARGUMENT: another type, or min = max = 0 and a weight that is not 0. */
tq_status tq_weight_toco(tq_integer_type type, bool narrow, double min, double max, const float *w, size_t n,
                         tq_params *params, uint8_t *q8, int16_t *q16, tq_error *error);

/* ---- biases ---- */

/* The scale of a bias, f32(f32(input_scale) * f32(weight_scale)); its zero point is 0.  TQ_BAD_ARGUMENT: a scale is
   negative or not finite, or the product is infinite. */
tq_status tq_bias_scale(double input_scale, double weight_scale, float *scale, tq_error *error);

/* The scales of a weight and its bias; b_bound: the greatest |b|.  Where the quantized bias would exceed 2^30 - 1 (per
   tensor, as in TFLiteConverter: reach it), the scales grow: in float64, the bias's scale is b_bound / (2^30 - 1), and
   the weight's is that over input_scale.  TQ_BAD_ARGUMENT: b_bound or a scale is not finite, weight_scale < 0, or
   input_scale <= 0. */
tq_status tq_bias_fit(float input_scale, double b_bound, bool per_channel, float weight_scale, float *fitted,
                      float *bias_scale, tq_error *error);

/* clamp(away(f32(b * f32(1 / scale))), -limit, limit), limit: the type's highest value (2^31 - 1 or 2^63 - 1); 0 where
   scale is 0 or the product is NaN. */
int64_t tq_bias_value(float b, float scale, int64_t limit);

#endif
