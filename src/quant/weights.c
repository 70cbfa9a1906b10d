/* SPDX-License-Identifier: Apache-2.0
 *
 * The symmetric rules of quant/weights.def, in float32 as their sources compute.
 */
#include "quant/weights.h"

#include <math.h>
#include <string.h>

#include "quant/rounding.h"

static const char *const names[] = {
#define WEIGHT_RULE(symbol, name, text) name,
#include "quant/weights.def"
#undef WEIGHT_RULE
};

#define LEAST_FLOAT16 0x1p-24f

/* x > 0 rounded to bfloat16 and then to float16, each to nearest with ties to even.  bfloat16's 8 bits fit
   float16's 11 from 2^-14 to its greatest, 65280; below, float16 holds the multiples of its least number. */
static float to_float16_scale(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u;
    memcpy(&x, &bits, sizeof bits);
    if (x >= 65536.0f)
        return INFINITY;
    return x < 0x1p-14f ? rintf(x / LEAST_FLOAT16) * LEAST_FLOAT16 : x;
}

static float scale_of(const tq_weight_target *target, float bound, float half)
{
    const float near_zero = 1e-6f / 2, least = 1e-9f;
    float scale;
    switch (target->rule) {
    case TQ_WEIGHTS_TFLITE: return bound == 0 && !target->per_channel ? 1 : bound / half;
    case TQ_WEIGHTS_MLIR: bound = bound > near_zero ? bound : near_zero; return (bound + bound) / (2 * half);
    case TQ_WEIGHTS_AI_EDGE:
        scale = (bound > least ? bound : least) / half;
        scale = target->blocks ? to_float16_scale(scale) : scale;
        return target->positive && scale == 0 ? LEAST_FLOAT16 : scale;
    case TQ_WEIGHTS_TOCO:
    case TQ_WEIGHT_RULES: break;
    }
    return 0;
}

/* What a weight is multiplied by; divided by, under AI_EDGE. */
float tq_weight_factor(const tq_weight_target *target, float scale)
{
    return target->rule == TQ_WEIGHTS_AI_EDGE ? scale : tq_inverse_scale(scale);
}

static float factor_of(const tq_weight_target *target, float scale, float bound, float half)
{
    if (target->rule == TQ_WEIGHTS_AI_EDGE || (target->rule == TQ_WEIGHTS_MLIR && target->per_channel))
        return tq_weight_factor(target, scale);
    return bound == 0 ? 0 : half / bound;
}

static tq_status check_target(const tq_weight_target *target, tq_error *error)
{
    bool only_int8 = target->rule == TQ_WEIGHTS_MLIR;
    if (target->blocks && target->rule != TQ_WEIGHTS_AI_EDGE)
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                       "block_size is given; rule '%s' has no blocks, only '%s' has", names[target->rule],
                       names[TQ_WEIGHTS_AI_EDGE]);
    if (!tq_integer_is_signed(target->type) || target->type == TQ_INTEGER_int32 ||
        (only_int8 && target->type != TQ_INTEGER_int8))
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "dtype is '%s'; rule '%s' needs %s",
                       tq_integer_name(target->type), names[target->rule],
                       only_int8 ? "'int8'" : "'int8', 'int16', 'int4' or 'int2'");
    return TQ_OK;
}

tq_status tq_weight_scales(const tq_weight_target *target, float *bounds_to_factors, size_t count, float *scales,
                           tq_error *error)
{
    tq_status status = check_target(target, error);
    if (status)
        return status;
    float half = (float)tq_integer_centre_of(target->type).half;
    for (size_t c = 0; c < count; c++)
        if (!isfinite(bounds_to_factors[c]) || !isfinite(scale_of(target, bounds_to_factors[c], half)))
            return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                           "w holds %g in %s %zu; weights must be finite, and so must their scale%s",
                           (double)bounds_to_factors[c], target->blocks ? "block" : "channel", c,
                           target->blocks ? " as float16" : "");
    for (size_t c = 0; c < count; c++) {
        float bound = bounds_to_factors[c];
        scales[c] = scale_of(target, bound, half);
        bounds_to_factors[c] = factor_of(target, scales[c], bound, half);
    }
    return TQ_OK;
}
