/* SPDX-License-Identifier: Apache-2.0
 *
 * Symmetric codes and scales for constant weights, by the rules of quant/weights.def; and for biases.
 */
#ifndef TQ_QUANT_WEIGHTS_H
#define TQ_QUANT_WEIGHTS_H

#include "base/status.h"
#include "quant/codes.h"
#include "quant/axis_view.h"

typedef enum tq_weight_rule {
#define WEIGHT_RULE(symbol, name, text) TQ_WEIGHTS_##symbol,
#include "quant/weights.def"
#undef WEIGHT_RULE
    TQ_WEIGHT_RULES
} tq_weight_rule;

typedef struct tq_weight_target {
    tq_weight_rule rule;
    tq_code code;
    bool per_channel; /* false: `view` has one channel */
} tq_weight_target;

/* The greatest |w| of each channel; NaN where it holds one. */
void tq_weight_bounds(const float *w, tq_axis_view view, float *bounds);

/* The scale of each channel from its bound, and in the bound's place the factor that tq_weight_codes
   reads.  Fails where the rule has no such type, and where a bound or a scale is not finite. */
tq_status tq_weight_scales(const tq_weight_target *target, float *bounds_to_factors, size_t channels, float *scales,
                           tq_error *error);

/* The factor for a scale that was chosen elsewhere: a division by it, or a multiplication by its float32
   reciprocal. */
float tq_weight_factor(const tq_weight_target *target, float scale);

/* The codes; one of `q8` (8 bits and fewer) and `q16` is written, the other NULL. */
void tq_weight_codes(const tq_weight_target *target, const float *w, tq_axis_view view, const float *factors,
                     int8_t *q8, int16_t *q16);

/* A bias's scale, f32(input_scale * weight_scale); its zero point is 0. */
static inline float tq_bias_scale(float input_scale, float weight_scale)
{
    return input_scale * weight_scale;
}

/* The scales of a weight and its bias, grown where the bias's code would pass 2^30 - 1: then, in float64,
   the bias's scale is |b| / (2^30 - 1) and the weight's that over input_scale.  As TFLiteConverter does,
   a per-tensor scale grows at 2^30 - 1 already.  input_scale is finite and > 0. */
void tq_bias_fit(float input_scale, double b_bound, bool per_channel, float *weight_scale, float *bias_scale);

/* clamp(away(f32(b * f32(1 / s))), -limit, limit), limit the type's highest value; 0 where s is 0.
   NaN gives 0. */
int64_t tq_bias_code(float b, float scale, int64_t limit);

#endif
