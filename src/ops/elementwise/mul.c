/* SPDX-License-Identifier: Apache-2.0
 *
 * MUL of quantized values: MBQM((a - z1)(b - z2), f32(f32(s1 s2) / so)) + zo; INT16 to 8 bits: the high product in Q15.
 *
 * XNNPACK's, of 8 bits: even(f32((a - z1)(b - z2) f32(f32(s1 s2) / so))) + zo; for a tensor with itself a table
 * (lookup_table.h).
 *
 * Source: LiteRT f6745779, tflite/kernels/mul.cc; XNNPACK 75db3c09, src/microparams-init.c, src/qs8-vmul.
 */
#include <math.h>

#include "ops/elementwise/lookup_table.h"
#include "ops/elementwise/binary_quantized.h"
#include "quant/fixed_math.h"

TQ_BODY int32_t multiply(int32_t x, int32_t y, const tq_pair *p)
{
    return tq_pair_output((x - p->zero_first) * (y - p->zero_second), p);
}

TQ_BODY int32_t lane_mul(int32_t x, int32_t y, const tq_pair *p)
{
    return tq_pair_lane_output((x - p->zero_first) * (y - p->zero_second), p);
}

/* INT16 in Q15 to 8 bits: of the quantization, only the output's zero point and the activation's bounds are read. */
TQ_BODY int32_t multiply_q15(int32_t x, int32_t y, const tq_pair *p)
{
    int32_t high = x == INT16_MIN && y == INT16_MIN ? INT16_MAX : (x * y + (1 << 14)) >> 15;
    return tq_lane_quantized(tq_rounding_divide_by_pot(high, 8), p->least, p->most, p->zero_output);
}

TQ_PAIR_DEFINE(multiply, lane_mul)
TQ_BROADCAST_2_SMALL(multiply_q15_int8, int16_t, int16_t, int8_t, tq_pair, multiply_q15(x, y, &p))
TQ_BROADCAST_2_SMALL(multiply_q15_uint8, int16_t, int16_t, uint8_t, tq_pair, multiply_q15(x, y, &p))

/* XNNPACK's */
TQ_BODY int32_t lane_even_mul(int32_t x, int32_t y, const tq_pair *p)
{
    float product = (float)((x - p->zero_first) * (y - p->zero_second)) * p->by;
    return tq_lane_round_even(product, (float)p->least, (float)p->most) + p->zero_output;
}

TQ_ISA_DEFINE(TQ_PAIR_8BIT, lane_even_mul, lane_even_mul)
static const tq_broadcast_fn even_mul_loops[TQ_ISAS] = TQ_ISA_FUNCTIONS(lane_even_mul);

static float real_square(float x, const void *params)
{
    (void)params;
    return x * x;
}

/* XNNPACK's MUL of a tensor with itself.  (Where a table computes several operators at once, MUL is computed as for two
   tensors.) */
static tq_status prepare_square(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input_scale(node, 0, error));
    TQ_TRY(tq_check_output_scale(node, 0, error));
    TQ_TRY(tq_lookup_prepare_real(node, real_square, NULL, error));
    int32_t low, high;
    tq_activation_range(node, tq_binary_activation(node), &low, &high);
    tq_lookup_clamp(node, low, high);
    return TQ_OK;
}

/* The kernel from INT16 to 8 bits takes the lesser of the upper bound first: where the zero point lies outside the
   type, every value becomes the lower bound, and is cut to the type. */
static void bound_narrow(const tq_node *node, tq_pair *p)
{
    const tq_tensor *out = node->out[0];
    int32_t low, high;
    float least, most;
    tq_quantized_range(out->type, &low, &high);
    tq_activation_range_f32(node, tq_binary_activation(node), &least, &most);
    low = tq_quantize_away(least, tq_scale_of(out), p->zero_output, low, INT32_MAX);
    high = tq_quantize_away(most, tq_scale_of(out), p->zero_output, INT32_MIN, high);
    p->low = low <= high ? low : tq_value_cut(out->type, low);
    p->high = low <= high ? high : p->low;
    p->least = p->low - p->zero_output;
    p->most = p->high - p->zero_output;
}

tq_status tq_prepare_mul(tq_node *node, tq_error *error)
{
    const unsigned eight_bits = TQ_T(INT8) | TQ_T(UINT8);
    if (!tq_pair_is_quantized(node))
        return tq_binary_prepare(node, error);
    TQ_TRY(tq_pair_check_types(node, error));
    int32_t type = node->in[0]->type;
    TQ_TRY(tq_check_output(node, 0, type == TQ_TensorType_INT16 ? TQ_T(INT16) | eight_bits : tq_type_set(type), error));
    if (tq_pair_is_xnnpack(node) && node->in[0] == node->in[1] && !node->tabulated)
        return prepare_square(node, error);
    TQ_TRY(tq_pair_prepare(node, sizeof(tq_pair_state), error));
    tq_pair_state *s = node->state;
    if (node->out[0]->type == TQ_TensorType_INT16)
        TQ_TRY(tq_pair_check_symmetric(node, error));
    if (type != node->out[0]->type) {
        bound_narrow(node, &s->p);
        s->walk.run = node->out[0]->type == TQ_TensorType_INT8 ? multiply_q15_int8 : multiply_q15_uint8;
        return TQ_OK;
    }
    if (tq_pair_is_xnnpack(node)) {
        const float first = tq_scale_of(node->in[0]), second = tq_scale_of(node->in[1]);
        s->p.by = tq_even_multiplier(first, second, tq_scale_of(node->out[0]));
        s->walk.run = even_mul_loops[tq_isa()];
        if (!isfinite(s->p.by))
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "its scales' ratio is %g; it needs to be finite", s->p.by);
        return tq_pair_note_map(node, error);
    }
    TQ_TRY(tq_check_output_divisor(node, error));
    float product = tq_scale_of(node->in[0]) * tq_scale_of(node->in[1]);
    TQ_TRY(tq_fixed_find(node, product / tq_scale_of(node->out[0]), &s->p.output, error));
    s->p.lane_output = tq_lane_fixed_of(s->p.output);
    int64_t most = type == TQ_TensorType_INT16 ? (int64_t)1 << 30 : 2047 * 2047;
    s->walk.run = tq_pair_choose(&multiply_loops, type, tq_lane_fits(s->p.output, most));
    return tq_pair_note_map(node, error);
}
