/* SPDX-License-Identifier: Apache-2.0
 *
 * RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN, float32 or hybrid:
 *
 *     h = act(bias + W x + A aux + R h)
 *
 *     RNN             x [batch, inputs], W, R, bias, h (a variable) -> [batch, units]
 *     UNIDIRECTIONAL  x [batch, time, inputs], or [time, batch, inputs] if time_major
 *     BIDIRECTIONAL   x, W, R, bias and h of the forward, then of the backward direction, an auxiliary input, A of
 *                     both.  With A, both directions add the auxiliary input; without, the backward direction reads it
 *                     in place of x.  Outputs: forward and backward, or, if merge_outputs, one with both side by side
 *
 * Source: LiteRT f6745779, tflite/kernels/{basic_rnn,unidirectional_sequence_rnn,bidirectional_sequence_rnn}.cc and
 * internal/kernel_utils.cc.  LiteRT assumes that time-major auxiliary inputs are as wide
 * as x.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/parallel.h"
#include "ops/recurrent/rows.h"
#include "ops/scratch.h"
#include "ops/recurrent/state.h"

/* One direction. */
typedef struct direction {
    size_t batches, inputs, aux, units;
    int64_t activation;
    const tq_tensor *weights, *recurrent, *bias, *aux_weights;
    tq_tensor *h;
    tq_hybrid_rule rule; /* NULL: float weights */
    bool sums_change;    /* hybrid: some weights are not constant, so eval sums their rows */
    int32_t *sums, *recurrent_sums, *aux_sums;
    uint64_t next_at, x_quantized_at, aux_quantized_at, h_quantized_at, scales_at;
} direction;

typedef struct rnn {
    direction forward, backward;
    size_t steps;
    bool time_major, both, merged;
} rnn;

typedef struct step {
    const direction *d;
    tq_rows x, aux, h;
    float *next; /* [batch][unit] */
} step;

static void sum_units(void *context, size_t begin, size_t end)
{
    const step *s = context;
    const direction *d = s->d;
    const size_t n = end - begin;
    for (size_t b = 0; b < d->batches && !tq_stop_now(); b++) {
        float *sums = s->next + b * d->units + begin;
        memcpy(sums, (const float *)d->bias->data + begin, n * sizeof *sums);
        tq_rows_add_products(d->weights, d->sums, &s->x, b, begin, n, sums);
        if (d->aux_weights)
            tq_rows_add_products(d->aux_weights, d->aux_sums, &s->aux, b, begin, n, sums);
        tq_rows_add_products(d->recurrent, d->recurrent_sums, &s->h, b, begin, n, sums);
    }
}

static void take_step(const tq_node *node, const direction *d, const tq_sequence *x, const tq_sequence *aux,
                      const tq_sequence *out, size_t at)
{
    tq_hybrid_row *scales = tq_scratch_at(node, d->scales_at);
    step s = {.d = d, .next = tq_scratch_at(node, d->next_at)};
    s.x = tq_rows_of_step(x, at, d->inputs, d->batches, d->rule, tq_scratch_at(node, d->x_quantized_at), scales);
    if (d->aux_weights)
        s.aux = tq_rows_of_step(aux, at, d->aux, d->batches, d->rule, tq_scratch_at(node, d->aux_quantized_at),
                                scales + d->batches);
    s.h = tq_rows_make(d->h->data, d->units, d->units, d->batches, d->rule, tq_scratch_at(node, d->h_quantized_at),
                       scales + 2 * d->batches);
    tq_parallel_for(d->units, tq_grain(d->batches * (d->inputs + d->aux + d->units)), node->threads, sum_units, &s);
    tq_activate(d->activation, s.next, d->batches * d->units);
    memcpy(d->h->data, s.next, d->batches * d->units * sizeof *s.next);
    for (size_t b = 0; b < d->batches; b++)
        memcpy((float *)out->data + at * out->step_size + b * out->batch_size, s.next + b * d->units,
               d->units * sizeof *s.next);
}

/* ---- hybrid: sums of rows ---- */

static void sum_weights(direction *d)
{
    tq_sum_matrix_rows(d->weights, d->sums);
    tq_sum_matrix_rows(d->recurrent, d->recurrent_sums);
    tq_sum_matrix_rows(d->aux_weights, d->aux_sums);
}

static tq_status prepare_sums(tq_node *node, direction *d, tq_error *error)
{
    const tq_tensor *matrices[] = {d->weights, d->recurrent, d->aux_weights};
    int32_t **sums[] = {&d->sums, &d->recurrent_sums, &d->aux_sums};
    for (int i = 0; i < 3; i++) {
        if (!matrices[i])
            continue;
        TQ_TRY(tq_node_memory(node, d->units, sizeof(int32_t), sums[i], error));
        d->sums_change |= !tq_is_constant(matrices[i]);
    }
    if (!d->sums_change)
        sum_weights(d);
    return TQ_OK;
}

/* ---- one direction's tensors ---- */

static tq_status check_matrix(const tq_node *node, int i, size_t rows, size_t cols, tq_error *error)
{
    TQ_TRY(tq_check_rank(node, i, 2, 2, error));
    const int32_t *dims = node->in[i]->shape.dims;
    if ((size_t)dims[0] != rows || (size_t)dims[1] != cols)
        return tq_input_fail(node, i, error, "has the shape [%d,%d]; it must be [%zu,%zu]", dims[0], dims[1], rows,
                             cols);
    if (node->in[i]->type == TQ_TensorType_FLOAT32)
        return TQ_OK;
    return tq_check_weight_scales(node, i, 0, error);
}

/* Checks one direction's tensors.  first: the index of W, before R, bias and h; aux: of A, or -1. */
static tq_status find(tq_node *node, int first, int aux, size_t batches, size_t inputs, size_t aux_width, direction *d,
                      tq_error *error)
{
    int recurrent = first + 1, bias = first + 2, state = first + 3;
    TQ_TRY(tq_check_input(node, first, TQ_T(FLOAT32) | TQ_HYBRID_WEIGHTS, error));
    TQ_TRY(tq_check_input_like(node, recurrent, first, error));
    TQ_TRY(tq_check_input(node, bias, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, first, 2, 2, error));
    d->batches = batches;
    d->inputs = inputs;
    d->aux = aux_width;
    d->units = (size_t)node->in[first]->shape.dims[0];
    TQ_TRY(check_matrix(node, first, d->units, inputs, error));
    TQ_TRY(check_matrix(node, recurrent, d->units, d->units, error));
    TQ_TRY(tq_check_rank(node, bias, 1, 1, error));
    if ((size_t)node->in[bias]->shape.dims[0] != d->units)
        return tq_input_fail(node, bias, error, "has %d elements; there are %zu units", node->in[bias]->shape.dims[0],
                             d->units);
    if (aux_width) {
        TQ_TRY(tq_check_input_like(node, aux, first, error));
        TQ_TRY(check_matrix(node, aux, d->units, aux_width, error));
        d->aux_weights = node->in[aux];
    }
    TQ_TRY(tq_check_state(node, state, TQ_T(FLOAT32), batches * d->units, error));
    d->weights = node->in[first];
    d->recurrent = node->in[recurrent];
    d->bias = node->in[bias];
    d->h = node->in[state];
    if (tq_is_hybrid_weights(d->weights))
        return prepare_sums(node, d, error);
    d->rule = NULL;
    return TQ_OK;
}

static void lay_out(direction *d, uint64_t *total)
{
    const uint64_t quantized = d->rule ? d->batches : 0; /* rows */
    d->next_at = tq_scratch_part(total, d->batches * d->units, sizeof(float));
    d->x_quantized_at = tq_scratch_part(total, quantized * d->inputs, 1);
    d->aux_quantized_at = tq_scratch_part(total, quantized * d->aux, 1);
    d->h_quantized_at = tq_scratch_part(total, quantized * d->units, 1);
    d->scales_at = tq_scratch_part(total, 3 * quantized, sizeof(tq_hybrid_row));
}

/* ---- the operators ---- */

enum { AUX = 9, FORWARD_AUX = 10, BACKWARD_AUX = 11 };

/* Whether the backward direction reads the auxiliary input in place of x. */
static bool reads_aux(const tq_node *node)
{
    return node->in[AUX] && !node->in[FORWARD_AUX];
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    rnn *r = node->state;
    direction *d = &r->forward;
    size_t size = sizeof(float), width = d->units + (r->merged ? r->backward.units : 0);
    tq_sequence x = tq_sequence_of(node->in[0]->data, size, r->time_major, r->steps, d->batches, d->inputs, 0);
    tq_sequence out = tq_sequence_of(node->out[0]->data, size, r->time_major, r->steps, d->batches, width, 0);
    tq_sequence aux = {NULL, 0, 0};
    if (r->both && node->in[AUX])
        aux = tq_sequence_of(node->in[AUX]->data, size, r->time_major, r->steps, d->batches,
                             reads_aux(node) ? d->inputs : d->aux, 0);
    if (d->sums_change)
        sum_weights(d);
    for (size_t at = 0; at < r->steps && !tq_stop_after(d->units); at++)
        take_step(node, d, &x, &aux, &out, at);
    if (!r->both)
        return TQ_OK;
    tq_sequence back = tq_sequence_of(node->out[r->merged ? 0 : 1]->data, size, r->time_major, r->steps, d->batches,
                                      r->merged ? width : r->backward.units, r->merged ? d->units : 0);
    if (r->backward.sums_change)
        sum_weights(&r->backward);
    for (size_t at = r->steps; at-- > 0 && !tq_stop_after(d->units);)
        take_step(node, &r->backward, reads_aux(node) ? &aux : &x, &aux, &back, at);
    return TQ_OK;
}

/* Checks x, of `rank` dimensions, and the outputs. */
static tq_status check(const tq_node *node, int outputs, int rank, tq_error *error)
{
    TQ_TRY(tq_check_output_count(node, outputs, error));
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    for (int i = 0; i < outputs; i++)
        TQ_TRY(tq_check_output(node, i, TQ_T(FLOAT32), error));
    return tq_check_rank(node, 0, rank, rank, error);
}

static tq_status prepare_one(tq_node *node, rnn *r, size_t batches, tq_error *error)
{
    const tq_shape *x = &node->in[0]->shape;
    uint64_t total = 0;
    TQ_TRY(tq_check_activation(node, r->forward.activation, error));
    TQ_TRY(find(node, 1, -1, batches, (size_t)x->dims[x->rank - 1], 0, &r->forward, error));
    lay_out(&r->forward, &total);
    tq_shape out = *x;
    out.dims[out.rank - 1] = (int32_t)r->forward.units;
    TQ_TRY(tq_output_shape(node, 0, &out, error));
    node->eval = eval;
    return tq_node_scratch(node, total, error);
}

tq_status tq_prepare_rnn(tq_node *node, tq_error *error)
{
    const tq_table *options = &node->options.table;
    rnn *r;
    TQ_TRY(check(node, 1, 2, error));
    TQ_TRY(tq_node_state(node, sizeof *r, &r, error));
    r->time_major = true;
    r->steps = 1;
    r->forward.activation = tq_get_int(options, TQ_RNNOptions_fused_activation_function);
    r->forward.rule = tq_hybrid_rule_of(node, tq_get_int(options, TQ_RNNOptions_asymmetric_quantize_inputs) != 0);
    return prepare_one(node, r, (size_t)node->in[0]->shape.dims[0], error);
}

tq_status tq_prepare_unidirectional_sequence_rnn(tq_node *node, tq_error *error)
{
    const tq_table *options = &node->options.table;
    rnn *r;
    TQ_TRY(check(node, 1, 3, error));
    TQ_TRY(tq_node_state(node, sizeof *r, &r, error));
    const int32_t *x = node->in[0]->shape.dims;
    r->time_major = tq_get_int(options, TQ_SequenceRNNOptions_time_major) != 0;
    r->steps = (size_t)x[r->time_major ? 0 : 1];
    r->forward.activation = tq_get_int(options, TQ_SequenceRNNOptions_fused_activation_function);
    r->forward.rule =
        tq_hybrid_rule_of(node, tq_get_int(options, TQ_SequenceRNNOptions_asymmetric_quantize_inputs) != 0);
    return prepare_one(node, r, (size_t)x[r->time_major ? 1 : 0], error);
}

/* The auxiliary input's shape, and its width where there are weights for it. */
static tq_status check_aux(const tq_node *node, size_t *width, tq_error *error)
{
    const int32_t *x = node->in[0]->shape.dims;
    *width = 0;
    if (!node->in[FORWARD_AUX] != !node->in[BACKWARD_AUX])
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "one of inputs %d and %d, auxiliary weights, is left out",
                          FORWARD_AUX, BACKWARD_AUX);
    if (!node->in[AUX])
        return node->in[FORWARD_AUX]
                   ? tq_op_fail(node, error, TQ_BAD_OPERATOR,
                                "input %d, an auxiliary input, is left out; its weights are there", AUX)
                   : TQ_OK;
    TQ_TRY(tq_check_input(node, AUX, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, AUX, 3, 3, error));
    const int32_t *aux = node->in[AUX]->shape.dims;
    if (aux[0] != x[0] || aux[1] != x[1] || aux[2] == 0 || (reads_aux(node) && aux[2] != x[2]))
        return tq_input_fail(node, AUX, error, "has the shape [%d,%d,%d]; the input's is [%d,%d,%d]", aux[0], aux[1],
                             aux[2], x[0], x[1], x[2]);
    *width = node->in[FORWARD_AUX] ? (size_t)aux[2] : 0;
    return TQ_OK;
}

static tq_status shape_outputs(tq_node *node, const rnn *r, tq_error *error)
{
    const int32_t *x = node->in[0]->shape.dims;
    size_t width = r->forward.units + (r->merged ? r->backward.units : 0);
    if (width > INT32_MAX)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "the merged output would have %zu columns; there may be 2^31 - 1", width);
    tq_shape out = {3, {x[0], x[1], (int32_t)width}};
    TQ_TRY(tq_output_shape(node, 0, &out, error));
    out.dims[2] = (int32_t)r->backward.units;
    return r->merged ? TQ_OK : tq_output_shape(node, 1, &out, error);
}

tq_status tq_prepare_bidirectional_sequence_rnn(tq_node *node, tq_error *error)
{
    const tq_table *options = &node->options.table;
    bool merged = tq_get_int(options, TQ_BidirectionalSequenceRNNOptions_merge_outputs) != 0;
    size_t aux;
    uint64_t total = 0;
    rnn *r;
    TQ_TRY(check(node, merged ? 1 : 2, 3, error));
    TQ_TRY(check_aux(node, &aux, error));
    TQ_TRY(tq_node_state(node, sizeof *r, &r, error));
    const int32_t *x = node->in[0]->shape.dims;
    r->both = true;
    r->merged = merged;
    r->time_major = tq_get_int(options, TQ_BidirectionalSequenceRNNOptions_time_major) != 0;
    r->steps = (size_t)x[r->time_major ? 0 : 1];
    r->forward.activation = tq_get_int(options, TQ_BidirectionalSequenceRNNOptions_fused_activation_function);
    r->forward.rule = tq_hybrid_rule_of(
        node, tq_get_int(options, TQ_BidirectionalSequenceRNNOptions_asymmetric_quantize_inputs) != 0);
    r->backward = r->forward;
    TQ_TRY(tq_check_activation(node, r->forward.activation, error));
    size_t batches = (size_t)x[r->time_major ? 1 : 0], inputs = (size_t)x[2];
    TQ_TRY(find(node, 1, FORWARD_AUX, batches, inputs, aux, &r->forward, error));
    TQ_TRY(find(node, 5, BACKWARD_AUX, batches, inputs, aux, &r->backward, error));
    lay_out(&r->forward, &total);
    lay_out(&r->backward, &total);
    TQ_TRY(shape_outputs(node, r, error));
    node->eval = eval;
    return tq_node_scratch(node, total, error);
}
