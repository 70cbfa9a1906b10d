/* SPDX-License-Identifier: Apache-2.0
 *
 * Hybrid operators: checks of weights, scaling of sums, fused activations.
 */
#include "ops/products/hybrid.h"

#include <math.h>

#include "ops/check.h"
#include "ops/elementwise/eigen_functions.h"

tq_status tq_check_weight_scales(const tq_node *node, int i, int axis, tq_error *error)
{
    const tq_tensor *weights = node->in[i];
    const tq_affine *q = &weights->quantization;
    if (q->count == 0)
        return tq_input_fail(node, i, error, "has no scale, or several that fit no dimension; weights of %s need one",
                             tq_type_name(weights->type));
    if (q->count > 1 && (q->axis != axis || (int64_t)q->count != weights->shape.dims[axis]))
        return tq_input_fail(node, i, error, "has %u scales along axis %d; there must be one, or %d along axis %d",
                             (unsigned)q->count, q->axis, weights->shape.dims[axis], axis);
    for (uint32_t c = 0; c < q->count; c++)
        if (!isfinite(q->scale[c]) || q->scale[c] < 0)
            return tq_input_fail(node, i, error, "has the scale %g for channel %u; it must be finite and not negative",
                                 (double)q->scale[c], (unsigned)c);
    return TQ_OK;
}

void tq_row_sums(const int8_t *quantized, size_t count, size_t n, int32_t *sums)
{
    for (size_t row = 0; row < count && !tq_stop_after(n / 8); row++, quantized += n) {
        int64_t sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += quantized[i];
        sums[row] = (int32_t)(sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : sum);
    }
}

tq_gemm_scaling tq_hybrid_scaling(tq_scale_order order, const tq_tensor *weights, const tq_tensor *bias, size_t first)
{
    const tq_affine *q = &weights->quantization;
    const size_t step = q->count > 1;
    return (tq_gemm_scaling){.order = order,
                             .scale = q->scale + step * first,
                             .scale_step = step,
                             .bias = bias ? (const float *)bias->data + first : NULL};
}

/* x clamped to [low, high]; NaN becomes `low`, as in the reference. */
static inline float clamp_f32(float x, float low, float high)
{
    x = x > high ? high : x;
    return x > low ? x : low;
}

bool tq_activation_is_clamp(int64_t activation, float *low, float *high)
{
    const bool unit = activation == TQ_ActivationFunctionType_RELU_N1_TO_1;
    const bool six = activation == TQ_ActivationFunctionType_RELU6;
    const bool is_clamp = unit || six || activation == TQ_ActivationFunctionType_RELU;
    *low = unit ? -1 : is_clamp ? 0 : -INFINITY;
    *high = unit ? 1 : six ? 6 : INFINITY;
    return is_clamp;
}

void tq_activate(int64_t activation, float *values, size_t n)
{
    float low, high;
    if (tq_activation_is_clamp(activation, &low, &high))
        for (size_t i = 0; i < n; i++)
            values[i] = clamp_f32(values[i], low, high);
    else if (activation == TQ_ActivationFunctionType_TANH)
        for (size_t i = 0; i < n; i++)
            values[i] = tq_eigen_tanh(values[i]);
    else if (activation == TQ_ActivationFunctionType_SIGN_BIT)
        for (size_t i = 0; i < n; i++)
            values[i] = signbit(values[i]) ? 1.0f : 0.0f;
}

tq_status tq_check_activation(const tq_node *node, int64_t activation, tq_error *error)
{
    if (activation < TQ_ActivationFunctionType_NONE || activation > TQ_ActivationFunctionType_SIGN_BIT)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "the fused activation is %lld; there are NONE (0) to SIGN_BIT (5)", (long long)activation);
    return TQ_OK;
}
