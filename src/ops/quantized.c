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

int32_t tq_value_cut(int32_t type, int32_t value)
{
    switch (type) {
    case TQ_TensorType_UINT8: return (uint8_t)value;
    case TQ_TensorType_INT16: return (int16_t)value;
    default: return (int8_t)value;
    }
}

void tq_activation_range(const tq_node *node, int64_t activation, int32_t *low, int32_t *high)
{
    const tq_tensor *output = node->out[0];
    float least, most;
    int32_t type_low, type_high;
    float scale = tq_scale_of(output);
    int32_t zero_point = tq_zero_point_of(output);
    int32_t (*quantize)(float, float, int32_t, int32_t, int32_t) =
        node->numerics == TQ_NUMERICS_XNNPACK ? quantize_even : tq_quantize_away;
    tq_quantized_range(output->type, &type_low, &type_high);
    real_range(activation, &least, &most);
    *low = least == -INFINITY ? type_low : quantize(least, scale, zero_point, type_low, type_high);
    *high = most == INFINITY ? type_high : quantize(most, scale, zero_point, INT32_MIN, type_high);
    if (*high <
        type_low) /* the zero point lies below the type: every value becomes the bound, and is cut to the type */
        *low = *high = tq_value_cut(output->type, *high);
}

int32_t tq_zero_point_cut(const tq_tensor *tensor)
{
    return tq_value_cut(tensor->type, tq_zero_point_of(tensor));
}

void tq_activation_range_cut(const tq_node *node, int64_t activation, int32_t *low, int32_t *high)
{
    const tq_tensor *output = node->out[0];
    const float scale = tq_scale_of(output);
    const int32_t zero_point = tq_zero_point_of(output);
    float least, most;
    tq_quantized_range(output->type, low, high);
    real_range(activation, &least, &most);
    if (least != -INFINITY)
        *low = tq_value_cut(output->type, tq_quantize_away(least, scale, zero_point, *low, INT32_MAX));
    if (most != INFINITY)
        *high = tq_value_cut(output->type, tq_quantize_away(most, scale, zero_point, INT32_MIN, *high));
}

void tq_activation_range_f32(const tq_node *node, int64_t activation, float *low, float *high)
{
    real_range(activation, low, high);
    if (node->numerics == TQ_NUMERICS_XNNPACK)
        return;
    *low = *low == -INFINITY ? -FLT_MAX : *low;
    *high = *high == INFINITY ? FLT_MAX : *high;
}

static bool reads_first(const tq_node *node, const tq_tensor *tensor)
{
    static const int16_t operators[] = {TQ_BuiltinOperator_ABS, TQ_BuiltinOperator_LOG, TQ_BuiltinOperator_RSQRT,
                                        TQ_BuiltinOperator_SQRT, TQ_BuiltinOperator_SVDF};
    for (size_t i = 0; tensor->quantization.count > 1 && i < sizeof operators / sizeof *operators; i++)
        if (operators[i] == node->row.code)
            return true;
    return false;
}

float tq_kernel_scale(const tq_node *node, const tq_tensor *tensor)
{
    return reads_first(node, tensor) ? tensor->quantization.scale[0] : tq_scale_of(tensor);
}

int32_t tq_kernel_zero_point(const tq_node *node, const tq_tensor *tensor)
{
    return reads_first(node, tensor) ? tensor->quantization.zero_point[0] : tq_zero_point_of(tensor);
}

bool tq_power_of_two(float scale, int *log2_scale)
{
    float exact = logf(scale) * (1.0f / logf(2.0f)), rounded = tq_round_f32(exact);
    *log2_scale = (int)rounded;
    return fabsf(exact - rounded) < 1e-3f;
}

tq_status tq_fixed_find(const tq_node *node, double real, tq_fixed *out, tq_error *error)
{
    (void)node;
    (void)error;
    *out = tq_fixed_of(node, isfinite(real) ? real : 0);
    return TQ_OK;
}
