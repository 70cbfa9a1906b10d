/* SPDX-License-Identifier: Apache-2.0
 *
 * RANDOM_UNIFORM           a shape to float32 in [0, 1): 23 random bits after the binary point
 * RANDOM_STANDARD_NORMAL   a shape to float32, by Box and Muller: pairs sqrt(-2 ln u) sin 2 pi v and
 *                          sqrt(-2 ln u) cos 2 pi v
 *
 * LiteRT writes past the end of an odd count of normal values.
 * Source: LiteRT f6745779, tflite/kernels/random_ops.cc, and XLA,
 * xla/tsl/lib/random/{philox_random,random_distributions_utils}.h.
 */
#include <math.h>
#include <string.h>

#include "ops/check.h"
#include "ops/random/stream.h"

typedef struct random_state {
    tq_random_stream stream;
    void (*fill)(tq_random_stream *from, float *out, size_t count);
} random_state;

static float float_of(uint32_t value)
{
    return (float)(value & 0x7FFFFF) * 0x1p-23f;
}

static void fill_uniform(tq_random_stream *s, float *out, size_t count)
{
    uint32_t values[4];
    TQ_EACH (i, count) {
        if (i % 4 == 0)
            tq_random_stream_draw(s, values);
        out[i] = float_of(values[i % 4]);
    }
}

static void fill_normal(tq_random_stream *s, float *out, size_t count)
{
    size_t work = 0;
    const double turn = 2 * 3.14159265358979323846;
    uint32_t values[4];
    for (size_t i = 0; i < count && !tq_stop_count(&work, 4); i += 2) {
        if (i % 4 == 0)
            tq_random_stream_draw(s, values);
        float u = float_of(values[i % 4]), angle = (float)(turn * (double)float_of(values[i % 4 + 1]));
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
        return tq_input_fail(node, 0, error, "has %d dimensions; tensors have %d at most",
                             (int)node->in[0]->shape.dims[0], TQ_DIMS);
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    tq_random_stream_start(node, &s->stream);
    s->fill = node->row.code == TQ_BuiltinOperator_RANDOM_UNIFORM ? fill_uniform : fill_normal;
    node->eval = eval_random;
    return tq_shape_from_values(node, 1u << 0, random_shape, error);
}
