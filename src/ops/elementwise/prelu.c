/* SPDX-License-Identifier: Apache-2.0
 *
 * PRELU: x, or below zero x times a slope that broadcasts.
 *
 *   quantized   x >= 0: MBQM(x, f32(si / so)); else MBQM(x slope, f32(f32(si sa) / so)), with x and slope less their
 *               zero points.  The slope of INT16 is INT8, as in the runtime, or INT16, which the runtime misreads.
 * Source: LiteRT f6745779, tflite/kernels/activations.cc, internal/reference/prelu.h.
 */
#include "ops/elementwise/binary_quantized.h"

/* Of UINT8, zero points and bounds are less by 128, as in binary_quantized.h. */
typedef struct slopes {
    uint8_t flip;
    int32_t zero_in, zero_slope, zero_out, low, high;
    tq_fixed positive, negative;
    tq_lane_fixed lane_positive, lane_negative;
} slopes;

typedef struct state {
    tq_broadcast walk;
    slopes p;
} state;

static inline int32_t prelu(int32_t x, int32_t slope, const slopes *p)
{
    int32_t value = x - p->zero_in;
    int32_t y = value >= 0 ? tq_multiply_fixed(value, p->positive)
                           : tq_multiply_fixed(value * (slope - p->zero_slope), p->negative);
    return tq_requantize_fixed(y, p->zero_out, p->low, p->high);
}

TQ_BODY int32_t lane_prelu(int32_t x, int32_t slope, const slopes *p)
{
    int32_t value = x - p->zero_in;
    int32_t above = tq_lane_multiply(value, p->lane_positive);
    int32_t below = tq_lane_multiply(value * (slope - p->zero_slope), p->lane_negative);
    return tq_lane_quantized(value >= 0 ? above : below, p->low - p->zero_out, p->high - p->zero_out, p->zero_out);
}

TQ_ISA_DEFINE(TQ_BROADCAST_2, prelu_float, float, float, float, slopes, x >= 0 ? x : x * y)
TQ_ISA_DEFINE(TQ_BROADCAST_2, lane_8bit, uint8_t, uint8_t, uint8_t, slopes, TQ_PAIR_BYTES(lane_prelu))
TQ_ISA_DEFINE(TQ_BROADCAST_2, lane_int16, int16_t, int8_t, int16_t, slopes, lane_prelu(x, y, &p))
static const tq_broadcast_fn prelu_float[TQ_ISAS] = TQ_ISA_FUNCTIONS(prelu_float);
static const tq_broadcast_fn lane_8bit[TQ_ISAS] = TQ_ISA_FUNCTIONS(lane_8bit);
static const tq_broadcast_fn lane_int16[TQ_ISAS] = TQ_ISA_FUNCTIONS(lane_int16);
TQ_BROADCAST_2_SMALL(prelu_8bit, uint8_t, uint8_t, uint8_t, slopes, TQ_PAIR_BYTES(prelu))
TQ_BROADCAST_2_SMALL(prelu_int16, int16_t, int8_t, int16_t, slopes, prelu(x, y, &p))
TQ_BROADCAST_2_SMALL(prelu_wide_int16, int16_t, int16_t, int16_t, slopes, prelu(x, y, &p))

/* lanes: tq_lane_fits holds for both multipliers. */
static tq_broadcast_fn choose(int32_t type, int32_t slope, bool lanes)
{
    switch (type) {
    case TQ_TensorType_FLOAT32: return prelu_float[tq_isa()];
    case TQ_TensorType_INT8:
    case TQ_TensorType_UINT8: return lanes ? lane_8bit[tq_isa()] : prelu_8bit;
    }
    if (slope == TQ_TensorType_INT16)
        return prelu_wide_int16;
    return lanes ? lane_int16[tq_isa()] : prelu_int16;
}

/* Bounds: 2^11 and 2^22, or 2^15 and 2^26, of INT16 with zero points 2^17 and 2^28. */
static bool fits_lanes(const slopes *p, int32_t type)
{
    const int64_t wide = p->zero_in == 0 ? 1 << 15 : 1 << 17, most = type == TQ_TensorType_INT16 ? wide : 1 << 11;
    return tq_lane_fits(p->positive, most) && tq_lane_fits(p->negative, most << 11);
}

static tq_status find_slopes(const tq_node *node, slopes *p, tq_error *error)
{
    TQ_TRY(tq_check_input_scale(node, 0, error));
    TQ_TRY(tq_check_input_scale(node, 1, error));
    TQ_TRY(tq_check_output_scale(node, 0, error));
    float in = tq_scale_of(node->in[0]), slope = tq_scale_of(node->in[1]), out = tq_scale_of(node->out[0]);
    p->flip = node->in[0]->type == TQ_TensorType_UINT8 ? 128 : 0;
    p->zero_in = tq_zero_point_of(node->in[0]) - p->flip;
    p->zero_slope = tq_zero_point_of(node->in[1]) - p->flip;
    p->zero_out = tq_zero_point_of(node->out[0]) - p->flip;
    /* A slope of INT16: 2^16 times 2^15 fits int32 only without zero points. */
    if (node->in[1]->type == TQ_TensorType_INT16 && (p->zero_in != 0 || p->zero_slope != 0))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "a slope of INT16 needs zero points of 0, not %d and %d",
                          p->zero_in, p->zero_slope);
    tq_quantized_range(node->out[0]->type, &p->low, &p->high);
    p->low -= p->flip;
    p->high -= p->flip;
    TQ_TRY(tq_fixed_find(node, in / out, &p->positive, error));
    float product = in * slope;
    TQ_TRY(tq_fixed_find(node, product / out, &p->negative, error));
    p->lane_positive = tq_lane_fixed_of(p->positive);
    p->lane_negative = tq_lane_fixed_of(p->negative);
    return TQ_OK;
}

tq_status tq_prepare_prelu(tq_node *node, tq_error *error)
{
    state *s;
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16), error));
    int32_t type = node->in[0]->type;
    TQ_TRY(tq_check_input(node, 1, type == TQ_TensorType_INT16 ? TQ_T(INT8) | TQ_T(INT16) : tq_type_set(type), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    if (type != TQ_TensorType_FLOAT32)
        TQ_TRY(find_slopes(node, &s->p, error));
    TQ_TRY(tq_broadcast_prepare(node, 0, 2, &s->walk, error));
    if (!tq_shape_equal(&node->in[0]->shape, &node->out[0]->shape))
        return tq_input_fail(node, 1, error, "has a shape that does not broadcast to that of input 0");
    s->walk.params = &s->p;
    s->walk.run = choose(type, node->in[1]->type, fits_lanes(&s->p, type));
    s->walk.cost = type == TQ_TensorType_FLOAT32 ? 70 : 300;
    node->eval = tq_broadcast_eval;
    node->in_place = true;
    return TQ_OK;
}
