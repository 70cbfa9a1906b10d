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
#include "ops/lstm.h"
#include "ops/parallel.h"
#include "ops/scratch.h"

typedef struct step {
    const tq_node *node;
    const tq_lstm *l;
    tq_rows x, aux, h;
    float *gates; /* [gate][batch][cell] */
} step;

static float gate_sum(const step *s, int gate, size_t b, size_t cell)
{
    const tq_lstm_gate *g = &s->l->gates[gate];
    float sum = g->norm ? 0 : ((const float *)g->bias->data)[cell];
    sum = tq_rows_product(sum, g->weights, g->sums, &s->x, b, cell);
    if (g->aux_weights)
        sum = tq_rows_product(sum, g->aux_weights, g->aux_sums, &s->aux, b, cell);
    if (s->l->diagonal[gate])
        return sum + ((const float *)g->recurrent->data)[cell] * s->h.data[b * s->h.stride + cell];
    return tq_rows_product(sum, g->recurrent, g->recurrent_sums, &s->h, b, cell);
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
    float *h = l->output_state->data;
    tq_rows in = tq_rows_take(hidden, l->cells, l->cells, l->batches, l->rule,
                              tq_scratch_at(s->node, l->hidden_codes_at), tq_scratch_at(s->node, l->rows_at));
    for (size_t b = 0; b < l->batches; b++)
        for (size_t o = 0; o < l->outputs; o++) {
            float start = l->projection_bias ? ((const float *)l->projection_bias->data)[o] : 0;
            h[b * l->outputs + o] =
                clipped(tq_rows_product(start, l->projection, l->projection_sums, &in, b, o), l->projection_clip);
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

void tq_lstm_step_float(const tq_node *node, const tq_lstm *l, const tq_sequence *x, const tq_sequence *aux,
                        const tq_sequence *out, size_t at)
{
    tq_hybrid_row *scales = tq_scratch_at(node, l->rows_at);
    step s = {.node = node, .l = l, .gates = tq_scratch_at(node, l->gates_at)};
    s.x = tq_rows_of_step(x, at, l->inputs, l->batches, l->rule, tq_scratch_at(node, l->x_codes_at), scales);
    if (l->aux)
        s.aux = tq_rows_of_step(aux, at, l->aux, l->batches, l->rule, tq_scratch_at(node, l->aux_codes_at),
                                scales + l->batches);
    s.h = tq_rows_take(l->output_state->data, l->outputs, l->outputs, l->batches, l->rule,
                       tq_scratch_at(node, l->h_codes_at), scales + 2 * l->batches);
    tq_parallel_for(l->cells, tq_grain(TQ_GATES * l->batches * (l->inputs + l->aux + l->outputs)), node->threads,
                    sum_cells, &s);
    for (int gate = l->cifg ? TQ_GATE_FORGET : TQ_GATE_INPUT; gate <= TQ_GATE_MODULATION; gate++)
        finish_gate(&s, gate);
    update_cell(&s);
    finish_gate(&s, TQ_GATE_OUTPUT);
    give_output(&s, out, at);
}
