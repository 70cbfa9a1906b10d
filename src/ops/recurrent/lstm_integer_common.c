/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recurrent/lstm_integer_common.h"

#include "base/sizes.h"
#include "base/stop.h"
#include "kernels/arrays/fixed_16.h"
#include "ops/check.h"
#include "ops/parallel.h"
#include "quant/fixed_math.h"
#include "quant/fixed_math_16.h"

tq_status tq_lstm_multiplier(const tq_node *node, float scale, const char *what, tq_fixed *out, tq_error *error)
{
    if (!(scale >= 0 && scale <= 3.40282347e38f))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "the scales make a multiplier of %g for %s; it needs to be finite and not negative",
                          (double)scale, what);
    *out = tq_fixed_of(node, (double)scale);
    return TQ_OK;
}

tq_status tq_lstm_intermediate(tq_node *node, size_t i, float *scale, int32_t *zero_point, tq_error *error)
{
    tq_vector indices = tq_get_vector(&node->row.table, TQ_Operator_intermediates);
    const tq_tensor *tensor = tq_node_tensor(node, tq_vector_i32(&indices, i));
    if (!tensor || tensor->quantization.count == 0 || !(tensor->quantization.scale[0] > 0))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "intermediate tensor %zu has no scale", i);
    *scale = tq_scale_of(tensor);
    *zero_point = tq_zero_point_of(tensor);
    return TQ_OK;
}

tq_status tq_lstm_fold(tq_node *node, const tq_tensor *matrix, const tq_tensor *bias, int32_t scalar, int32_t **out,
                       tq_error *error)
{
    size_t rows = (size_t)matrix->shape.dims[0], cols = (size_t)matrix->shape.dims[1];
    if (!tq_is_constant(matrix) || (bias && !tq_is_constant(bias)))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "weights and biases of integers must be constant");
    int32_t *sums;
    TQ_TRY(tq_node_memory(node, rows, sizeof *sums, &sums, error));
    tq_row_sums(matrix->data, rows, cols, sums);
    for (size_t r = 0; r < rows; r++)
        sums[r] = tq_wrap_i32((int64_t)sums[r] * scalar + (bias ? ((const int32_t *)bias->data)[r] : 0));
    *out = sums;
    return TQ_OK;
}

void tq_lstm_products(const tq_tensor *matrix, const int32_t *bias, const int8_t *v, size_t n, size_t first,
                      size_t count, int32_t *sums)
{
    tq_dot_rows_i8((const int8_t *)matrix->data + first * n, count, v, n, sums);
    for (size_t i = 0; i < count; i++)
        sums[i] = (int32_t)((uint32_t)sums[i] + (uint32_t)bias[first + i]);
}

typedef struct gate_sums {
    const tq_lstm *l;
    const int8_t *x;
    size_t x_stride;
    tq_lstm_sum_fn sum;
    int16_t *gates;
} gate_sums;

/* Cells [first, first + count) of a gate, in batch b; count <= TQ_LSTM_CELLS. */
static void sum_some(const gate_sums *s, int gate, size_t b, size_t first, size_t count)
{
    const tq_lstm *l = s->l;
    const tq_lstm_gate *g = &l->gates[gate];
    const int8_t *h = (const int8_t *)l->output_state->data + b * l->outputs;
    int32_t from_x[TQ_LSTM_CELLS], from_h[TQ_LSTM_CELLS];
    tq_lstm_products(g->weights, g->first_bias, s->x + b * s->x_stride, l->inputs, first, count, from_x);
    tq_lstm_products(g->recurrent, g->recurrent_bias, h, l->outputs, first, count, from_h);
    s->sum(g, from_x, from_h, count, s->gates + ((size_t)gate * l->batches + b) * l->cells + first);
}

static void sum_cells(void *context, size_t begin, size_t end)
{
    size_t work = 0;
    const gate_sums *s = context;
    const tq_lstm *l = s->l;
    for (int gate = tq_lstm_first_gate(l); gate < TQ_GATES; gate++)
        for (size_t cell = begin, n; cell < end; cell += n) {
            n = tq_min_size(TQ_LSTM_CELLS, end - cell);
            for (size_t b = 0; b < l->batches && !tq_stop_count(&work, n * (l->inputs + l->outputs) / 8); b++)
                sum_some(s, gate, b, cell, n);
        }
}

void tq_lstm_sum_gates(const tq_node *node, const tq_lstm *l, const int8_t *x, size_t x_stride, tq_lstm_sum_fn sum,
                       int16_t *gates)
{
    gate_sums s = {l, x, x_stride, sum, gates};
    tq_parallel_for(l->cells, tq_grain(TQ_GATES * l->batches * (l->inputs + l->outputs)), node->threads, sum_cells, &s);
}

int32_t tq_lstm_clip_quantized(float clip, float scale, float most)
{
    float q = clip > 0 ? clip / scale : 0;
    return (int32_t)(q < most ? q : most);
}

void tq_lstm_update_cell(const tq_lstm *l, const int16_t *gates)
{
    size_t size = l->batches * l->cells;
    const int16_t *forget = gates + TQ_GATE_FORGET * size, *input = gates + TQ_GATE_INPUT * size;
    const int16_t *modulation = gates + TQ_GATE_MODULATION * size;
    int16_t *c = l->cell_state->data;
    for (size_t i = 0; i < size; i++) {
        int16_t share = l->cifg ? tq_q16_wrap(INT16_MAX - forget[i]) : input[i];
        int16_t retained = tq_q16_wrap(tq_rounding_divide_by_pot(forget[i] * c[i], 15));
        int16_t added = tq_q16_wrap(tq_rounding_divide_by_pot(share * modulation[i], 30 + l->cell_shift));
        c[i] = (int16_t)tq_lstm_clipped(tq_q16_saturate(retained + added), l->cell_clip_q);
    }
}
