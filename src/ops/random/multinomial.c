/* SPDX-License-Identifier: Apache-2.0
 *
 * MULTINOMIAL: logits [n, classes] and a count to classes [n, count], with the probability e^logit.
 *
 * Each invoke skips 512 values for each sample, with the samples of a row rounded up to a multiple of four.
 * Source: LiteRT f6745779, tflite/kernels/random_ops.cc, and XLA,
 * xla/tsl/lib/random/{philox_random,random_distributions_utils}.h.
 */
#include <math.h>

#include "ops/check.h"
#include "ops/random/stream.h"

/* sums[i]: the probabilities of classes 0 to i, times a common factor; a non-finite logit has the probability 0. */
static void sum_probabilities(const float *logits, size_t count, double *sums)
{
    float most = -3.402823466e+38f;
    double sum = 0;
    TQ_EACH (i, count)
        if (isfinite(logits[i]) && logits[i] > most)
            most = logits[i];
    TQ_EACH (i, count) {
        sum += isfinite(logits[i]) ? exp((double)logits[i] - (double)most) : 0;
        sums[i] = sum;
    }
}

/* The first class whose sum is above x; `count` if there is none. */
static size_t class_of(const double *sums, size_t count, double x)
{
    size_t low = 0;
    while (count > 0) {
        size_t half = count / 2;
        if (x < sums[low + half]) {
            count = half;
        } else {
            low += half + 1;
            count -= half + 1;
        }
    }
    return low;
}

/* 52 random bits as a number in [0, 1). */
static double double_of(uint32_t high, uint32_t low)
{
    return (double)((uint64_t)(high & 0xFFFFF) << 32 | low) * 0x1p-52;
}

static tq_status eval_multinomial(tq_node *node, tq_error *error)
{
    size_t work = 0;
    (void)error;
    tq_random_stream *s = node->state;
    tq_tensor *out = node->out[0];
    size_t classes = (size_t)node->in[0]->shape.dims[1], samples = (size_t)out->shape.dims[1];
    size_t rows = (size_t)out->shape.dims[0];
    tq_random_stream from = *s;
    uint32_t values[4];
    tq_random_stream_skip(s, rows * ((samples + 3) / 4 * 4) * 2 * 256);
    for (size_t i = 0; i < rows * samples && !tq_stop_count(&work, 16); i++) {
        size_t row = i / samples;
        double *sums = node->scratch;
        if (i % samples == 0)
            sum_probabilities((const float *)node->in[0]->data + row * classes, classes, sums);
        if (i % 2 == 0)
            tq_random_stream_draw(&from, values);
        double x = double_of(values[2 * (i % 2)], values[2 * (i % 2) + 1]) * sums[classes - 1];
        size_t found = class_of(sums, classes, x);
        if (out->type == TQ_TensorType_INT64)
            ((int64_t *)out->data)[i] = (int64_t)found;
        else
            ((int32_t *)out->data)[i] = (int32_t)found;
    }
    return TQ_OK;
}

static tq_status multinomial_shape(tq_node *node, tq_error *error)
{
    tq_shape shape = {2, {node->in[0]->shape.dims[0], 0}};
    TQ_TRY(tq_dim_of(node, tq_integer_at(node->in[1], 0), &shape.dims[1], error));
    return tq_output_shape(node, 0, &shape, error);
}

tq_status tq_prepare_multinomial(tq_node *node, tq_error *error)
{
    tq_random_stream *s = NULL;
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, 0, 2, 2, error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(INT32), error));
    TQ_TRY(tq_check_rank(node, 1, 0, 0, error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(INT32) | TQ_T(INT64), error));
    if (node->in[0]->shape.dims[1] < 1)
        return tq_input_fail(node, 0, error, "has no classes; it needs 1");
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    tq_random_stream_start(node, s);
    TQ_TRY(tq_node_scratch(node, (uint64_t)node->in[0]->shape.dims[1] * sizeof(double), error));
    node->eval = eval_multinomial;
    return tq_shape_from_values(node, 1u << 1, multinomial_shape, error);
}
