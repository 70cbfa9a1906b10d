/* SPDX-License-Identifier: Apache-2.0
 *
 * A step of an LSTM in float32, with float32 or quantized (hybrid) weights.
 *
 * Floats: a gate's sum is ((bias + W x) + A aux) + R h, each product summed as ops/recurrent/ordered_product.h says.
 *
 * Hybrid: x, aux, h and the input of the projection are quantized row by row (ops/products/hybrid.h), and
 *     gate += f32(acc - z * sum(w)) * f32(s_w * s_row)
 * for each of the matrices in turn; peepholes are f32(q * scale).
 */
#include "ops/recurrent/lstm_float.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "ops/check.h"
#include "ops/elementwise/eigen_functions.h"
#include "ops/recurrent/ordered_product.h"
#include "ops/parallel.h"
#include "ops/scratch.h"

typedef struct step {
    const tq_node *node;
    const tq_lstm *l;
    tq_rows x, aux, h;
    float *gates; /* [gate][batch][cell] */
} step;

static float start_of(const tq_lstm *l, int gate, size_t cell)
{
    const tq_lstm_gate *g = &l->gates[gate];
    return g->norm ? 0 : ((const float *)g->bias->data)[cell];
}

/* Cells [first, first + count) of a gate, in batch b. */
static void sum_cells(const step *s, int gate, size_t b, size_t first, size_t count)
{
    const tq_lstm *l = s->l;
    const tq_lstm_gate *g = &l->gates[gate];
    float *sums = s->gates + ((size_t)gate * l->batches + b) * l->cells + first;
    for (size_t i = 0; i < count; i++)
        sums[i] = start_of(l, gate, first + i);
    tq_rows_add_products(g->weights, g->sums, &s->x, b, first, count, sums);
    if (g->aux_weights)
        tq_rows_add_products(g->aux_weights, g->aux_sums, &s->aux, b, first, count, sums);
    if (!l->diagonal[gate])
        tq_rows_add_products(g->recurrent, g->recurrent_sums, &s->h, b, first, count, sums);
    for (size_t i = 0; l->diagonal[gate] && i < count; i++)
        sums[i] += ((const float *)g->recurrent->data)[first + i] * s->h.data[b * s->h.stride + first + i];
}

static void sum_hybrid(void *context, size_t begin, size_t end)
{
    const step *s = context;
    for (int gate = tq_lstm_first_gate(s->l); gate < TQ_GATES; gate++)
        for (size_t b = 0; b < s->l->batches && !tq_stop_now(); b++)
            sum_cells(s, gate, b, begin, end - begin);
}

/* ---- float weights ---- */

/* Cells whose columns lie together, a cache line wide, so that weights are read in the order of memory. */
enum { PANEL = 16 };

static size_t panels_of(const tq_lstm *l)
{
    return (l->cells + PANEL - 1) / PANEL;
}

static size_t width_of(const tq_lstm *l)
{
    return l->inputs + l->aux + l->outputs;
}

/* Row `row` of a panel of a gate's columns. */
static float *panel_row(const tq_lstm *l, int gate, size_t panel, size_t row)
{
    const size_t at = (size_t)(gate - tq_lstm_first_gate(l)) * panels_of(l) + panel;
    return l->joined + (at * width_of(l) + row) * PANEL;
}

/* Copies [cells][width] weights, transposed, into a gate's panels, from row `first` on. */
static void join_weights(const tq_lstm *l, const float *w, size_t width, size_t first, int gate)
{
    for (size_t cell = 0; cell < l->cells && !tq_stop_after(width); cell++) {
        float *to = panel_row(l, gate, cell / PANEL, first) + cell % PANEL;
        for (size_t k = 0; k < width; k++)
            to[k * PANEL] = w[cell * width + k];
    }
}

void tq_lstm_pack_float(tq_lstm *l)
{
    for (int gate = tq_lstm_first_gate(l); gate < TQ_GATES; gate++) {
        const tq_lstm_gate *g = &l->gates[gate];
        join_weights(l, g->weights->data, l->inputs, 0, gate);
        if (l->aux)
            join_weights(l, g->aux_weights->data, l->aux, l->inputs, gate);
        if (!l->diagonal[gate]) /* else the rows stay zero */
            join_weights(l, g->recurrent->data, l->outputs, l->inputs + l->aux, gate);
    }
    for (size_t o = 0; l->projection && o < l->outputs; o++)
        for (size_t cell = 0; cell < l->cells; cell++)
            l->projection_columns[cell * l->outputs + o] = ((const float *)l->projection->data)[o * l->cells + cell];
}

static bool all_constant(const tq_lstm *l)
{
    bool constant = !l->projection || tq_is_constant(l->projection);
    for (int gate = tq_lstm_first_gate(l); gate < TQ_GATES; gate++) {
        const tq_lstm_gate *g = &l->gates[gate];
        constant = constant && tq_is_constant(g->weights) && tq_is_constant(g->recurrent) &&
                   (!g->aux_weights || tq_is_constant(g->aux_weights));
    }
    return constant;
}

tq_status tq_lstm_prepare_float(tq_node *node, tq_lstm *l, tq_error *error)
{
    const size_t panels = (size_t)(TQ_GATES - tq_lstm_first_gate(l)) * panels_of(l);
    TQ_TRY(tq_node_memory(node, (uint64_t)panels * width_of(l), PANEL * sizeof(float), &l->joined, error));
    if (l->projection)
        TQ_TRY(tq_node_memory(node, (uint64_t)l->cells * l->outputs, sizeof(float), &l->projection_columns, error));
    l->pack_again = !all_constant(l);
    if (!l->pack_again)
        tq_lstm_pack_float(l);
    return TQ_OK;
}

static bool in_lanes(const tq_lstm *l, size_t channels, size_t depth)
{
    return tq_ordered_in_lanes(channels, l->batched ? l->batches : 1, depth);
}

/* The cells of one panel of a gate, in batch b. */
static void sum_panel(const step *s, int gate, size_t panel, size_t b)
{
    const tq_lstm *l = s->l;
    const tq_rows *parts[] = {&s->x, &s->aux, &s->h};
    const size_t first = panel * PANEL, cells = tq_min_size(PANEL, l->cells - first);
    const float *w = panel_row(l, gate, panel, 0);
    float *sums = s->gates + ((size_t)gate * l->batches + b) * l->cells + first;
    for (size_t i = 0; i < cells; i++)
        sums[i] = start_of(l, gate, first + i);
    for (int i = 0; i < 3; w += parts[i++]->width * PANEL)
        if (parts[i]->width && !(i == 2 && l->diagonal[gate]))
            tq_ordered_product(w, PANEL, cells, parts[i]->data + b * parts[i]->stride, parts[i]->width,
                               in_lanes(l, l->cells, parts[i]->width), sums);
    for (size_t i = 0; l->diagonal[gate] && i < cells; i++)
        sums[i] += ((const float *)l->gates[gate].recurrent->data)[first + i] * s->h.data[b * s->h.stride + first + i];
}

/* Panels [begin, end) of all gates and batches. */
static void sum_floats(void *context, size_t begin, size_t end)
{
    const step *s = context;
    for (int gate = tq_lstm_first_gate(s->l); gate < TQ_GATES; gate++)
        for (size_t panel = begin; panel < end; panel++)
            for (size_t b = 0; b < s->l->batches && !tq_stop_after(PANEL * (s->l->inputs + s->l->outputs) / 8); b++)
                sum_panel(s, gate, panel, b);
}

/* ---- from sums to gates ---- */

static void add_peephole(const tq_lstm *l, const tq_tensor *peephole, float *gate)
{
    const float *c = l->cell_state->data;
    bool quantized = tq_is_hybrid_weights(peephole);
    for (size_t i = 0; i < l->batches * l->cells; i++) {
        size_t cell = i % l->cells;
        float w = quantized ? (float)((const int8_t *)peephole->data)[cell] * tq_scale_at(peephole, cell)
                            : ((const float *)peephole->data)[cell];
        gate[i] += w * c[i];
    }
}

/* Layer normalization of each batch: mean 0 and deviation 1, times the coefficient, plus the bias. */
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

/* The index of a gate in TFLite's scratch, where the modulation comes before forget. */
static size_t scratch_index(const tq_lstm *l, int gate)
{
    static const size_t indices[TQ_GATES] = {0, 2, 1, 3};
    return indices[gate] - l->cifg;
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
    size_t rows = l->batched ? 1 : l->batches, row = size / rows;
    for (size_t b = 0; b < rows; b++)
        tq_eigen_logistic_row(values + b * row, row, scratch_index(l, gate) * size + b * row);
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

/* The projection's bias, or zeros. */
static void start_outputs(const tq_lstm *l, float *h)
{
    for (size_t o = 0; o < l->outputs; o++)
        h[o] = l->projection_bias ? ((const float *)l->projection_bias->data)[o] : 0;
}

static void project_hybrid(const step *s, const float *hidden, float *h)
{
    const tq_lstm *l = s->l;
    tq_rows in = tq_rows_make(hidden, l->cells, l->cells, l->batches, l->rule,
                              tq_scratch_at(s->node, l->hidden_quantized_at), tq_scratch_at(s->node, l->rows_at));
    for (size_t b = 0; b < l->batches; b++, h += l->outputs) {
        start_outputs(l, h);
        tq_rows_add_products(l->projection, l->projection_sums, &in, b, 0, l->outputs, h);
    }
}

static void project_floats(const step *s, const float *hidden, float *h)
{
    const tq_lstm *l = s->l;
    for (size_t b = 0; b < l->batches; b++, h += l->outputs) {
        start_outputs(l, h);
        tq_ordered_product(l->projection_columns, l->outputs, l->outputs, hidden + b * l->cells, l->cells,
                           in_lanes(l, l->outputs, l->cells), h);
    }
}

static void project(const step *s, const float *hidden)
{
    const tq_lstm *l = s->l;
    float *h = l->output_state->data;
    (l->rule ? project_hybrid : project_floats)(s, hidden, h);
    for (size_t i = 0; i < l->batches * l->outputs; i++)
        h[i] = clipped(h[i], l->projection_clip);
}

static void write_output(const step *s, const tq_sequence *out, size_t at)
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
    s.x = tq_rows_of_step(x, at, l->inputs, l->batches, l->rule, tq_scratch_at(node, l->x_quantized_at), scales);
    if (l->aux)
        s.aux = tq_rows_of_step(aux, at, l->aux, l->batches, l->rule, tq_scratch_at(node, l->aux_quantized_at),
                                scales + l->batches);
    s.h = tq_rows_make(l->output_state->data, l->outputs, l->outputs, l->batches, l->rule,
                       tq_scratch_at(node, l->h_quantized_at), scales + 2 * l->batches);
    const size_t work = TQ_GATES * l->batches * width_of(l);
    if (l->rule)
        tq_parallel_for(l->cells, tq_grain(work), node->threads, sum_hybrid, &s);
    else
        tq_parallel_for(panels_of(l), tq_grain(PANEL * work), node->threads, sum_floats, &s);
    for (int gate = tq_lstm_first_gate(l); gate <= TQ_GATE_MODULATION; gate++)
        finish_gate(&s, gate);
    update_cell(&s);
    finish_gate(&s, TQ_GATE_OUTPUT);
    write_output(&s, out, at);
}
