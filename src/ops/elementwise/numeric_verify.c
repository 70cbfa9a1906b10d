/* SPDX-License-Identifier: Apache-2.0
 *
 * NumericVerify: the dequantized value (or the float16) less a reference value, as float32.  With log_if_failed and a
 * tolerance of 0.1 or more, a difference beyond f32(tolerance * scale) is an error.
 *
 * Source: LiteRT f6745779, tflite/kernels/numeric_verify.cc, which for constant quantized values repeats the first
 * run's differences in every later run; tq computes them anew.
 */
#include <math.h>

#include "kernels/half.h"
#include "ops/check.h"
#include "ops/custom_options.h"

typedef struct verification {
    float tolerance;
    bool strict;
} verification;

static float real_at(const tq_tensor *tensor, size_t i)
{
    if (tensor->type == TQ_TensorType_FLOAT16)
        return tq_half_to_float(((const uint16_t *)tensor->data)[i]);
    int64_t difference = tq_integer_at(tensor, i) - tq_zero_point_of(tensor);
    return (float)((double)tq_scale_of(tensor) * (double)difference);
}

static tq_status eval_verify(tq_node *node, tq_error *error)
{
    const verification *s = node->state;
    const float *reference = node->in[1]->data;
    float *out = node->out[0]->data, most = s->tolerance * tq_scale_of(node->in[0]);
    const size_t count = tq_tensor_count(node->in[0]);
    TQ_EACH (i, count) {
        float found = real_at(node->in[0], i);
        out[i] = found - reference[i];
        if (s->strict && fabsf(out[i]) > most)
            return tq_op_fail(node, error, TQ_BAD_DATA, "element %zu is %g, and %g in the reference: further than %g",
                              i, (double)found, (double)reference[i], (double)most);
    }
    return TQ_OK;
}

tq_status tq_prepare_numeric_verify(tq_node *node, tq_error *error)
{
    verification *s = NULL;
    int64_t log = 0;
    TQ_TRY(tq_check_input(node, 0, TQ_T(UINT8) | TQ_T(INT8) | TQ_T(INT16) | TQ_T(FLOAT16), error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_output_like(node, 0, 1, error));
    if (node->in[0]->type != TQ_TensorType_FLOAT16) {
        TQ_TRY(tq_check_input_scale(node, 0, error));
        if (node->in[0]->quantization.count > 1)
            return tq_input_fail(node, 0, error, "has a scale for each channel; it needs one for all");
    }
    if (tq_tensor_count(node->in[0]) != tq_tensor_count(node->in[1]))
        return tq_input_fail(node, 1, error, "has %zu elements to verify %zu", tq_tensor_count(node->in[1]),
                             tq_tensor_count(node->in[0]));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    TQ_TRY(tq_option_float(node, "tolerance", &s->tolerance, error));
    TQ_TRY(tq_option_int(node, "log_if_failed", 0, &log, error));
    s->strict = log != 0 && (double)s->tolerance >= 0.1;
    node->eval = eval_verify;
    return tq_output_shape(node, 0, &node->in[0]->shape, error);
}
