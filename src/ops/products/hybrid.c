/* SPDX-License-Identifier: Apache-2.0
 *
 * Hybrid operators: quantization of rows, checks of weights, scaling of sums, fused activations.
 */
#include "ops/products/hybrid.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "ops/check.h"
#include "ops/elementwise/eigen_functions.h"
#include "ops/elementwise/fixed_point_lanes.h"

/* Elements of a SIMD block of TFLite's.  Elements after the last whole block are rounded differently. */
enum { BLOCK = 8 };

/* A row whose greatest magnitude is smaller is quantized as zeros: 1 / scale would overflow. */
#define SMALLEST_BOUND 1e-35f

typedef struct range {
    float low, high;
    bool finite; /* all values are finite */
} range;

/* The greatest bits as int32 and as uint32, from 0 on: those of the greatest value and of the least.  Bits of floats
   have the floats' order among values of 0 and more, and the opposite one among those below; compilers vectorize maxima
   of integers alone.  NaN and infinities have the greatest bits of their sign. */
#define BITS_OF(isa, target)                                                                      \
    target static void bits_##isa(const float *values, size_t n, uint32_t *most, uint32_t *least) \
    {                                                                                             \
        int32_t high = 0;                                                                         \
        uint32_t low = 0;                                                                         \
        for (size_t i = 0; i < n; i++) {                                                          \
            uint32_t bits;                                                                        \
            memcpy(&bits, values + i, sizeof bits);                                               \
            high = (int32_t)bits > high ? (int32_t)bits : high;                                   \
            low = bits > low ? bits : low;                                                        \
        }                                                                                         \
        *most = (uint32_t)high, *least = low;                                                     \
    }
TQ_EVERY_ISA(BITS_OF)

/* The range of the values and 0. */
static range range_of(const float *values, size_t n)
{
    static void (*const bodies[TQ_ISAS])(const float *, size_t, uint32_t *, uint32_t *) = TQ_ISA_FUNCTIONS(bits);
    const uint32_t sign = 0x80000000, infinite = 0x7F800000;
    uint32_t most, least;
    range r;
    bodies[tq_isa()](values, n, &most, &least);
    least = least > sign ? least : 0; /* no value is below 0 */
    memcpy(&r.high, &most, sizeof most);
    memcpy(&r.low, &least, sizeof least);
    r.finite = most < infinite && (least & ~sign) < infinite;
    return r;
}

/* A row with NaN or an infinity: its products become NaN, as in floating point. */
static tq_hybrid_row non_finite(size_t n, int8_t *quantized)
{
    memset(quantized, 0, n);
    return (tq_hybrid_row){NAN, 0};
}

static tq_hybrid_row zeros(size_t n, int8_t *quantized)
{
    memset(quantized, 0, n);
    return (tq_hybrid_row){1, 0};
}

static inline int32_t clamp(int32_t x, int32_t low, int32_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* `inverse` comes from the values' range, so |value * inverse| is at most 255 and a rounding error.  Whole blocks: adds
   0.5 in float32 and drops the fraction, which rounds 0.49999997 to 1.  Remainder: nearest, ties away from zero. */
#define QUANTIZE_BLOCKS(isa, target)                                                                           \
    target static void quantize_blocks_##isa(const float *values, size_t n, float inverse, int32_t zero_point, \
                                             int32_t low, int8_t *quantized)                                   \
    {                                                                                                          \
        TQ_EACH (i, n) {                                                                                       \
            const float x = values[i] * inverse;                                                               \
            const int32_t rounded = (int32_t)(x + (x < 0 ? -0.5f : 0.5f));                                     \
            quantized[i] = (int8_t)clamp(rounded + zero_point, low, 127);                                      \
        }                                                                                                      \
    }
TQ_EVERY_ISA(QUANTIZE_BLOCKS)

static void quantize(const float *values, size_t n, float inverse, int32_t zero_point, int32_t low, int8_t *quantized)
{
    static void (*const bodies[TQ_ISAS])(const float *, size_t, float, int32_t, int32_t, int8_t *) =
        TQ_ISA_FUNCTIONS(quantize_blocks);
    const size_t whole = n - n % BLOCK;
    bodies[tq_isa()](values, whole, inverse, zero_point, low, quantized);
    for (size_t i = whole; i < n; i++)
        quantized[i] = (int8_t)clamp((int32_t)tq_round_f32(values[i] * inverse) + zero_point, low, 127);
}

tq_hybrid_row tq_hybrid_symmetric(const float *values, size_t n, int8_t *quantized)
{
    range r = range_of(values, n);
    float bound = -r.low > r.high ? -r.low : r.high;
    if (!r.finite)
        return non_finite(n, quantized);
    if (bound < SMALLEST_BOUND)
        return zeros(n, quantized);
    quantize(values, n, 127 / bound, 0, -127, quantized);
    return (tq_hybrid_row){bound / 127, 0};
}

tq_hybrid_row tq_hybrid_away(const float *values, size_t n, int8_t *quantized)
{
    range r = range_of(values, n);
    float bound = -r.low > r.high ? -r.low : r.high;
    if (!r.finite)
        return non_finite(n, quantized);
    if (bound < SMALLEST_BOUND)
        return zeros(n, quantized);
    const float inverse = (float)(127.0 / (double)bound);
    TQ_EACH (i, n)
        quantized[i] = (int8_t)clamp((int32_t)tq_round_f32(values[i] * inverse), -127, 127);
    return (tq_hybrid_row){(float)((double)bound / 127.0), 0};
}

/* The zero point, from the end of the range with the smaller rounding error. */
static int32_t nudged_zero_point(double low, double high, double scale)
{
    double from_low = -128 - low / scale, from_high = 127 - high / scale;
    double error_low = 128 + fabs(low / scale), error_high = 127 + fabs(high / scale);
    double zero_point = error_low < error_high ? from_low : from_high;
    return zero_point <= -128 ? -128 : zero_point >= 127 ? 127 : (int32_t)tq_round_f64(zero_point);
}

tq_hybrid_row tq_hybrid_asymmetric(const float *values, size_t n, int8_t *quantized)
{
    range r = range_of(values, n);
    if (!r.finite)
        return non_finite(n, quantized);
    if (-r.low < SMALLEST_BOUND && r.high < SMALLEST_BOUND)
        return zeros(n, quantized);
    float difference = r.high - r.low; /* in float32, as the reference on x86 */
    double width = difference <= FLT_MAX ? (double)difference : (double)r.high - (double)r.low;
    double scale = width / 255;
    tq_hybrid_row row = {(float)scale, nudged_zero_point(r.low, r.high, scale)};
    quantize(values, n, 1 / row.scale, row.zero_point, -128, quantized);
    return row;
}

/* The zero point in float32, rounded to nearest, ties to even. */
static int32_t even_zero_point(float low, float high)
{
    float zero_point = (-128 + low) + (127 + high) > 0 ? -128 - low : 127 - high;
    return (int32_t)rintf(zero_point < -128 ? -128 : zero_point > 127 ? 127 : zero_point);
}

/* All values in [-128, 127], ties to even. */
#define QUANTIZE_EVEN(isa, target)                                                                           \
    target static void quantize_even_##isa(const float *values, size_t n, float inverse, int32_t zero_point, \
                                           int8_t *quantized)                                                \
    {                                                                                                        \
        const float low = (float)(-128 - zero_point), high = (float)(127 - zero_point);                      \
        for (size_t i = 0; i < n; i++)                                                                       \
            quantized[i] = (int8_t)(tq_lane_round_even(values[i] * inverse, low, high) + zero_point);        \
    }
TQ_EVERY_ISA(QUANTIZE_EVEN)

tq_hybrid_row tq_hybrid_even(const float *values, size_t n, int8_t *quantized)
{
    static void (*const quantize_even[TQ_ISAS])(const float *, size_t, float, int32_t, int8_t *) =
        TQ_ISA_FUNCTIONS(quantize_even);
    range r = range_of(values, n);
    const float width = r.high - r.low, inverse = width > 0 ? 255 / width : 1;
    if (!r.finite || width > FLT_MAX)
        return non_finite(n, quantized);
    if (inverse > FLT_MAX)
        return zeros(n, quantized);
    tq_hybrid_row row = {1 / inverse, even_zero_point(r.low * inverse, r.high * inverse)};
    quantize_even[tq_isa()](values, n, inverse, row.zero_point, quantized);
    return row;
}

tq_hybrid_rule tq_hybrid_rule_of(const tq_node *node, bool asymmetric)
{
    if (node->numerics == TQ_NUMERICS_XNNPACK)
        return tq_hybrid_even;
    return asymmetric ? tq_hybrid_asymmetric : tq_hybrid_symmetric;
}

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
    scale_sums(o, o->count - STORED, STORED, fused, row_scale_last, last);
    for (size_t c = 0; c + STORED <= o->count; c += STORED) {
        scale_sums(o, c, STORED, fused, row_scale_last, y);
        memcpy(o->y + c, y, sizeof y);
    }
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
