/* SPDX-License-Identifier: Apache-2.0
 *
 * DIV of quantized values: the reciprocal of b - z2 in fixed point, and f32(s1 / f32(s2 so)).
 *
 * Source: LiteRT f6745779, tflite/kernels/div.cc.
 */
#include "ops/elementwise/binary_quantized.h"
#include "quant/fixed_math.h"

static int32_t divide(int32_t x, int32_t y, const tq_pair *p)
{
    int32_t dividend = x - p->zero_first, divisor = y - p->zero_second;
    int over, room;
    if (divisor < 0) {
        dividend = -dividend;
        divisor = -divisor;
    }
    int32_t inverse = tq_reciprocal((uint64_t)divisor, 31, &over);
    room = tq_leading_sign_bits(dividend);
    int32_t quotient = tq_q_mul(tq_shift_left_saturating(dividend, room), inverse);
    const tq_fixed by = {p->output.multiplier, p->output.shift - over - room, p->output.single};
    int32_t scaled = tq_multiply_fixed(quotient, by);
    return tq_requantize_fixed(scaled, p->zero_output, p->low, p->high);
}

TQ_PAIR_GENERAL(divide)

static tq_status eval_divide(tq_node *node, tq_error *error)
{
    const tq_tensor *divisors = node->in[1];
    const int32_t zero = tq_zero_point_of(divisors);
    size_t count = tq_tensor_count(divisors);
    for (size_t i = 0; i < count; i++)
        if (tq_integer_at(divisors, i) == zero)
            return tq_input_fail(node, 1, error,
                                 "is 0 at element %zu (quantized value %d), and DIV needs divisors other than 0", i,
                                 zero);
    return tq_pair_eval(node, error);
}

tq_status tq_prepare_div(tq_node *node, tq_error *error)
{
    if (!tq_pair_is_quantized(node))
        return tq_binary_prepare(node, error);
    TQ_TRY(tq_pair_check_types(node, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_pair_prepare(node, sizeof(tq_pair_state), error));
    for (int i = 0; i < 2; i++)
        TQ_TRY(tq_check_input_divisor(node, i, error));
    TQ_TRY(tq_check_output_divisor(node, error));
    tq_pair_state *s = node->state;
    float unit = tq_scale_of(node->in[1]) * tq_scale_of(node->out[0]);
    TQ_TRY(tq_fixed_find(node, tq_scale_of(node->in[0]) / unit, &s->p.output, error));
    s->walk.run = node->in[0]->type == TQ_TensorType_INT16 ? divide_16bit : divide_8bit;
    s->walk.cost = 20000;
    node->eval = eval_divide;
    return TQ_OK;
}
