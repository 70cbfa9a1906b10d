/* SPDX-License-Identifier: Apache-2.0
 *
 * Biases: their scale is their accumulator's unit, so what is left to choose is where it does not fit.
 */
#include <math.h>

#include "quant/rounding.h"
#include "quant/weights.h"

static tq_status check_scale(const char *name, double scale, bool may_be_zero, tq_error *error)
{
    if (isfinite((float)scale) && (scale > 0 || (may_be_zero && scale == 0)))
        return TQ_OK;
    return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "%s is %g; it must be finite and %s", name, scale,
                   may_be_zero ? "not negative" : "over 0");
}

tq_status tq_bias_scale(double input_scale, double weight_scale, float *scale, tq_error *error)
{
    tq_status status = check_scale("input_scale", input_scale, true, error);
    if (!status)
        status = check_scale("weight_scale", weight_scale, true, error);
    if (status)
        return status;
    float product = (float)input_scale * (float)weight_scale;
    if (!isfinite(product))
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "input_scale * weight_scale is %g; it must be finite",
                       (double)product);
    *scale = product;
    return TQ_OK;
}

tq_status tq_bias_fit(float input_scale, double b_bound, bool per_channel, float weight_scale, float *fitted,
                      float *bias_scale, tq_error *error)
{
    const double most = INT32_MAX / 2;
    tq_status status = check_scale("weight_scale", weight_scale, true, error);
    if (!status)
        status = check_scale("input_scale", input_scale, false, error);
    if (status)
        return status;
    if (!isfinite(b_bound))
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "b holds %g; it must be finite", b_bound);
    float usual = input_scale * weight_scale;
    double quantized = b_bound == 0 ? 0 : b_bound / usual; /* infinite where the product underflowed */
    bool fits = per_channel ? quantized <= most : quantized < most;
    *bias_scale = fits ? usual : (float)(b_bound / most);
    *fitted = fits ? weight_scale : (float)(b_bound / most / input_scale);
    return TQ_OK;
}

int64_t tq_bias_value(float b, float scale, int64_t limit)
{
    float rounded = scale == 0 ? 0 : tq_round_f32(b * tq_inverse_scale(scale));
    if (rounded != rounded)
        return 0;
    /* (float)limit is limit + 1, so what is below it converts. */
    return rounded >= (float)limit ? limit : rounded <= -(float)limit ? -limit : (int64_t)rounded;
}
