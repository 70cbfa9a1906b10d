/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of an LSTM in floating point, with weights of floats or of codes (hybrid).  Contract: lstm.h.
 *
 * Hybrid: x, aux, h and what is projected are quantized row by row (ops/hybrid.h), and
 *     gate += f32(acc - z * sum(w)) * f32(s_w * s_row)
 * for each of the matrices in turn; peepholes are f32(code * scale).
 */
#include <math.h>
#include <string.h>

#include "ops/check.h"
#include "ops/dot.h"
#include "ops/lstm.h"
#include "ops/parallel.h"
#include "ops/scratch.h"

/* A batch of rows that matrices multiply. */
typedef struct rows {
    const float *data;
    size_t stride; /* from row to row */
    const int8_t *codes;
    const tq_hybrid_row *scales;
    size_t width;
} rows;

typedef struct step {
    const tq_node *node;
    const tq_lstm *l;
    rows x, aux, h;
    float *gates; /* [gate][batch][cell] */
} step;

/* start + row `b` of `in` times row `r` of a matrix. */
static float add_product(float start, const tq_tensor *matrix, const int32_t *sums, const rows *in, size_t b, size_t r)
{
    if (!in->codes)
        return tq_add_dot_f32(start, (const float *)matrix->data + r * in->width, in->data + b * in->stride,
                              in->width);
    const tq_hybrid_row *row = &in->scales[b];
    int64_t acc = tq_dot_i8((const int8_t *)matrix->data + r * in->width, in->codes + b * in->width, in->width);
    acc -= (int64_t)row->zero_point * sums[r];
    return start + (float)tq_wrap_i32(acc) * (tq_scale_at(matrix, 0) * row->scale);
}

static float gate_sum(const step *s, int gate, size_t b, size_t cell)
{
    const tq_lstm_gate *g = &s->l->gates[gate];
    float sum = g->norm ? 0 : ((const float *)g->bias->data)[cell];
    sum = add_product(sum, g->weights, g->sums, &s->x, b, cell);
    if (g->aux_weights)
        sum = add_product(sum, g->aux_weights, g->aux_sums, &s->aux, b, cell);
    if (s->l->diagonal[gate])
        return sum + ((const float *)g->recurrent->data)[cell] * s->h.data[b * s->h.stride + cell];
    return add_product(sum, g->recurrent, g->recurrent_sums, &s->h, b, cell);
}

static void sum_cells(void *context, size_t begin, size_t end)
{
    const step *s = context;
    size_t size = s->l->batches * s->l->cells;
    for (int gate = s->l->cifg ? TQ_GATE_FORGET : TQ_GATE_INPUT; gate < TQ_GATES; gate++)
        for (size_t cell = begin; cell < end; cell++)
            for (size_t b = 0; b < s->l->batches; b++)
                s->gates[(size_t)gate * size + b * s->l->cells + cell] = gate_sum(s, gate, b, cell);
}

/* ---- from sums to gates ---- */

static void add_peephole(const tq_lstm *l, const tq_tensor *peephole, float *gate)
{
    const float *c = l->cell_state->data;
    bool codes = peephole->type == TQ_TensorType_INT8;
    float scale = codes ? tq_scale_at(peephole, 0) : 1;
    for (size_t i = 0; i < l->batches * l->cells; i++) {
        size_t cell = i % l->cells;
        float w = codes ? (float)((const int8_t *)peephole->data)[cell] * scale : ((const float *)peephole->data)[cell];
        gate[i] += w * c[i];
    }
}

/* Each batch to mean 0 and deviation 1, then by its coefficient, plus its bias. */
static void normalize(const tq_lstm *l, const tq_lstm_gate *g, float *gate)
{
    const float *coefficient = g->norm->data, *bias = g->bias->data;
    for (size_t b = 0; b < l->batches; b++, gate += l->cells) {
        float sum = 0, squares = 0;
        for (size_t i = 0; i < l->cells; i++)
            sum += gate[i];
        float mean = sum / (float)l->cells;
        for (size_t i = 0; i < l->cells; i++) {
            float difference = gate[i] - mean;
            squares += difference * difference;
        }
        float inverse = 1.0f / sqrtf(squares / (float)l->cells + 1e-8f);
        for (size_t i = 0; i < l->cells; i++)
            gate[i] = (gate[i] - mean) * inverse * coefficient[i] + bias[i];
    }
}

static void finish_gate(const step *s, int gate)
{
    const tq_lstm *l = s->l;
    size_t size = l->batches * l->cells;
    float *values = s->gates + (size_t)gate * size;
    if (l->gates[gate].peephole)
        add_peephole(l, l->gates[gate].peephole, values);
    if (l->gates[gate].norm)
        normalize(l, &l->gates[gate], values);
    if (gate == TQ_GATE_MODULATION) {
        tq_activate(l->activation, values, size);
        return;
    }
    for (size_t i = 0; i < size; i++)
        values[i] = 1.0f / (1.0f + expf(-values[i]));
}

static float clipped(float x, float clip)
{
    return clip > 0 ? (x < -clip ? -clip : x > clip ? clip : x) : x;
}

static void update_cell(const step *s)
{
    const tq_lstm *l = s->l;
    size_t size = l->batches * l->cells;
    const float *forget = s->gates + TQ_GATE_FORGET * size, *input = s->gates + TQ_GATE_INPUT * size;
    const float *modulation = s->gates + TQ_GATE_MODULATION * size;
    float *c = l->cell_state->data;
    for (size_t i = 0; i < size; i++)
        c[i] = clipped(forget[i] * c[i] + modulation[i] * (l->cifg ? 1.0f - forget[i] : input[i]), l->cell_clip);
}

/* ---- output ---- */

static void project(const step *s, const float *hidden)
{
    const tq_lstm *l = s->l;
    int8_t *codes = l->rule ? tq_scratch_at(s->node, l->hidden_codes_at) : NULL;
    tq_hybrid_row *scales = tq_scratch_at(s->node, l->rows_at);
    float *h = l->output_state->data;
    if (codes)
        for (size_t b = 0; b < l->batches; b++)
            scales[b] = l->rule(hidden + b * l->cells, l->cells, codes + b * l->cells);
    rows in = {hidden, l->cells, codes, scales, l->cells};
    for (size_t b = 0; b < l->batches; b++)
        for (size_t o = 0; o < l->outputs; o++) {
            float start = l->projection_bias ? ((const float *)l->projection_bias->data)[o] : 0;
            h[b * l->outputs + o] =
                clipped(add_product(start, l->projection, l->projection_sums, &in, b, o), l->projection_clip);
        }
}

static void give_output(const step *s, const tq_sequence *out, size_t at)
{
    const tq_lstm *l = s->l;
    size_t size = l->batches * l->cells;
    const float *gate = s->gates + TQ_GATE_OUTPUT * size;
    float *hidden = tq_scratch_at(s->node, l->hidden_at), *h = l->output_state->data;
    memcpy(hidden, l->cell_state->data, size * sizeof *hidden);
    tq_activate(l->activation, hidden, size);
    for (size_t i = 0; i < size; i++)
        hidden[i] *= gate[i];
    if (l->projection)
        project(s, hidden);
    else
        memcpy(h, hidden, size * sizeof *h);
    for (size_t b = 0; b < l->batches; b++)
        memcpy((float *)out->data + at * out->step_size + b * out->batch_size, h + b * l->outputs,
               l->outputs * sizeof *h);
}

/* ---- the step ---- */

/* Rows of a sequence's step, quantized if the weights are codes. */
static rows take(const tq_lstm *l, const float *data, size_t stride, size_t width, int8_t *codes,
                 tq_hybrid_row *scales)
{
    rows r = {data, stride, NULL, scales, width};
    if (!l->rule)
        return r;
    for (size_t b = 0; b < l->batches; b++)
        scales[b] = l->rule(data + b * stride, width, codes + b * width);
    r.codes = codes;
    return r;
}

void tq_lstm_step_float(const tq_node *node, const tq_lstm *l, const tq_sequence *x, const tq_sequence *aux,
                        const tq_sequence *out, size_t at)
{
    tq_hybrid_row *scales = tq_scratch_at(node, l->rows_at);
    step s = {.node = node, .l = l, .gates = tq_scratch_at(node, l->gates_at)};
    s.x = take(l, (const float *)x->data + at * x->step_size, x->batch_size, l->inputs,
               tq_scratch_at(node, l->x_codes_at), scales);
    if (l->aux)
        s.aux = take(l, (const float *)aux->data + at * aux->step_size, aux->batch_size, l->aux,
                     tq_scratch_at(node, l->aux_codes_at), scales + l->batches);
    s.h = take(l, l->output_state->data, l->outputs, l->outputs, tq_scratch_at(node, l->h_codes_at),
               scales + 2 * l->batches);
    tq_parallel_for(l->cells, tq_grain(TQ_GATES * l->batches * (l->inputs + l->aux + l->outputs)), node->threads,
                    sum_cells, &s);
    for (int gate = l->cifg ? TQ_GATE_FORGET : TQ_GATE_INPUT; gate <= TQ_GATE_MODULATION; gate++)
        finish_gate(&s, gate);
    update_cell(&s);
    finish_gate(&s, TQ_GATE_OUTPUT);
    give_output(&s, out, at);
}
