/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of an LSTM in integers: int8 x, h and weights, int16 gates and cells.
 *
 *     gate     sat16(multiply(W x + b', s_w * s_x / s_g)), then sat16(gate + multiply(R h + b'', s_r * s_h / s_g)),
 *              then with peepholes sat16(gate + multiply(P * c, 2^shift * s_p / s_g)); b' and b'' fold in zero points
 *     s_g      2^-12, or with layer normalization the scale of intermediate tensor 0 to 3
 *     norm     in Q10: mean, variance and inverse root as below
 *     act      logistic and tanh of Q3, int16 (quant/fixed_math_16.h)
 *     cell     sat16(R(forget * c, 15) + R(input * modulation, 30 + shift)), s_c = 2^shift
 *     output   sat8(multiply(output * tanh(c), 2^-30 / s_hidden) + z), tanh of Q(15 + shift), s_hidden the
 *              scale of intermediate tensor 4; projected: sat8(multiply(W hidden + b, s_w * s_hidden / s_h) + z_h)
 * All effective scales are computed in float32.
 *
 * Source: LiteRT f6745779, tflite/kernels/unidirectional_sequence_lstm.cc, lstm_eval.cc,
 * internal/reference/portable_tensor_utils.cc.  In LiteRT, peepholes of a projected LSTM reach only as many cells as
 * there are outputs, and a cell state scale that is no power of two is accepted.
 */
#include "ops/recurrent/lstm_integer.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "kernels/arrays/fixed_16.h"
#include "ops/check.h"
#include "ops/recurrent/lstm_integer_8.h"
#include "ops/recurrent/lstm_integer_common.h"
#include "ops/scratch.h"
#include "quant/fixed_math.h"
#include "quant/fixed_math_16.h"

enum { HIDDEN = 4 }; /* index of the intermediate tensor */

/* ---- prepare ---- */

static tq_status prepare_gate(tq_node *node, tq_lstm *l, int gate, tq_error *error)
{
    tq_lstm_gate *g = &l->gates[gate];
    float scale = 0x1p-12f, s_x = tq_scale_of(node->in[0]), s_h = tq_scale_of(l->output_state);
    int32_t unused;
    if (g->norm)
        TQ_TRY(tq_lstm_intermediate(node, (size_t)gate, &scale, &unused, error));
    TQ_TRY(tq_lstm_multiplier(node, tq_scale_of(g->weights) * s_x / scale, "a gate's input", &g->from_input, error));
    TQ_TRY(
        tq_lstm_multiplier(node, tq_scale_of(g->recurrent) * s_h / scale, "a gate's state", &g->from_recurrent, error));
    if (g->peephole)
        TQ_TRY(tq_lstm_multiplier(node, (float)(ldexp(tq_scale_of(g->peephole), l->cell_shift) / scale), "a peephole",
                                  &g->from_cell, error));
    if (g->norm) {
        float s_norm = tq_scale_of(g->norm), guard = 10000 * s_norm;
        TQ_TRY(tq_lstm_multiplier(node, s_norm, "a layer normalization", &g->norm_scale, error));
        g->norm_scale.shift += 12;
        g->variance_guard = guard < 1 ? 1 : guard < 0x1p31f ? (int32_t)guard : INT32_MAX;
    }
    TQ_TRY(tq_lstm_fold(node, g->weights, g->norm ? NULL : g->bias, -tq_zero_point_of(node->in[0]), &g->first_bias,
                        error));
    return tq_lstm_fold(node, g->recurrent, NULL, -tq_zero_point_of(l->output_state), &g->recurrent_bias, error);
}

/* The cell state's scale must be 2^shift, within a thousandth, with 0 to 6 integer bits. */
static tq_status find_cell_shift(const tq_node *node, tq_lstm *l, tq_error *error)
{
    float scale = tq_scale_of(l->cell_state);
    float log2_scale = scale > 0 ? logf(scale) * (1.0f / logf(2.0f)) : NAN, rounded = tq_round_f32(log2_scale);
    if (!(fabsf(log2_scale - rounded) < 1e-3f) || !(rounded >= -15 && rounded <= -9))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "the cell state's scale is %g; it must be a power of two from 2^-15 to 2^-9", (double)scale);
    l->cell_shift = (int32_t)rounded;
    return TQ_OK;
}

enum { OUTPUT_STATE = 18 };

static tq_status check(const tq_node *node, const tq_lstm *l, tq_error *error)
{
    TQ_TRY(tq_check_input_scale(node, 0, error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(INT8), error));
    TQ_TRY(tq_check_quantized_output(node, 0, error));
    if (l->output_state->quantization.count == 0 || !(tq_scale_of(l->output_state) > 0))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "the output state has no scale");
    TQ_TRY(tq_check_input_scale(node, OUTPUT_STATE, error));
    if (l->activation != TQ_ActivationFunctionType_TANH)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "activation is %lld; with int8 it must be TANH (4)",
                          (long long)l->activation);
    return TQ_OK;
}

tq_status tq_lstm_prepare_integer(tq_node *node, tq_lstm *l, tq_error *error)
{
    float s_hidden = 0;
    uint32_t intermediates = tq_get_vector(&node->row.table, TQ_Operator_intermediates).count;
    TQ_TRY(check(node, l, error));
    l->products_8 = intermediates == 12;
    if (l->products_8)
        return tq_lstm_prepare_integer_8(node, l, error);
    if (intermediates != 5)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "there are %u intermediate tensors; with int8 it has 5 or 12",
                          (unsigned)intermediates);
    TQ_TRY(find_cell_shift(node, l, error));
    for (int gate = tq_lstm_first_gate(l); gate < TQ_GATES; gate++)
        TQ_TRY(prepare_gate(node, l, gate, error));
    TQ_TRY(tq_lstm_intermediate(node, HIDDEN, &s_hidden, &l->hidden_zero_point, error));
    TQ_TRY(tq_lstm_multiplier(node, (float)(0x1p-15 / (double)s_hidden * 0x1p-15), "the output", &l->to_hidden, error));
    l->cell_clip_q = tq_lstm_clip_quantized(l->cell_clip, tq_scale_of(l->cell_state), INT16_MAX);
    l->projection_clip_q = tq_lstm_clip_quantized(l->projection_clip, tq_scale_of(node->out[0]), INT8_MAX);
    if (!l->projection)
        return TQ_OK;
    TQ_TRY(tq_lstm_multiplier(node, tq_scale_of(l->projection) * s_hidden / tq_scale_of(l->output_state),
                              "the projection", &l->to_projected, error));
    return tq_lstm_fold(node, l->projection, l->projection_bias, l->hidden_zero_point, &l->projected_bias, error);
}

/* ---- gates ---- */

typedef struct step {
    const tq_node *node;
    const tq_lstm *l;
    int16_t *gates; /* [gate][batch][cell] */
} step;

static void sum_of_gate(const tq_lstm_gate *g, const int32_t *from_x, const int32_t *from_h, size_t count,
                        int16_t *sums)
{
    for (size_t i = 0; i < count; i++) {
        const int16_t x = tq_lstm_saturate_16(tq_multiply_fixed(from_x[i], g->from_input));
        sums[i] = tq_lstm_saturate_16((int64_t)tq_multiply_fixed(from_h[i], g->from_recurrent) + x);
    }
}

/* TFLite rounds ties up in whole groups of sixteen cells of a batch, and away from zero in the remaining cells. */
static void add_peephole(const tq_lstm *l, const tq_lstm_gate *g, int16_t *gate)
{
    const int16_t *c = l->cell_state->data, *w = g->peephole->data;
    size_t whole = l->cells / 16 * 16;
    for (size_t i = 0; i < l->batches * l->cells; i++) {
        size_t cell = i % l->cells;
        int32_t product = w[cell] * c[i];
        int32_t by_cell = cell < whole ? tq_multiply_up(product, g->from_cell.multiplier, g->from_cell.shift)
                                       : tq_multiply_fixed(product, g->from_cell);
        gate[i] = tq_lstm_saturate_16((int64_t)by_cell + gate[i]);
    }
}

/* The inverse deviation of n values as a multiplier, and their mean, times 1024. */
static tq_fixed deviation(const int16_t *values, size_t n, int32_t guard, bool single, int32_t *mean)
{
    int64_t sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += values[i];
        squares += (int32_t)values[i] * values[i];
    }
    /* |sum| and squares are below 2^15 n and 2^30 n, and the factor is at most 2^20 / n: no overflow. */
    *mean = (int32_t)(sum * 1024 / (int64_t)n);
    int64_t variance = (squares * ((int64_t)(1 << 20) / (int64_t)n) - (int64_t)*mean * *mean) / (1 << 20);
    int32_t multiplier;
    int shift;
    tq_inverse_sqrt(variance < 1 ? (uint64_t)guard : (uint64_t)(uint32_t)variance, &multiplier, &shift);
    return (tq_fixed){multiplier, shift, single};
}

static void normalize(const tq_lstm *l, const tq_lstm_gate *g, int16_t *gate)
{
    const int16_t *coefficient = g->norm->data;
    const int32_t *bias = g->bias->data;
    for (size_t b = 0; b < l->batches; b++, gate += l->cells) {
        int32_t mean;
        tq_fixed inverse = deviation(gate, l->cells, g->variance_guard, g->norm_scale.single, &mean);
        for (size_t i = 0; i < l->cells; i++) {
            int32_t rescaled = tq_multiply_fixed(1024 * gate[i] - mean, inverse);
            int32_t sum = tq_wrap_i32((int64_t)rescaled * coefficient[i] + bias[i]);
            int32_t rounded = (int32_t)(((int64_t)sum + (sum > 0 ? 512 : -512)) / 1024);
            gate[i] = tq_lstm_saturate_16(tq_multiply_fixed(rounded, g->norm_scale));
        }
    }
}

static void finish_gate(const step *s, int gate)
{
    const tq_lstm *l = s->l;
    size_t size = l->batches * l->cells;
    int16_t *values = s->gates + (size_t)gate * size;
    if (l->gates[gate].peephole)
        add_peephole(l, &l->gates[gate], values);
    if (l->gates[gate].norm)
        normalize(l, &l->gates[gate], values);
    if (gate == TQ_GATE_MODULATION)
        tq_tanh_q16(values, values, size, 3, 0);
    else
        tq_logistic_q16(values, values, size);
}

/* ---- cells and output ---- */

static void project(const tq_lstm *l, const int8_t *hidden, int8_t *h)
{
    size_t work = 0;
    const int32_t zero_point = tq_zero_point_of(l->output_state);
    int32_t sums[TQ_LSTM_CELLS];
    for (size_t b = 0; b < l->batches; b++, hidden += l->cells, h += l->outputs)
        for (size_t o = 0, n; o < l->outputs && !tq_stop_count(&work, TQ_LSTM_CELLS * l->cells / 8); o += n) {
            n = tq_min_size(TQ_LSTM_CELLS, l->outputs - o);
            tq_lstm_products(l->projection, l->projected_bias, hidden, l->cells, o, n, sums);
            for (size_t i = 0; i < n; i++) {
                const int64_t q = (int64_t)tq_multiply_fixed(sums[i], l->to_projected) + zero_point;
                h[o + i] = (int8_t)tq_lstm_clipped(tq_lstm_saturate_8(q), l->projection_clip_q);
            }
        }
}

static void write_output(const step *s, const tq_sequence *out, size_t at)
{
    const tq_lstm *l = s->l;
    size_t size = l->batches * l->cells;
    const int16_t *gate = s->gates + TQ_GATE_OUTPUT * size, *c = l->cell_state->data;
    int8_t *h = l->output_state->data, *hidden = l->projection ? tq_scratch_at(s->node, l->hidden_quantized_at) : h;
    int32_t zero_point = l->projection ? -l->hidden_zero_point : l->hidden_zero_point;
    for (size_t begin = 0; begin < size; begin += TQ_LSTM_CELLS) {
        int16_t squashed[TQ_LSTM_CELLS];
        const size_t end = tq_min_size(size, begin + TQ_LSTM_CELLS);
        tq_tanh_q16(c + begin, squashed, end - begin, 15 + l->cell_shift, 0);
        for (size_t i = begin; i < end; i++) {
            int32_t value = gate[i] * squashed[i - begin];
            hidden[i] = tq_lstm_saturate_8((int64_t)tq_multiply_fixed(value, l->to_hidden) + zero_point);
        }
    }
    if (l->projection)
        project(l, hidden, h);
    for (size_t b = 0; b < l->batches; b++)
        memcpy((int8_t *)out->data + at * out->step_size + b * out->batch_size, h + b * l->outputs, l->outputs);
}

void tq_lstm_step_integer(const tq_node *node, const tq_lstm *l, const tq_sequence *x, const tq_sequence *aux,
                          const tq_sequence *out, size_t at)
{
    (void)aux;
    step s = {node, l, tq_scratch_at(node, l->gates_at)};
    tq_lstm_sum_gates(node, l, (const int8_t *)x->data + at * x->step_size, x->batch_size, sum_of_gate, s.gates);
    for (int gate = tq_lstm_first_gate(l); gate <= TQ_GATE_MODULATION; gate++)
        finish_gate(&s, gate);
    tq_lstm_update_cell(l, s.gates);
    finish_gate(&s, TQ_GATE_OUTPUT);
    write_output(&s, out, at);
}
