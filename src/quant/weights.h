/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantized values and scales for constant weights, by the rules of quant/weights.def; and for biases.
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
    bool per_channel; /* false: one region of one channel */
    bool blocks;      /* a channel is a block, whose scale float16 holds */
    bool positive;    /* where that would be 0, it is float16's least number: XNNPACK refuses a scale of 0 */
} tq_weight_target;

/* Dense weights as `regions` arrays one after the other, each seen around one axis, with a scale for each
   channel of each region, in that order.  Per tensor or axis there is one region.  Blocks of b along the last
   dimension are the channels of one, {1, blocks, b}; along another, every row of blocks is a region,
   {b, after, 1}. */
typedef struct tq_weight_layout {
    size_t regions;
    tq_axis_view region;
} tq_weight_layout;

static inline size_t tq_weight_scale_count(const tq_weight_layout *layout)
{
    return layout->regions * layout->region.channels;
}

/* ---- the symmetric rules ---- */

/* The scales from the bounds that kernels/arrays/quantize_weights.h finds, and in the bounds' place the factors that it
   reads. Fails where the rule has no such type or no blocks, and where a bound or a scale is not finite. */
tq_status tq_weight_scales(const tq_weight_target *target, float *bounds_to_factors, size_t count, float *scales,
                           tq_error *error);

/* The factor for a scale that was chosen elsewhere: a division by it, or a multiplication by its float32
   reciprocal. */
float tq_weight_factor(const tq_weight_target *target, float scale);

/* ---- rule TOCO ---- */

/* Quantized values of n weights for that range (min <= max, finite); one of q8 (uint8) and q16 (int16) is written.
   Fails where the value is neither, and where min = max = 0 and a weight is not 0. */
tq_status tq_weight_toco(tq_integer_type type, bool narrow, double min, double max, const float *w, size_t n,
                         tq_params *params, uint8_t *q8, int16_t *q16, tq_error *error);

/* ---- biases ---- */

/* A bias's scale, f32(f32(input_scale) * f32(weight_scale)); its zero point is 0.  Fails where either is not
   finite or negative, or the product infinite. */
tq_status tq_bias_scale(double input_scale, double weight_scale, float *scale, tq_error *error);

/* The scales of a weight and its bias, grown where the quantized bias would pass 2^30 - 1: then, in float64,
   the bias's scale is |b| / (2^30 - 1) and the weight's that over input_scale.  As TFLiteConverter does,
   a per-tensor scale grows at 2^30 - 1 already.  Fails where b or a scale is not finite, weight_scale is negative
   or input_scale not over 0. */
tq_status tq_bias_fit(float input_scale, double b_bound, bool per_channel, float weight_scale, float *fitted,
                      float *bias_scale, tq_error *error);

/* clamp(away(f32(b * f32(1 / s))), -limit, limit), limit the type's highest value; 0 where s is 0.
   NaN gives 0. */
int64_t tq_bias_value(float b, float scale, int64_t limit);

#endif
