/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of an LSTM in floating point, with weights of floats or of codes (hybrid).  Contract: lstm.h.
 *
 * Floats: a gate's sum begins with the bias, and x, aux and h follow in the order of kernels/gemm.h.
 *
 * Hybrid: x, aux, h and what is projected are quantized row by row (ops/hybrid.h), and
 *     gate += f32(acc - z * sum(w)) * f32(s_w * s_row)
 * for each of the matrices in turn; peepholes are f32(code * scale).
 */
#include <math.h>
#include <string.h>

#include "ops/check.h"
#include "ops/curves.h"
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

static void sum_codes(void *context, size_t begin, size_t end)
{
    const step *s = context;
    size_t size = s->l->batches * s->l->cells;
    for (int gate = s->l->cifg ? TQ_GATE_FORGET : TQ_GATE_INPUT; gate < TQ_GATES; gate++)
        for (size_t cell = begin; cell < end; cell++)
            for (size_t b = 0; b < s->l->batches; b++)
                s->gates[(size_t)gate * size + b * s->l->cells + cell] = gate_sum(s, gate, b, cell);
}

/* ---- float weights ---- */

static int first_gate(const tq_lstm *l)
{
    return l->cifg ? TQ_GATE_FORGET : TQ_GATE_INPUT;
}

static size_t channels_of(const tq_lstm *l)
{
    return (size_t)(TQ_GATES - first_gate(l)) * l->cells;
}

static size_t width_of(const tq_lstm *l)
{
    return l->inputs + l->aux + l->outputs;
}

static void join_gate(const tq_lstm *l, int gate, float *to)
{
    const tq_lstm_gate *g = &l->gates[gate];
    const float *w = g->weights->data, *aux = l->aux ? g->aux_weights->data : NULL, *r = g->recurrent->data;
    for (size_t cell = 0; cell < l->cells; cell++, to += width_of(l)) {
        memcpy(to, w + cell * l->inputs, l->inputs * sizeof *to);
        if (aux)
            memcpy(to + l->inputs, aux + cell * l->aux, l->aux * sizeof *to);
        if (l->diagonal[gate])
            memset(to + l->inputs + l->aux, 0, l->outputs * sizeof *to);
        else
            memcpy(to + l->inputs + l->aux, r + cell * l->outputs, l->outputs * sizeof *to);
    }
}

static float start_of(const tq_lstm *l, int gate, size_t cell)
{
    const tq_lstm_gate *g = &l->gates[gate];
    return g->norm ? 0 : ((const float *)g->bias->data)[cell];
}

/* The biases go behind the joined matrix. */
void tq_lstm_pack_float(tq_lstm *l)
{
    size_t width = width_of(l), channels = channels_of(l);
    float *bias = l->joined + channels * width;
    for (int gate = first_gate(l); gate < TQ_GATES; gate++) {
        size_t channel = (size_t)(gate - first_gate(l)) * l->cells;
        join_gate(l, gate, l->joined + channel * width);
        for (size_t cell = 0; cell < l->cells; cell++)
            bias[channel + cell] = start_of(l, gate, cell);
    }
    tq_gemm_weights weights = {.data = l->joined, .type = TQ_f32, .channel_stride = width, .k_stride = 1,
                               .bias = bias, .bias_type = TQ_f32};
    tq_gemm_pack(&l->product, &weights, l->packed);
    if (!l->projection)
        return;
    weights = (tq_gemm_weights){.data = l->projection->data, .type = TQ_f32, .channel_stride = l->cells, .k_stride = 1,
                                .bias = l->projection_bias ? l->projection_bias->data : NULL, .bias_type = TQ_f32};
    tq_gemm_pack(&l->project, &weights, l->packed_projection);
}

static tq_status plan(tq_node *node, tq_gemm *gemm, size_t channels, size_t depth, void **memory, uint64_t *work,
                      size_t batches, tq_error *error)
{
    TQ_TRY(tq_gemm_plan(gemm, TQ_f32, channels, 1, depth, false, error));
    uint64_t bytes = tq_gemm_scratch_bytes(gemm, batches, node->threads);
    *work = bytes > *work ? bytes : *work;
    return tq_node_memory(node, gemm->packed_bytes, 1, memory, error);
}

static bool all_constant(const tq_lstm *l)
{
    bool constant = (!l->projection || tq_is_constant(l->projection)) &&
                    (!l->projection_bias || tq_is_constant(l->projection_bias));
    for (int gate = first_gate(l); gate < TQ_GATES; gate++) {
        const tq_lstm_gate *g = &l->gates[gate];
        constant = constant && tq_is_constant(g->weights) && tq_is_constant(g->recurrent) && tq_is_constant(g->bias) &&
                   (!g->aux_weights || tq_is_constant(g->aux_weights));
    }
    return constant;
}

tq_status tq_lstm_prepare_float(tq_node *node, tq_lstm *l, uint64_t *scratch, tq_error *error)
{
    size_t channels = channels_of(l), width = width_of(l), batches = l->batches;
    uint64_t work = 0;
    TQ_TRY(tq_node_memory(node, (uint64_t)channels * (width + 1), sizeof(float), &l->joined, error));
    TQ_TRY(plan(node, &l->product, channels, width, &l->packed, &work, batches, error));
    if (l->projection)
        TQ_TRY(plan(node, &l->project, l->outputs, l->cells, &l->packed_projection, &work, batches, error));
    l->joined_rows_at = tq_scratch_part(scratch, (uint64_t)batches * width, sizeof(float));
    l->sums_at = tq_scratch_part(scratch, (uint64_t)batches * channels, sizeof(float));
    l->work_at = tq_scratch_part(scratch, work, 1);
    l->pack_again = !all_constant(l);
    if (!l->pack_again)
        tq_lstm_pack_float(l);
    return TQ_OK;
}

static const tq_gemm_store plain_store = {.out = TQ_f32, .floor = -INFINITY, .ceiling = INFINITY};

/* x, aux and h of each batch in a row. */
static float *join_rows(const step *s)
{
    const tq_lstm *l = s->l;
    float *rows = tq_scratch_at(s->node, l->joined_rows_at);
    const tq_rows *parts[] = {&s->x, &s->aux, &s->h};
    for (size_t b = 0, at = 0; b < l->batches; b++)
        for (int i = 0; i < 3; i++) {
            if (parts[i]->width)
                memcpy(rows + at, parts[i]->data + b * parts[i]->stride, parts[i]->width * sizeof *rows);
            at += parts[i]->width;
        }
    return rows;
}

static void sum_floats(const step *s)
{
    const tq_lstm *l = s->l;
    size_t channels = channels_of(l), width = width_of(l);
    const float *rows = join_rows(s), *h = l->output_state->data;
    float *sums = tq_scratch_at(s->node, l->sums_at);
    tq_gemm_rows in = {rows, l->batches, width, NULL};
    tq_gemm_run(&l->product, &in, &plain_store, sums, channels, tq_scratch_at(s->node, l->work_at), s->node->threads);
    for (int gate = first_gate(l); gate < TQ_GATES; gate++)
        for (size_t b = 0; b < l->batches; b++)
            memcpy(s->gates + ((size_t)gate * l->batches + b) * l->cells,
                   sums + b * channels + (size_t)(gate - first_gate(l)) * l->cells, l->cells * sizeof *sums);
    for (int gate = first_gate(l); gate < TQ_GATES; gate++)
        for (size_t i = 0; l->diagonal[gate] && i < l->batches * l->cells; i++)
            s->gates[(size_t)gate * l->batches * l->cells + i] +=
                ((const float *)l->gates[gate].recurrent->data)[i % l->cells] * h[i];
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
        values[i] = tq_curve_logistic(values[i]);
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

static void project_codes(const step *s, const float *hidden, float *h)
{
    const tq_lstm *l = s->l;
    tq_rows in = tq_rows_take(hidden, l->cells, l->cells, l->batches, l->rule,
                              tq_scratch_at(s->node, l->hidden_codes_at), tq_scratch_at(s->node, l->rows_at));
    for (size_t b = 0; b < l->batches; b++)
        for (size_t o = 0; o < l->outputs; o++) {
            float start = l->projection_bias ? ((const float *)l->projection_bias->data)[o] : 0;
            h[b * l->outputs + o] = tq_rows_product(start, l->projection, l->projection_sums, &in, b, o);
        }
}

static void project_floats(const step *s, const float *hidden, float *h)
{
    const tq_lstm *l = s->l;
    tq_gemm_rows in = {hidden, l->batches, l->cells, NULL};
    tq_gemm_run(&l->project, &in, &plain_store, h, l->outputs, tq_scratch_at(s->node, l->work_at), s->node->threads);
}

static void project(const step *s, const float *hidden)
{
    const tq_lstm *l = s->l;
    float *h = l->output_state->data;
    (l->rule ? project_codes : project_floats)(s, hidden, h);
    for (size_t i = 0; i < l->batches * l->outputs; i++)
        h[i] = clipped(h[i], l->projection_clip);
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
    if (l->rule)
        tq_parallel_for(l->cells, tq_grain(TQ_GATES * l->batches * width_of(l)), node->threads, sum_codes, &s);
    else
        sum_floats(&s);
    for (int gate = first_gate(l); gate <= TQ_GATE_MODULATION; gate++)
        finish_gate(&s, gate);
    update_cell(&s);
    finish_gate(&s, TQ_GATE_OUTPUT);
    give_output(&s, out, at);
}
