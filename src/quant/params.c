/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of quant/params.def.  Each is written in the precision its source computes in, one
 * operation a rounding, so that scale and zero point are that source's bits.
 */
#include "quant/params.h"

#include <math.h>

#include "base/round.h"

static const struct {
    const char *name;
    bool int16_is_symmetric;
} rows[] = {
#define PARAMS_RULE(symbol, name, int16_is_symmetric, text) {name, int16_is_symmetric},
#include "quant/params.def"
#undef PARAMS_RULE
};

tq_integer_centre tq_integer_centre_of(tq_integer_type type)
{
    tq_value_range range = tq_value_range_of(type, false);
    int32_t middle = tq_integer_is_signed(type) ? 0 : (int32_t)((int64_t)1 << (tq_integer_bits(type) - 1));
    return (tq_integer_centre){middle, range.high - middle};
}

/* NaN, from a range so narrow that its scale underflows to 0, gives the lowest quantized value. */
static int32_t clamped_zero_point(double zero_point, double rounded, tq_value_range q)
{
    return !(zero_point >= q.low) ? q.low : zero_point > q.high ? q.high : (int32_t)rounded;
}

double tq_params_scale_toco(double min, double max, tq_value_range q)
{
    return (max - min) / ((double)q.high - q.low);
}

/* A rule sees min <= 0 <= max and either a symmetric target (`centre` not NULL) or a range of values. */
static tq_params choose_toco(double min, double max, tq_value_range q, const tq_integer_centre *centre)
{
    if (min == max)
        return (tq_params){0, 0};
    if (centre)
        return (tq_params){(float)(fmax(-min, max) / centre->half), centre->middle};
    double scale = tq_params_scale_toco(min, max, q);
    double from_min = q.low - min / scale, from_max = q.high - max / scale;
    double min_terms = fabs((double)q.low) + fabs(min / scale), max_terms = fabs((double)q.high) + fabs(max / scale);
    double zero_point = min_terms < max_terms ? from_min : from_max;
    return (tq_params){(float)scale, clamped_zero_point(zero_point, tq_round_f64(zero_point), q)};
}

static tq_params choose_tflite(double min, double max, tq_value_range q, const tq_integer_centre *centre)
{
    float low = (float)min, high = (float)max, qmin = (float)q.low, qmax = (float)q.high;
    if (centre)
        return (tq_params){fmaxf(-low, high) / (float)centre->half, centre->middle};
    float scale = (high - low) / (qmax - qmin);
    float zero_point = scale != 0 ? qmin - low / scale : qmin;
    return (tq_params){scale, clamped_zero_point(zero_point, tq_round_f32(zero_point), q)};
}

static tq_params choose_mlir(double min, double max, tq_value_range q, const tq_integer_centre *centre)
{
    const double near_zero = 1e-6;
    if (centre) {
        max = fmax(-min, max);
        min = -max;
    }
    if (!(max - min > near_zero)) {
        min = fmin(min, -near_zero / 2);
        max = fmax(max, near_zero / 2);
    }
    float span = (float)max - (float)min;
    if (centre)
        return (tq_params){span / (float)(2 * (int64_t)centre->half), centre->middle};
    float scale = span / (float)((int64_t)q.high - q.low);
    float zero_point = (float)(q.low - min / (double)scale);
    return (tq_params){scale, clamped_zero_point(zero_point, tq_round_f32(zero_point), q)};
}

/* The exponent of the least power of two that is >= x > 0. */
static int power_above(double x)
{
    int exponent;
    return frexp(x, &exponent) == 0.5 ? exponent - 1 : exponent;
}

static tq_params choose_power_of_two(double min, double max, tq_value_range q, const tq_integer_centre *centre)
{
    if (centre) {
        double bound = min == max ? 0 : ldexp(1, power_above(fmax(-min, max)));
        return (tq_params){(float)(bound / ((double)centre->half + 1)), centre->middle}; /* 2^(bits - 1) */
    }
    double least = (max - min) / ((double)q.high - q.low);
    if (least == 0) /* underflow */
        return (tq_params){0, q.low};
    if (!isfinite(least)) /* frexp says nothing of infinity */
        return (tq_params){INFINITY, q.low};
    double scale = ldexp(1, power_above(least));
    double zero_point = q.low - min / scale;
    return (tq_params){(float)scale, clamped_zero_point(zero_point, tq_round_f64(zero_point), q)};
}

static tq_params choose_ai_edge(double min, double max, tq_value_range q, const tq_integer_centre *centre)
{
    const float least = 1e-9f;
    float low = (float)min, high = (float)max;
    if (centre)
        return (tq_params){fmaxf(fmaxf(-low, high), least) / (float)centre->half, centre->middle};
    float scale = fmaxf(high - low, least) / (float)((int64_t)q.high - q.low);
    float zero_point = (float)q.low - low / scale;
    return (tq_params){scale, clamped_zero_point(zero_point, rintf(zero_point), q)};
}

static tq_params (*const rules[])(double, double, tq_value_range, const tq_integer_centre *) = {
    [TQ_PARAMS_TOCO] = choose_toco,       [TQ_PARAMS_TFLITE] = choose_tflite,
    [TQ_PARAMS_MLIR] = choose_mlir,       [TQ_PARAMS_POWER_OF_TWO] = choose_power_of_two,
    [TQ_PARAMS_AI_EDGE] = choose_ai_edge,
};

tq_status tq_params_choose(const tq_params_target *target, double min, double max, tq_params *params, tq_error *error)
{
    if (!isfinite(min) || !isfinite(max) || min > max)
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                       "min is %g and max is %g; both must be finite, and min no greater than max", min, max);
    bool symmetric = target->symmetric || (target->type == TQ_INTEGER_int16 && rows[target->rule].int16_is_symmetric);
    tq_integer_centre centre = tq_integer_centre_of(target->type);
    tq_value_range range = tq_value_range_of(target->type, target->narrow);
    tq_params chosen = rules[target->rule](fmin(min, 0), fmax(max, 0), range, symmetric ? &centre : NULL);
    if (!isfinite(chosen.scale))
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                       "min %g to max %g is too wide: rule '%s' would give an infinite scale", min, max,
                       rows[target->rule].name);
    *params = chosen;
    return TQ_OK;
}
