/* SPDX-License-Identifier: Apache-2.0
 *
 * Rule "toco" of quant/weights.def: constant arrays of uint8 models, in float64.
 * tflite/toco/graph_transformations: quantize.cc (GetOrComputeMinMax), quantization_util.cc (QuantizeBuffer).
 */
#include <math.h>

#include "quant/rounding.h"
#include "quant/weights.h"

tq_status tq_weight_toco(tq_integer_type type, bool narrow, double min, double max, const float *w, size_t n,
                         tq_params *params, uint8_t *q8, int16_t *q16, tq_error *error)
{
    if (type != TQ_INTEGER_uint8 && type != TQ_INTEGER_int16)
        return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET, "dtype is '%s'; rule 'toco' needs 'uint8' or 'int16'",
                       tq_integer_name(type));
    tq_params_target target = {.rule = TQ_PARAMS_TOCO, .type = type, .narrow = narrow};
    tq_params chosen;
    tq_status status = tq_params_choose(&target, min, max, &chosen, error);
    if (status)
        return status;
    /* Widened as tq_params_choose widens it. */
    double scale = tq_params_scale_toco(fmin(min, 0), fmax(max, 0), tq_value_range_of(type, narrow));
    double inverse = scale == 0 ? 0 : 1 / scale;
    tq_value_range q = tq_value_range_of(type, false);
    for (size_t i = 0; i < n; i++) {
        if (scale == 0 && w[i] != 0)
            return tq_fail(error, TQ_BAD_ARGUMENT, TQ_NO_OFFSET,
                           "w holds %g, and min and max are 0, which gives the scale 0", (double)w[i]);
        double rounded = tq_round_f64(chosen.zero_point + inverse * w[i]);
        int32_t one = tq_value_of_rounded(rounded, 0, q.low, q.high);
        one += narrow && one == q.low;
        if (q8)
            q8[i] = (uint8_t)one;
        else
            q16[i] = (int16_t)one;
    }
    *params = chosen;
    return TQ_OK;
}
