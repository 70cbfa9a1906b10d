/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers, the same for the same seeds.
 *
 *   RANDOM_UNIFORM           a shape to float32 in [0, 1): 23 random bits behind the point
 *   RANDOM_STANDARD_NORMAL   a shape to float32, by Box and Muller: pairs sqrt(-2 ln u) sin 2 pi v and ... cos 2 pi v
 *   MULTINOMIAL              logits [n, classes] and a count to classes [n, count], with the probability e^logit
 *
 * Each is a stream of Philox words: key = seed, counter = seed2 * 2^64, which goes on from one invoke to the next and
 * begins again when the operator is prepared.  Of a seed the lower 32 bits count; two of 0 stand for any: the stream is another
 * one each time.
 * MULTINOMIAL skips 512 words a sample, counted by fours, between two invokes.
 *
 * Source: LiteRT f6745779, tflite/kernels/random_ops.cc, and XLA, xla/tsl/lib/random/{philox_random,random_distributions_utils}.h.
 * LiteRT writes a number too many of an odd count of normal ones.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "ops/check.h"
#include "ops/movement/movement.h"
#include "ops/movement/philox.h"

typedef struct stream {
    uint32_t key[2], counter[4];
} stream;

typedef struct random_state {
    stream stream;
    void (*fill)(stream *from, float *out, size_t count);
} random_state;

/* ---- the stream ---- */

static void skip(stream *s, uint64_t count)
{
    uint64_t low = s->counter[0] | (uint64_t)s->counter[1] << 32;
    uint64_t high = s->counter[2] | (uint64_t)s->counter[3] << 32;
    low += count;
    high += low < count;
    s->counter[0] = (uint32_t)low;
    s->counter[1] = (uint32_t)(low >> 32);
    s->counter[2] = (uint32_t)high;
    s->counter[3] = (uint32_t)(high >> 32);
}

static void draw(stream *s, uint32_t out[4])
{
    tq_philox(s->counter, s->key, out);
    skip(s, 1);
}

/* Any seed: the time and an address, mixed by the finalizer of MurmurHash3. */
static uint64_t any_seed(const void *address, uint64_t salt)
{
    uint64_t x = tq_nanoseconds() ^ (uint64_t)(uintptr_t)address ^ salt;
    x = (x ^ x >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
    x = (x ^ x >> 33) * UINT64_C(0xC4CEB9FE1A85EC53);
    return x ^ x >> 33;
}

/* The lower 32 bits with their sign: LiteRT's record of options holds no more of a seed. */
static uint64_t seed_of(const tq_node *node, tq_field_id field)
{
    return (uint64_t)(int64_t)(int32_t)(uint32_t)(uint64_t)tq_get_int(&node->options.table, field);
}

static void start(const tq_node *node, stream *s)
{
    uint64_t seed = seed_of(node, TQ_RandomOptions_seed), seed2 = seed_of(node, TQ_RandomOptions_seed2);
    if (seed == 0 && seed2 == 0) {
        seed = any_seed(s, 0);
        seed2 = any_seed(node, seed);
    }
    *s = (stream){{(uint32_t)seed, (uint32_t)(seed >> 32)}, {0, 0, (uint32_t)seed2, (uint32_t)(seed2 >> 32)}};
}

/* ---- numbers ---- */

static float float_of(uint32_t word)
{
    return (float)(word & 0x7FFFFF) * 0x1p-23f;
}

static void fill_uniform(stream *s, float *out, size_t count)
{
    uint32_t words[4];
    TQ_EACH(i, count) {
        if (i % 4 == 0)
            draw(s, words);
        out[i] = float_of(words[i % 4]);
    }
}

static void fill_normal(stream *s, float *out, size_t count)
{
    size_t work = 0;
    const double turn = 2 * 3.14159265358979323846;
    uint32_t words[4];
    for (size_t i = 0; i < count && !tq_stop_count(&work, 4); i += 2) {
        if (i % 4 == 0)
            draw(s, words);
        float u = float_of(words[i % 4]), angle = (float)(turn * (double)float_of(words[i % 4 + 1]));
        float length = sqrtf(-2.0f * logf(u < 1e-7f ? 1e-7f : u));
        out[i] = sinf(angle) * length;
        if (i + 1 < count)
            out[i + 1] = cosf(angle) * length;
    }
}

static tq_status eval_random(tq_node *node, tq_error *error)
{
    (void)error;
    random_state *s = node->state;
    s->fill(&s->stream, node->out[0]->data, tq_tensor_count(node->out[0]));
    return TQ_OK;
}

static tq_status random_shape(tq_node *node, tq_error *error)
{
    tq_shape shape = {.rank = node->in[0]->shape.dims[0]};
    for (int i = 0; i < shape.rank; i++)
        TQ_TRY(tq_dim_of(node, tq_integer_at(node->in[0], (size_t)i), &shape.dims[i], error));
    return tq_output_shape(node, 0, &shape, error);
}

tq_status tq_prepare_random(tq_node *node, tq_error *error)
{
    random_state *s = NULL;
    TQ_TRY(tq_check_input(node, 0, TQ_T(INT32), error));
    TQ_TRY(tq_check_rank(node, 0, 1, 1, error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(FLOAT32), error));
    if (node->in[0]->shape.dims[0] > TQ_DIMS)
        return tq_input_fail(node, 0, error, "has %d dimensions; tensors have %d at most", (int)node->in[0]->shape.dims[0],
                             TQ_DIMS);
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    start(node, &s->stream);
    s->fill = node->row.code == TQ_BuiltinOperator_RANDOM_UNIFORM ? fill_uniform : fill_normal;
    node->eval = eval_random;
    return tq_shape_from_values(node, 1u << 0, random_shape, error);
}

/* ---- MULTINOMIAL ---- */

/* Sums of probabilities, up to a factor; what is not finite has none. */
static void sum_up(const float *logits, size_t count, double *sums)
{
    float most = -3.402823466e+38f;
    double sum = 0;
    TQ_EACH(i, count)
        if (isfinite(logits[i]) && logits[i] > most)
            most = logits[i];
    TQ_EACH(i, count) {
        sum += isfinite(logits[i]) ? exp((double)logits[i] - (double)most) : 0;
        sums[i] = sum;
    }
}

/* The first class whose sum is above x; `count` where there is none. */
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

/* 52 random bits behind the point. */
static double double_of(uint32_t high, uint32_t low)
{
    return (double)((uint64_t)(high & 0xFFFFF) << 32 | low) * 0x1p-52;
}

static tq_status eval_multinomial(tq_node *node, tq_error *error)
{
    size_t work = 0;
    (void)error;
    random_state *s = node->state;
    tq_tensor *out = node->out[0];
    size_t classes = (size_t)node->in[0]->shape.dims[1], samples = (size_t)out->shape.dims[1];
    size_t rows = (size_t)out->shape.dims[0];
    stream from = s->stream;
    uint32_t words[4];
    skip(&s->stream, rows * ((samples + 3) / 4 * 4) * 2 * 256);
    for (size_t i = 0; i < rows * samples && !tq_stop_count(&work, 16); i++) {
        size_t row = i / samples;
        double *sums = node->scratch;
        if (i % samples == 0)
            sum_up((const float *)node->in[0]->data + row * classes, classes, sums);
        if (i % 2 == 0)
            draw(&from, words);
        double x = double_of(words[2 * (i % 2)], words[2 * (i % 2) + 1]) * sums[classes - 1];
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
    random_state *s = NULL;
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, 0, 2, 2, error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(INT32), error));
    TQ_TRY(tq_check_rank(node, 1, 0, 0, error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(INT32) | TQ_T(INT64), error));
    if (node->in[0]->shape.dims[1] < 1)
        return tq_input_fail(node, 0, error, "has no classes; it needs 1");
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    start(node, &s->stream);
    TQ_TRY(tq_node_scratch(node, (uint64_t)node->in[0]->shape.dims[1] * sizeof(double), error));
    node->eval = eval_multinomial;
    return tq_shape_from_values(node, 1u << 1, multinomial_shape, error);
}
