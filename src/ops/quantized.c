/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/quantized.h"

#include <float.h>

void tq_quantized_range(int32_t type, int32_t *low, int32_t *high)
{
    const tq_type_row *row = tq_type(type);
    bool is_quantized = row && row->kind == TQ_KIND_INTEGER && row->low >= INT32_MIN && row->high <= INT32_MAX;
    *low = is_quantized ? (int32_t)row->low : INT32_MIN;
    *high = is_quantized ? (int32_t)row->high : INT32_MAX;
}

/* The bounds of an activation's real values; infinite where it has none. */
static void real_range(int64_t activation, float *low, float *high)
{
    *low = -INFINITY;
    *high = INFINITY;
    switch (activation) {
    case TQ_ActivationFunctionType_RELU: *low = 0; break;
    case TQ_ActivationFunctionType_RELU6: *low = 0, *high = 6; break;
    case TQ_ActivationFunctionType_RELU_N1_TO_1: *low = -1, *high = 1; break;
    }
}

/* XNNPACK adds the zero point before it rounds. */
static int32_t quantize_even(float bound, float scale, int32_t zero_point, int32_t low, int32_t high)
{
    return tq_value_of_rounded(rintf(bound / scale + (float)zero_point), 0, low, high);
}

void tq_activation_range(const tq_node *node, int64_t activation, int32_t *low, int32_t *high)
{
    const tq_tensor *output = node->out[0];
    float least, most;
    int32_t type_low, type_high;
    float scale = tq_scale_at(output, 0);
    int32_t zero_point = tq_zero_point_at(output, 0);
    int32_t (*quantize)(float, float, int32_t, int32_t, int32_t) =
        node->numerics == TQ_NUMERICS_XNNPACK ? quantize_even : tq_quantize_away;
    tq_quantized_range(output->type, &type_low, &type_high);
    real_range(activation, &least, &most);
    *low = least == -INFINITY ? type_low : quantize(least, scale, zero_point, type_low, type_high);
    *high = most == INFINITY ? type_high : quantize(most, scale, zero_point, type_low, type_high);
}

void tq_activation_range_f32(const tq_node *node, int64_t activation, float *low, float *high)
{
    real_range(activation, low, high);
    if (node->numerics == TQ_NUMERICS_XNNPACK)
        return;
    *low = *low == -INFINITY ? -FLT_MAX : *low;
    *high = *high == INFINITY ? FLT_MAX : *high;
}

bool tq_power_of_two(float scale, int *log2_scale)
{
    float exact = logf(scale) * (1.0f / logf(2.0f)), rounded = tq_round_f32(exact);
    *log2_scale = (int)rounded;
    return fabsf(exact - rounded) < 1e-3f;
}

tq_status tq_fixed_find(const tq_node *node, double real, tq_fixed *out, tq_error *error)
{
    if (!isfinite(real))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "its scales' ratio is %g; it needs to be finite", real);
    *out = tq_fixed_of(real);
    return TQ_OK;
}
