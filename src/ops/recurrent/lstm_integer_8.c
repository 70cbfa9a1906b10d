/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of an LSTM whose products are int8 too: LSTM with 12 intermediate tensors.
 *
 *     x'       sat8(multiply(W (x - z_x), s_w * s_x / s_1) + z_1), h' likewise of R (h - z_h) with s_2 and z_2
 *     gate     sat16(multiply(x' - z_1, s_1 / s_0) + multiply(h' - z_2, s_2 / s_0)), normalized in float32, in Q12
 *     act      logistic and tanh in float32, cut off to Q15
 *     cell     as in lstm_integer.c, with a scale of 2^-15
 *     output   sat8(multiply(W R(output * tanh(c), 15) + b, s_w * 2^-15 / s_h) + z_h), the sum in 64 bits
 *
 * s_0, s_1, s_2 are the scales of three intermediate tensors a gate: of the sum, of x' and of h', in the order of the
 * gates.  Effective scales are computed in float32.  There is no input gate (the cell takes 1 - forget), no peephole;
 * there are layer normalizations and a projection.
 *
 * Source: LiteRT f6745779, tflite/kernels/lstm.cc, lstm_eval.cc, internal/reference/portable_tensor_utils.cc.  LiteRT
 * has two errors that change results, so they are reproduced here: the output gate's h' uses the modulation's z_1; and
 * its multiplier of s_2 / s_0 is the shift of the forget gate (an index passes the array's end, and the shifts follow
 * in memory), so that for ordinary scales the state does not reach the output gate.
 */
#include "ops/recurrent/lstm_integer_8.h"

#include <math.h>
#include <string.h>

#include "ops/check.h"
#include "ops/recurrent/lstm_integer_common.h"
#include "ops/scratch.h"

/* ---- prepare ---- */

/* The three intermediate tensors of a gate. */
enum { SUM, FROM_X, FROM_H, PARTS };

static tq_status check(const tq_node *node, const tq_lstm *l, tq_error *error)
{
    if (node->row.code != TQ_BuiltinOperator_LSTM)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "there are 12 intermediate tensors; this operator needs 5, and only LSTM may have 12");
    if (!l->cifg || l->gates[TQ_GATE_OUTPUT].peephole)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "with 12 intermediate tensors it must have no input gate and no peepholes");
    if (!l->gates[TQ_GATE_OUTPUT].norm || !l->projection)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "with 12 intermediate tensors it must have layer normalizations and a projection");
    if (tq_scale_of(l->cell_state) != 0x1p-15f)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "the cell state's scale is %g; it must be 2^-15",
                          (double)tq_scale_of(l->cell_state));
    return TQ_OK;
}

static tq_status prepare_part(tq_node *node, int gate, int part, float *scale, int32_t *zero_point, tq_error *error)
{
    size_t i = (size_t)(gate * PARTS + part);
    TQ_TRY(tq_lstm_intermediate(node, i, scale, zero_point, error));
    if (*zero_point < INT8_MIN || *zero_point > INT8_MAX)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "intermediate tensor %zu has the zero point %d; it needs one of int8", i, *zero_point);
    return TQ_OK;
}

static tq_status prepare_gate(tq_node *node, tq_lstm *l, int gate, tq_error *error)
{
    tq_lstm_gate *g = &l->gates[gate];
    float s_x = tq_scale_of(node->in[0]), s_h = tq_scale_of(l->output_state), sum, x, h;
    int32_t unused;
    TQ_TRY(prepare_part(node, gate, SUM, &sum, &unused, error));
    TQ_TRY(prepare_part(node, gate, FROM_X, &x, &g->x_zero_point, error));
    TQ_TRY(prepare_part(node, gate, FROM_H, &h, &g->h_zero_point, error));
    TQ_TRY(tq_lstm_multiplier(node, tq_scale_of(g->weights) * s_x / x, "a gate's input", &g->from_input, error));
    TQ_TRY(tq_lstm_multiplier(node, tq_scale_of(g->recurrent) * s_h / h, "a gate's state", &g->from_recurrent, error));
    TQ_TRY(tq_lstm_multiplier(node, x / sum, "a gate's sum", &g->x_to_sum, error));
    TQ_TRY(tq_lstm_multiplier(node, h / sum, "a gate's sum", &g->h_to_sum, error));
    TQ_TRY(tq_lstm_multiplier(node, tq_scale_of(g->norm), "a layer normalization", &g->norm_scale, error));
    TQ_TRY(tq_lstm_fold(node, g->weights, NULL, -tq_zero_point_of(node->in[0]), &g->first_bias, error));
    return tq_lstm_fold(node, g->recurrent, NULL, -tq_zero_point_of(l->output_state), &g->recurrent_bias, error);
}

/* LiteRT's two errors: see the top of the file. */
static void reproduce_litert_errors(tq_lstm *l)
{
    l->gates[TQ_GATE_OUTPUT].h_to_sum.multiplier = l->gates[TQ_GATE_FORGET].h_to_sum.shift;
    l->gates[TQ_GATE_OUTPUT].h_zero_point = l->gates[TQ_GATE_MODULATION].x_zero_point;
}

tq_status tq_lstm_prepare_integer_8(tq_node *node, tq_lstm *l, tq_error *error)
{
    TQ_TRY(check(node, l, error));
    for (int gate = TQ_GATE_FORGET; gate < TQ_GATES; gate++)
        TQ_TRY(prepare_gate(node, l, gate, error));
    reproduce_litert_errors(l);
    l->cell_shift = -15;
    l->cell_clip_q = l->cell_clip < 1 ? tq_lstm_clip_quantized(l->cell_clip, 0x1p-15f, INT16_MAX) : 0;
    l->projection_clip_q = tq_lstm_clip_quantized(l->projection_clip, tq_scale_of(node->out[0]), INT8_MAX);
    float scale = (float)(tq_scale_of(l->projection) * 0x1p-15 / (double)tq_scale_of(l->output_state));
    TQ_TRY(tq_lstm_multiplier(node, scale, "the projection", &l->to_projected, error));
    return tq_lstm_fold(node, l->projection, l->projection_bias, 0, &l->projected_bias, error);
}

/* ---- gates ---- */

typedef struct step {
    const tq_lstm *l;
    int16_t *gates; /* [gate][batch][cell] */
} step;

static void sum_of_gate(const tq_lstm_gate *g, const int32_t *from_x, const int32_t *from_h, size_t count,
                        int16_t *sums)
{
    for (size_t i = 0; i < count; i++) {
        int8_t x = tq_lstm_saturate_8((int64_t)tq_multiply_fixed(from_x[i], g->from_input) + g->x_zero_point);
        int8_t h = tq_lstm_saturate_8((int64_t)tq_multiply_fixed(from_h[i], g->from_recurrent) + g->h_zero_point);
        sums[i] = tq_lstm_saturate_16((int64_t)tq_multiply_fixed(h - g->h_zero_point, g->h_to_sum) +
                                      tq_multiply_fixed(x - g->x_zero_point, g->x_to_sum));
    }
}

/* NaN gives 0, as in LiteRT: the variance of equal values may be rounded to below 0. */
static int16_t saturate_f32(float x)
{
    return x >= 32767.0f ? INT16_MAX : x <= -32768.0f ? INT16_MIN : x == x ? (int16_t)x : 0;
}

static void normalize(const tq_lstm_gate *g, int16_t *row, size_t n)
{
    const int16_t *weights = g->norm->data;
    const int32_t *bias = g->bias->data;
    float scale = (float)ldexp(g->norm_scale.multiplier, g->norm_scale.shift - 31), bias_scale = 0x1p-10f * scale;
    float sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (float)row[i];
        squares += (float)row[i] * (float)row[i];
    }
    float mean = sum / (float)n, variance = squares / (float)n - mean * mean;
    float inverse = 1.0f / sqrtf(variance == 0 ? 1e-8f : variance);
    for (size_t i = 0; i < n; i++) {
        float value = ((float)row[i] - mean) * inverse * weights[i] * scale + (float)bias[i] * bias_scale;
        row[i] = saturate_f32(tq_round_f32(value * 0x1p12f));
    }
}

static void finish_gate(const step *s, int gate)
{
    const tq_lstm *l = s->l;
    size_t size = l->batches * l->cells;
    int16_t *values = s->gates + (size_t)gate * size;
    for (size_t b = 0; b < l->batches; b++)
        normalize(&l->gates[gate], values + b * l->cells, l->cells);
    for (size_t i = 0; i < size; i++) {
        float x = (float)values[i] * 0x1p-12f;
        values[i] = saturate_f32((gate == TQ_GATE_MODULATION ? tanhf(x) : 1.0f / (1.0f + expf(-x))) * 0x1p15f);
    }
}

/* ---- output ---- */

static int8_t project(const tq_lstm *l, const int16_t *hidden, size_t row)
{
    const int8_t *weights = (const int8_t *)l->projection->data + row * l->cells;
    int64_t sum = l->projected_bias[row];
    for (size_t i = 0; i < l->cells; i++)
        sum += hidden[i] * weights[i];
    int64_t q = (int64_t)tq_multiply_i64(sum, l->to_projected.multiplier, l->to_projected.shift) +
                tq_zero_point_of(l->output_state);
    return (int8_t)tq_lstm_clipped(tq_lstm_saturate_8(q), l->projection_clip_q);
}

/* Writes the output gate times tanh(c) over the gate, then projects it. */
static void write_output(const step *s)
{
    const tq_lstm *l = s->l;
    size_t size = l->batches * l->cells;
    const int16_t *c = l->cell_state->data;
    int16_t *gate = s->gates + TQ_GATE_OUTPUT * size;
    for (size_t i = 0; i < size; i++) {
        int16_t value = saturate_f32(tanhf((float)c[i] * 0x1p-15f) * 0x1p15f);
        gate[i] = (int16_t)tq_rounding_divide_by_pot(gate[i] * value, 15);
    }
    for (size_t b = 0; b < l->batches; b++)
        for (size_t o = 0; o < l->outputs && !tq_stop_after(l->cells); o++)
            ((int8_t *)l->output_state->data)[b * l->outputs + o] = project(l, gate + b * l->cells, o);
}

void tq_lstm_step_integer_8(const tq_node *node, const tq_lstm *l, const tq_sequence *x, const tq_sequence *aux,
                            const tq_sequence *out, size_t at)
{
    (void)aux;
    step s = {l, tq_scratch_at(node, l->gates_at)};
    tq_lstm_sum_gates(node, l, (const int8_t *)x->data + at * x->step_size, x->batch_size, sum_of_gate, s.gates);
    for (int gate = TQ_GATE_FORGET; gate < TQ_GATES; gate++)
        finish_gate(&s, gate);
    tq_lstm_update_cell(l, s.gates);
    write_output(&s);
    for (size_t b = 0; b < l->batches; b++)
        memcpy((int8_t *)out->data + at * out->step_size + b * out->batch_size,
               (const int8_t *)l->output_state->data + b * l->outputs, l->outputs);
}
