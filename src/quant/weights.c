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

/* Of floats without their sign, the greater has the greater bits, and a NaN those of all: it comes in and stays. */
static inline int32_t magnitude_bits(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7FFFFFFF;
}

static float greatest(const float *w, size_t n, float bound)
{
    int32_t most = magnitude_bits(bound);
    for (size_t i = 0; i < n; i++) {
        int32_t bits = magnitude_bits(w[i]);
        most = bits > most ? bits : most;
    }
    memcpy(&bound, &most, sizeof bound);
    return bound;
}

static inline float greater(float w, float bound)
{
    int32_t a = magnitude_bits(w), b = magnitude_bits(bound);
    int32_t most = a > b ? a : b;
    memcpy(&bound, &most, sizeof bound);
    return bound;
}

static void bounds_of(const float *w, tq_axis_view l, float *restrict bounds)
{
    for (size_t c = 0; c < l.channels; c++)
        bounds[c] = 0;
    for (size_t o = 0; o < l.outer; o++) {
        const float *at = w + o * l.channels * l.inner;
        if (l.inner == 1)
            for (size_t c = 0; c < l.channels; c++)
                bounds[c] = greater(at[c], bounds[c]);
        else
            for (size_t c = 0; c < l.channels; c++)
                bounds[c] = greatest(at + c * l.inner, l.inner, bounds[c]);
    }
}

void tq_weight_bounds(const float *w, const tq_weight_layout *l, float *bounds)
{
    for (size_t r = 0; r < l->regions; r++)
        bounds_of(w + r * tq_axis_view_size(l->region), l->region, bounds + r * l->region.channels);
}

/* x > 0 rounded to bfloat16 and then to float16, each to nearest with ties to even.  bfloat16's 8 bits fit
   float16's 11 from 2^-14 to its greatest, 65280; below, float16 holds the multiples of 2^-24. */
static float to_float16_scale(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u;
    memcpy(&x, &bits, sizeof bits);
    if (x >= 65536.0f)
        return INFINITY;
    return x < 0x1p-14f ? rintf(x * 0x1p24f) * 0x1p-24f : x;
}

static float scale_of(const tq_weight_target *target, float bound, float half)
{
    const float near_zero = 1e-6f / 2, least = 1e-9f;
    float scale;
    switch (target->rule) {
    case TQ_WEIGHTS_TFLITE:
        return bound == 0 && !target->per_channel ? 1 : bound / half;
    case TQ_WEIGHTS_MLIR:
        bound = bound > near_zero ? bound : near_zero;
        return (bound + bound) / (2 * half);
    case TQ_WEIGHTS_AI_EDGE:
        scale = (bound > least ? bound : least) / half;
        return target->blocks ? to_float16_scale(scale) : scale;
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
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "block_size is given; rule '%s' has no blocks, only '%s' has",
                       names[target->rule], names[TQ_WEIGHTS_AI_EDGE]);
    if (!tq_code_is_signed(target->code) || target->code == TQ_CODE_int32 ||
        (only_int8 && target->code != TQ_CODE_int8))
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "dtype is '%s'; rule '%s' needs %s",
                       tq_code_name(target->code), names[target->rule],
                       only_int8 ? "'int8'" : "'int8', 'int16', 'int4' or 'int2'");
    return TQ_OK;
}

tq_status tq_weight_scales(const tq_weight_target *target, float *bounds_to_factors, size_t count, float *scales,
                           tq_error *error)
{
    tq_status status = check_target(target, error);
    if (status)
        return status;
    float half = (float)tq_code_centre_of(target->code).half;
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

/* How a rule rounds, and its limits. */
typedef struct coder {
    bool divides;
    int32_t low, high;
} coder;

static int32_t code_of(float w, float factor, const coder *k)
{
    return tq_code_of_rounded(k->divides ? rintf(w / factor) : roundf(w * factor), 0, k->low, k->high);
}

/* code_of for codes of a byte, without a branch and without double: a loop of it becomes vectors.  It limits first, since
   the limits are integers, so that ties to even is an addition, and away from zero adds the number below 1/2, which
   reaches the next integer from exactly 1/2 on, and drops the fraction. */
static inline int8_t byte_of(float w, float factor, bool divides, float low, float high)
{
    float x = divides ? w / factor : w * factor;
    x = x == x ? x : 0;
    x = x > low ? x : low;
    x = x < high ? x : high;
    if (divides)
        return (int8_t)(int32_t)((x + 0x1.8p23f) - 0x1.8p23f);
    return (int8_t)(int32_t)(x + (x < 0 ? -0x1.fffffep-2f : 0x1.fffffep-2f));
}

/* n codes, each with a factor of its own, or all with the first. */
static inline void bytes_of(const coder *k, bool divides, const float *w, size_t n, const float *factors, bool same,
                            int8_t *restrict q)
{
    const float low = (float)k->low, high = (float)k->high;
    const float factor = factors[0];
    if (same)
        for (size_t i = 0; i < n; i++)
            q[i] = byte_of(w[i], factor, divides, low, high);
    else
        for (size_t i = 0; i < n; i++)
            q[i] = byte_of(w[i], factors[i], divides, low, high);
}

static void span_of(const coder *k, const float *w, size_t n, const float *factors, bool same, int8_t *q)
{
    if (k->divides)
        bytes_of(k, true, w, n, factors, same, q);
    else
        bytes_of(k, false, w, n, factors, same, q);
}

static void wide_codes_of(const coder *k, const float *w, tq_axis_view l, const float *factors, int16_t *q)
{
    size_t at = 0;
    for (size_t o = 0; o < l.outer; o++)
        for (size_t c = 0; c < l.channels; c++)
            for (size_t end = at + l.inner; at < end; at++)
                q[at] = (int16_t)code_of(w[at], factors[c], k);
}

static void codes_of(const coder *k, const float *w, tq_axis_view l, const float *factors, int8_t *q)
{
    for (size_t o = 0; o < l.outer; o++) {
        if (l.inner == 1 && l.channels) {
            span_of(k, w + o * l.channels, l.channels, factors, false, q + o * l.channels);
            continue;
        }
        for (size_t c = 0; c < l.channels; c++) {
            size_t at = (o * l.channels + c) * l.inner;
            span_of(k, w + at, l.inner, factors + c, true, q + at);
        }
    }
}

void tq_weight_codes(const tq_weight_target *target, const float *w, const tq_weight_layout *l, const float *factors,
                     int8_t *q8, int16_t *q16)
{
    tq_code_centre centre = tq_code_centre_of(target->code);
    coder k = {target->rule == TQ_WEIGHTS_AI_EDGE, -centre.half, centre.half};
    if (k.divides && tq_code_bits(target->code) < 8)
        k.low = tq_code_range_of(target->code, false).low;
    for (size_t r = 0; r < l->regions; r++) {
        size_t at = r * tq_axis_view_size(l->region);
        if (q8)
            codes_of(&k, w + at, l->region, factors + r * l->region.channels, q8 + at);
        else
            wide_codes_of(&k, w + at, l->region, factors + r * l->region.channels, q16 + at);
    }
}
