/* SPDX-License-Identifier: Apache-2.0
 *
 * Hybrid operators: checks of weights, scaling of sums, fused activations.
 */
#include "ops/products/hybrid.h"

#include <math.h>
#include <string.h>

#include "kernels/isa.h"
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

static inline int32_t without_zero(int32_t sum, int32_t zero_point, int32_t weight_sum)
{
    return (int32_t)((uint32_t)sum - (uint32_t)zero_point * (uint32_t)weight_sum);
}

enum { STORED = 16 }; /* results that are computed at once */

/* The sums of one row of outputs. */
typedef struct sums_of_row {
    const int32_t *sums, *weight_sums;
    tq_hybrid_row row;
    const float *scales, *bias; /* bias may be NULL */
    size_t scale_step, count;
    float *y;
} sums_of_row;

/* Results c to c + n - 1, which are computed before they are stored: y may be the sums' memory, and compilers vectorize
   only what cannot overlap. */
TQ_BODY void scale_sums(const sums_of_row *o, size_t c, const size_t n, const bool fused, const bool row_scale_last,
                        float *restrict y)
{
    const int32_t *sums = o->sums + c, *weight_sums = o->weight_sums + c;
    const float *scales = o->scales + o->scale_step * c, *bias = o->bias ? o->bias + c : NULL;
    float scale[STORED];
    for (size_t i = 0; i < n; i++)
        scale[i] = o->scale_step ? scales[i] : *scales;
    for (size_t i = 0; i < n; i++) {
        const float sum = (float)without_zero(sums[i], o->row.zero_point, weight_sums[i]);
        y[i] = fused            ? fmaf(sum * o->row.scale, scale[i], bias ? bias[i] : 0)
               : row_scale_last ? sum * scale[i] * o->row.scale
                                : sum * (scale[i] * o->row.scale);
    }
    for (size_t i = 0; !fused && bias && i < n; i++)
        y[i] = bias[i] + y[i];
}

/* Whole blocks; the last one, which may overlap the one before, is computed first. */
TQ_BODY void store_sums(const sums_of_row *o, const bool fused, const bool row_scale_last)
{
    float y[STORED], last[STORED];
    if (o->count < STORED) {
        scale_sums(o, 0, o->count, fused, row_scale_last, y);
        memcpy(o->y, y, o->count * sizeof *y);
        return;
    }
    if (o->count % STORED)
        scale_sums(o, o->count - STORED, STORED, fused, row_scale_last, last);
    for (size_t c = 0; c + STORED <= o->count; c += STORED) {
        scale_sums(o, c, STORED, fused, row_scale_last, y);
        memcpy(o->y + c, y, sizeof y);
    }
    if (o->count % STORED)
        memcpy(o->y + o->count - STORED, last, sizeof last);
}

#define STORE(name, target, fused, row_scale_last) \
    target static void name(const sums_of_row *o)  \
    {                                              \
        store_sums(o, fused, row_scale_last);      \
    }
TQ_ISA_DEFINE(STORE, store_fused, true, false)
TQ_ISA_DEFINE(STORE, store_last, false, true)
TQ_ISA_DEFINE(STORE, store_first, false, false)

void tq_hybrid_store(const tq_hybrid_output *o, const int32_t *sums, const int32_t *weight_sums, tq_hybrid_row row,
                     size_t first, size_t count, float *y)
{
    static void (*const stores[][TQ_ISAS])(const sums_of_row *) = {
        TQ_ISA_FUNCTIONS(store_first), TQ_ISA_FUNCTIONS(store_last), TQ_ISA_FUNCTIONS(store_fused)};
    const size_t step = o->weights->quantization.count > 1;
    const sums_of_row of = {.sums = sums,
                            .weight_sums = weight_sums,
                            .row = row,
                            .scales = o->weights->quantization.scale + step * first,
                            .bias = o->bias ? o->bias + first : NULL,
                            .scale_step = step,
                            .count = count,
                            .y = y};
    stores[o->fused ? 2 : o->row_scale_last][tq_isa()](&of);
}

/* x clamped to [low, high]; NaN becomes `low`, as in the reference. */
static inline float clamp_f32(float x, float low, float high)
{
    x = x > high ? high : x;
    return x > low ? x : low;
}

void tq_activate(int64_t activation, float *values, size_t n)
{
    switch (activation) {
    case TQ_ActivationFunctionType_RELU:
        for (size_t i = 0; i < n; i++)
            values[i] = clamp_f32(values[i], 0, INFINITY);
        return;
    case TQ_ActivationFunctionType_RELU_N1_TO_1:
        for (size_t i = 0; i < n; i++)
            values[i] = clamp_f32(values[i], -1, 1);
        return;
    case TQ_ActivationFunctionType_RELU6:
        for (size_t i = 0; i < n; i++)
            values[i] = clamp_f32(values[i], 0, 6);
        return;
    case TQ_ActivationFunctionType_TANH:
        for (size_t i = 0; i < n; i++)
            values[i] = tq_eigen_tanh(values[i]);
        return;
    case TQ_ActivationFunctionType_SIGN_BIT:
        for (size_t i = 0; i < n; i++)
            values[i] = signbit(values[i]) ? 1.0f : 0.0f;
        return;
    default: return;
    }
}

tq_status tq_check_activation(const tq_node *node, int64_t activation, tq_error *error)
{
    if (activation < TQ_ActivationFunctionType_NONE || activation > TQ_ActivationFunctionType_SIGN_BIT)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "the fused activation is %lld; there are NONE (0) to SIGN_BIT (5)", (long long)activation);
    return TQ_OK;
}
