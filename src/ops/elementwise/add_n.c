/* SPDX-License-Identifier: Apache-2.0
 *
 * ADD_N: the sum of any number of tensors.  Integers wrap.
 * Source: LiteRT f6745779, tflite/kernels/add_n.cc.
 */
#include <float.h>
#include <string.h>

#include "ops/check.h"

/* Infinite sums become the largest finite float of their sign, as in the runtime. */
static inline float add_bounded(float a, float b)
{
    float sum = a + b;
    sum = sum < -FLT_MAX ? -FLT_MAX : sum;
    return FLT_MAX < sum ? FLT_MAX : sum;
}

static tq_status eval_add_n(tq_node *node, tq_error *error)
{
    (void)error;
    size_t count = tq_tensor_count(node->out[0]);
    tq_copy(node->out[0]->data, node->in[0]->data, node->out[0]->bytes);
    for (int k = 1; k < node->in_count; k++) {
        if (node->out[0]->type == TQ_TensorType_FLOAT32) {
            float *out = node->out[0]->data;
            const float *in = node->in[k]->data;
            TQ_EACH (i, count)
                out[i] = add_bounded(out[i], in[i]);
        } else {
            uint32_t *out = node->out[0]->data;
            const uint32_t *in = node->in[k]->data;
            TQ_EACH (i, count)
                out[i] += in[i];
        }
    }
    return TQ_OK;
}

tq_status tq_prepare_add_n(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT32), error));
    for (int i = 1; i < node->in_count; i++) {
        TQ_TRY(tq_check_input_like(node, i, 0, error));
        if (!tq_shape_equal(&node->in[i]->shape, &node->in[0]->shape))
            return tq_input_fail(node, i, error, "has another shape than input 0; ADD_N does not broadcast");
    }
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    node->eval = eval_add_n;
    return tq_output_shape(node, 0, &node->in[0]->shape, error);
}
