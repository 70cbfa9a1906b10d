/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM with kernel_type BASIC: one step.  Inputs x [n, inputs], h [n, cells], weights [4 cells, inputs + cells],
 * bias [4 cells], c [n, cells]; outputs h, c, and two temporary results: x beside h, and the sums of the gates.
 * The gates have the order input, modulation, forget, output:
 *
 *     c = logistic(input) * tanh(modulation) + logistic(forget) * c,  h = logistic(output) * tanh(c)
 *
 * The new h and c are also written over the inputs h and c where these are variables.
 *
 *     float32
 *     uint8       x, h and weights UINT8; x and h with scale 1/128, zero point 128; bias INT32; c INT16 in Q4;
 *                 sums INT16 in Q3 = sat16(up(bias + sum (x - 128)(w - z_w), f32(4096 * s_bias))), `up` rounds
 *                 ties up, as LiteRT's matrix product does; logistic and tanh of quant/fixed_math_16.h
 *
 * Source: LiteRT f6745779, tflite/kernels/lstm.cc, internal/optimized/optimized_ops.h (LstmCell, the
 * only implementation).
 */
#include "ops/recurrent/lstm_basic.h"

#include <math.h>
#include <string.h>

#include "ops/check.h"
#include "ops/elementwise/eigen_functions.h"
#include "ops/products/dot.h"
#include "ops/recurrent/ordered_product.h"
#include "ops/quantized.h"
#include "quant/fixed_math_16.h"

enum { INPUT, H, WEIGHTS, BIAS, C, INPUTS };
enum { OUT_H, OUT_C, JOINED, SUMS };
enum { GATE_INPUT, GATE_MODULATION, GATE_FORGET, GATE_OUTPUT };

typedef struct cell {
    size_t batches, inputs, cells;
    tq_fixed to_sums;
} cell;

static void join(const tq_node *node, const cell *l, size_t size)
{
    const char *x = node->in[INPUT]->data, *h = node->in[H]->data;
    char *to = node->out[JOINED]->data;
    for (size_t b = 0; b < l->batches; b++) {
        memcpy(to, x + b * l->inputs * size, l->inputs * size);
        memcpy(to + l->inputs * size, h + b * l->cells * size, l->cells * size);
        to += (l->inputs + l->cells) * size;
    }
}

static void store_state(tq_tensor *state, const tq_tensor *output)
{
    if (state->storage == TQ_STORAGE_VARIABLE)
        memcpy(state->data, output->data, output->bytes);
}

static tq_status finish(tq_node *node)
{
    store_state(node->in[H], node->out[OUT_H]);
    store_state(node->in[C], node->out[OUT_C]);
    return TQ_OK;
}

static void step_floats(const cell *l, const float *sums, size_t b, const float *c, float *out_c, float *out_h)
{
    for (size_t i = 0; i < l->cells; i++) {
        /* the aligned groups of four, as in tq_eigen_logistic_row */
        size_t at = b * l->cells + i, first = (4 - b * l->cells % 4) % 4, end = first;
        if (l->cells > first)
            end = first + (l->cells - first) / 4 * 4;
        float (*logistic)(float) = i >= first && i < end ? tq_eigen_logistic : tq_eigen_logistic_scalar;
        float added = logistic(sums[GATE_INPUT * l->cells + i]) * tq_eigen_tanh(sums[GATE_MODULATION * l->cells + i]);
        out_c[at] = added + logistic(sums[GATE_FORGET * l->cells + i]) * c[at];
        out_h[at] = logistic(sums[GATE_OUTPUT * l->cells + i]) * tq_eigen_tanh(out_c[at]);
    }
}

static tq_status eval_floats(tq_node *node, tq_error *error)
{
    (void)error;
    const cell *l = node->state;
    const float *weights = node->in[WEIGHTS]->data, *bias = node->in[BIAS]->data, *c = node->in[C]->data;
    const float *joined = node->out[JOINED]->data;
    float *sums = node->out[SUMS]->data, *out_h = node->out[OUT_H]->data, *out_c = node->out[OUT_C]->data;
    size_t width = l->inputs + l->cells;
    bool in_lanes = tq_ordered_in_lanes(4 * l->cells, l->batches, width);
    join(node, l, sizeof(float));
    for (size_t b = 0; b < l->batches; b++) {
        float *gate = sums + b * 4 * l->cells;
        memcpy(gate, bias, 4 * l->cells * sizeof *gate);
        for (size_t r = 0; r < 4 * l->cells && !tq_stop_after(width); r++) /* a row is a matrix of one column */
            tq_ordered_product(weights + r * width, 1, 1, joined + b * width, width, in_lanes, gate + r);
        step_floats(l, gate, b, c, out_c, out_h);
    }
    return finish(node);
}

static int16_t sum_of(const tq_node *node, const cell *l, const uint8_t *joined, size_t row)
{
    const uint8_t *w = (const uint8_t *)node->in[WEIGHTS]->data + row * (l->inputs + l->cells);
    int32_t zero_point = tq_zero_point_at(node->in[WEIGHTS], 0);
    int64_t acc = ((const int32_t *)node->in[BIAS]->data)[row];
    for (size_t i = 0; i < l->inputs + l->cells; i++)
        acc += (joined[i] - 128) * (w[i] - zero_point);
    return tq_q16_saturate(tq_multiply_up(tq_wrap_i32(acc), l->to_sums.multiplier, l->to_sums.shift));
}

static tq_status eval_quantized(tq_node *node, tq_error *error)
{
    size_t work = 0;
    (void)error;
    const cell *l = node->state;
    const int16_t *c = node->in[C]->data;
    int16_t *sums = node->out[SUMS]->data, *out_c = node->out[OUT_C]->data;
    uint8_t *out_h = node->out[OUT_H]->data;
    join(node, l, 1);
    for (size_t b = 0; b < l->batches; b++) {
        int16_t *gate = sums + b * 4 * l->cells;
        for (size_t r = 0; r < 4 * l->cells && !tq_stop_count(&work, l->inputs + l->cells); r++)
            gate[r] = sum_of(node, l, (const uint8_t *)node->out[JOINED]->data + b * (l->inputs + l->cells), r);
        for (size_t i = 0; i < l->cells; i++) {
            size_t at = b * l->cells + i;
            int16_t modulation = tq_q16_tanh(gate[GATE_MODULATION * l->cells + i], 3);
            int16_t added = tq_q16_mul(tq_q16_logistic(gate[GATE_INPUT * l->cells + i]), modulation);
            int16_t retained = tq_q16_mul(tq_q16_logistic(gate[GATE_FORGET * l->cells + i]), c[at]);
            out_c[at] = tq_q16_saturate(tq_rounding_divide_by_pot(added, 4) + retained);
            int16_t squashed = tq_q16_tanh(tq_q16_shift_left(out_c[at], 1), 3);
            int16_t h = tq_q16_mul(tq_q16_logistic(gate[GATE_OUTPUT * l->cells + i]), squashed);
            out_h[at] = (uint8_t)(128 + tq_clamp_i64(tq_rounding_divide_by_pot(h, 8), -128, 127));
        }
    }
    return finish(node);
}

/* ---- prepare ---- */

/* Unlike the full kernel, this one has no optional input. */
static tq_status check_counts(const tq_node *node, tq_error *error)
{
    if (node->in_count != INPUTS)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %d inputs; with kernel_type BASIC (1) it needs %d",
                          node->in_count, INPUTS);
    for (int i = 0; i < INPUTS; i++)
        if (!node->in[i])
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "input %d is left out (-1); it is needed", i);
    return TQ_OK;
}

static tq_status check_types(const tq_node *node, tq_error *error)
{
    TQ_TRY(check_counts(node, error));
    TQ_TRY(tq_check_input(node, INPUT, TQ_T(FLOAT32) | TQ_T(UINT8), error));
    bool floats = node->in[INPUT]->type == TQ_TensorType_FLOAT32;
    TQ_TRY(tq_check_input_like(node, H, INPUT, error));
    TQ_TRY(tq_check_input_like(node, WEIGHTS, INPUT, error));
    TQ_TRY(tq_check_input(node, BIAS, floats ? TQ_T(FLOAT32) : TQ_T(INT32), error));
    TQ_TRY(tq_check_input(node, C, floats ? TQ_T(FLOAT32) : TQ_T(INT16), error));
    TQ_TRY(tq_check_output_like(node, OUT_H, INPUT, error));
    TQ_TRY(tq_check_output_like(node, OUT_C, C, error));
    TQ_TRY(tq_check_output_like(node, JOINED, INPUT, error));
    return tq_check_output_like(node, SUMS, C, error);
}

static tq_status check_dims(const tq_node *node, int i, int64_t first, int64_t second, tq_error *error)
{
    const tq_shape *shape = &node->in[i]->shape;
    TQ_TRY(tq_check_rank(node, i, 2, 2, error));
    if (shape->dims[0] != first || shape->dims[1] != second)
        return tq_input_fail(node, i, error, "has the shape [%d,%d]; it must be [%lld,%lld]", shape->dims[0],
                             shape->dims[1], (long long)first, (long long)second);
    return TQ_OK;
}

static tq_status check_shapes(tq_node *node, cell *l, tq_error *error)
{
    TQ_TRY(tq_check_rank(node, INPUT, 2, 2, error));
    TQ_TRY(tq_check_rank(node, H, 2, 2, error));
    TQ_TRY(tq_check_rank(node, BIAS, 1, 1, error));
    int64_t batches = node->in[INPUT]->shape.dims[0], inputs = node->in[INPUT]->shape.dims[1];
    int64_t cells = node->in[H]->shape.dims[1];
    TQ_TRY(check_dims(node, H, batches, cells, error));
    TQ_TRY(check_dims(node, C, batches, cells, error));
    TQ_TRY(check_dims(node, WEIGHTS, 4 * cells, inputs + cells, error));
    if (node->in[BIAS]->shape.dims[0] != 4 * cells)
        return tq_input_fail(node, BIAS, error, "has %d elements; it must have %lld", node->in[BIAS]->shape.dims[0],
                             (long long)(4 * cells));
    *l = (cell){(size_t)batches, (size_t)inputs, (size_t)cells, {0, 0}};
    TQ_TRY(tq_output_shape(node, OUT_H, &node->in[H]->shape, error));
    TQ_TRY(tq_output_shape(node, OUT_C, &node->in[C]->shape, error));
    tq_shape joined = {2, {(int32_t)batches, (int32_t)(inputs + cells)}};
    tq_shape sums = {2, {(int32_t)batches, (int32_t)(4 * cells)}};
    TQ_TRY(tq_output_shape(node, JOINED, &joined, error));
    return tq_output_shape(node, SUMS, &sums, error);
}

static tq_status prepare_quantized(tq_node *node, cell *l, tq_error *error)
{
    const int scaled[] = {WEIGHTS, BIAS};
    for (size_t i = 0; i < sizeof scaled / sizeof *scaled; i++)
        TQ_TRY(tq_check_input_scale(node, scaled[i], error));
    TQ_TRY(tq_check_output_scale(node, OUT_C, error));
    float scale = tq_scale_at(node->out[OUT_C], 0), real = 4096 * tq_scale_at(node->in[BIAS], 0);
    if (!(fabsf(scale - 0x1p-11f) < 0x1p-11f * 7e-4f))
        return tq_output_fail(node, OUT_C, error, "has the scale %g; it must be 2^-11", (double)scale);
    if (!(real <= 3.40282347e38f))
        return tq_input_fail(node, BIAS, error, "has the scale %g; 4096 times it must be finite",
                             (double)tq_scale_at(node->in[BIAS], 0));
    l->to_sums = tq_fixed_of((double)real);
    node->eval = eval_quantized;
    return TQ_OK;
}

tq_status tq_prepare_lstm_basic(tq_node *node, tq_error *error)
{
    cell *l;
    TQ_TRY(check_types(node, error));
    TQ_TRY(tq_node_state(node, sizeof *l, &l, error));
    TQ_TRY(check_shapes(node, l, error));
    node->eval = eval_floats;
    return node->in[INPUT]->type == TQ_TensorType_UINT8 ? prepare_quantized(node, l, error) : TQ_OK;
}
