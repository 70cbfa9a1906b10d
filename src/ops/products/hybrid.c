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

enum {
    STORED = 16,  /* channels that are computed at once */
    TOGETHER = 32 /* rows for which their parameters are loaded */
};

/* Parameters of some channels. */
typedef struct lanes {
    int32_t weight_sums[STORED];
    float scale[STORED], bias[STORED];
} lanes;

/* The sums of some rows of outputs. */
typedef struct sums_of_rows {
    const tq_hybrid_output *output;
    const tq_hybrid_row *rows;
    size_t row_step, count;
    float *y;
} sums_of_rows;

/* Channels c to c + n - 1.  Without a bias, the value whose addition changes nothing, not even -0; XNNPACK adds 0. */
TQ_BODY void load_lanes(const tq_hybrid_output *o, size_t c, const size_t n, const bool fused, lanes *l)
{
    const tq_affine *q = &o->weights->quantization;
    for (size_t i = 0; i < n; i++) {
        l->weight_sums[i] = o->weight_sums[c + i];
        l->scale[i] = q->scale[q->count > 1 ? o->first + c + i : 0];
        l->bias[i] = o->bias ? o->bias[o->first + c + i] : fused ? 0.0f : -0.0f;
    }
}

/* Results of a row's n channels. */
TQ_BODY void scale_sums(const int32_t *sums, const lanes *l, const tq_hybrid_row row, const float low, const float high,
                        const size_t n, const bool fused, const bool row_scale_last, float *restrict to)
{
    _Pragma("GCC unroll 1") for (size_t i = 0; i < n; i++)
    {
        const float sum = (float)without_zero(sums[i], row.zero_point, l->weight_sums[i]);
        const float y = fused            ? fmaf(sum * row.scale, l->scale[i], l->bias[i])
                        : row_scale_last ? l->bias[i] + sum * l->scale[i] * row.scale
                                         : l->bias[i] + sum * (l->scale[i] * row.scale);
        const float raised = y < low ? low : y;
        to[i] = raised > high ? high : raised;
    }
}

/* Up to TOGETHER rows.  The last channels, which may overlap others, are computed first and stored last. */
TQ_BODY void store_rows(const sums_of_rows *s, size_t begin, size_t count, const bool fused, const bool row_scale_last)
{
    const tq_hybrid_output *o = s->output;
    const float low = o->low, high = o->high;
    const size_t n = o->channels < STORED ? o->channels : STORED, end = o->channels - n;
    float last[TOGETHER][STORED], to[STORED], *const y = s->y + begin * o->stride;
    const tq_hybrid_row *row = s->rows + begin * s->row_step;
    lanes l;
    load_lanes(o, end, n, fused, &l);
    for (size_t r = 0; r < count; r++) {
        const int32_t *sums = (const int32_t *)(const void *)(y + r * o->stride + end);
        if (n == STORED)
            scale_sums(sums, &l, row[r * s->row_step], low, high, STORED, fused, row_scale_last, last[r]);
        else
            scale_sums(sums, &l, row[r * s->row_step], low, high, n, fused, row_scale_last, last[r]);
    }
    for (size_t c = 0; c < end; c += STORED) {
        load_lanes(o, c, STORED, fused, &l);
        for (size_t r = 0; r < count; r++) {
            const int32_t *sums = (const int32_t *)(const void *)(y + r * o->stride + c);
            scale_sums(sums, &l, row[r * s->row_step], low, high, STORED, fused, row_scale_last, to);
            memcpy(y + r * o->stride + c, to, sizeof to);
        }
    }
    for (size_t r = 0; r < count; r++)
        memcpy(y + r * o->stride + end, last[r], n * sizeof *y);
}

#define STORE(name, target, fused, row_scale_last)                                                      \
    target static void name(const sums_of_rows *s)                                                      \
    {                                                                                                   \
        for (size_t r = 0; r < s->count; r += TOGETHER)                                                 \
            store_rows(s, r, s->count - r < TOGETHER ? s->count - r : TOGETHER, fused, row_scale_last); \
    }
TQ_ISA_DEFINE(STORE, store_fused, true, false)
TQ_ISA_DEFINE(STORE, store_last, false, true)
TQ_ISA_DEFINE(STORE, store_first, false, false)

void tq_hybrid_store(const tq_hybrid_output *output, const tq_hybrid_row *rows, size_t row_step, size_t count, float *y)
{
    static void (*const stores[][TQ_ISAS])(const sums_of_rows *) = {
        TQ_ISA_FUNCTIONS(store_first), TQ_ISA_FUNCTIONS(store_last), TQ_ISA_FUNCTIONS(store_fused)};
    const sums_of_rows of = {.output = output, .rows = rows, .row_step = row_step, .count = count, .y = y};
    stores[output->fused ? 2 : output->row_scale_last][tq_isa()](&of);
}

/* Values clamped to [low, high]; NaN becomes `low`, as in the reference. */
#define CLAMP(isa, target)                                                         \
    target static void clamp_##isa(float *values, size_t n, float low, float high) \
    {                                                                              \
        for (size_t i = 0; i < n; i++) {                                           \
            const float x = values[i] > high ? high : values[i];                   \
            values[i] = x > low ? x : low;                                         \
        }                                                                          \
    }
TQ_EVERY_ISA(CLAMP)

static void clamp_values(float *values, size_t n, float low, float high)
{
    static void (*const bodies[TQ_ISAS])(float *, size_t, float, float) = TQ_ISA_FUNCTIONS(clamp);
    bodies[tq_isa()](values, n, low, high);
}

void tq_activate(int64_t activation, float *values, size_t n)
{
    switch (activation) {
    case TQ_ActivationFunctionType_RELU: clamp_values(values, n, 0, INFINITY); return;
    case TQ_ActivationFunctionType_RELU_N1_TO_1: clamp_values(values, n, -1, 1); return;
    case TQ_ActivationFunctionType_RELU6: clamp_values(values, n, 0, 6); return;
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
