/* SPDX-License-Identifier: Apache-2.0
 *
 * aeq.hadamard_rotation: rows [.., n], in blocks of hadamard_size elements, times the Hadamard matrix H / sqrt(size):
 * butterflies x + y, x - y of elements at distances 1, 2, 4 ..., then a multiplication by f32(1 / sqrt(size)).
 *
 * Source: LiteRT f6745779, tflite/kernels/hadamard_rotation.cc.  LiteRT reads integer inputs as floats, and does
 * nothing for a size that is no power of two.
 */
#include <math.h>
#include <string.h>

#include "ops/check.h"
#include "ops/custom_options.h"

typedef struct rotation {
    size_t size;
    float factor;
} rotation;

static void rotate(float *x, const rotation *s)
{
    size_t work = 0;
    for (size_t half = 1; half < s->size; half *= 2)
        for (size_t at = 0; at < s->size && !tq_stop_count(&work, half); at += 2 * half)
            for (size_t k = at; k < at + half; k++) {
                float a = x[k], b = x[k + half];
                x[k] = a + b;
                x[k + half] = a - b;
            }
    TQ_EACH (k, s->size)
        x[k] *= s->factor;
}

static tq_status eval_hadamard(tq_node *node, tq_error *error)
{
    (void)error;
    const rotation *s = node->state;
    size_t count = tq_tensor_count(node->in[0]);
    float *out = node->out[0]->data;
    if (count > 0)
        tq_copy(out, node->in[0]->data, count * sizeof *out);
    for (size_t i = 0; i < count; i += s->size)
        rotate(out + i, s);
    return TQ_OK;
}

tq_status tq_prepare_hadamard(tq_node *node, tq_error *error)
{
    rotation *s = NULL;
    int64_t size = 0;
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, 0, 2, 3, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_option_within(node, "hadamard_size", 1, 1 << 30, &size, error));
    int32_t row = node->in[0]->shape.dims[node->in[0]->shape.rank - 1];
    if ((size & (size - 1)) != 0 || row % size != 0)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "has hadamard_size %lld for rows of %d; it needs a power of two that "
                          "divides them",
                          (long long)size, (int)row);
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    s->size = (size_t)size;
    s->factor = (float)(1.0 / sqrt((double)size));
    node->eval = eval_hadamard;
    return tq_output_shape(node, 0, &node->in[0]->shape, error);
}
