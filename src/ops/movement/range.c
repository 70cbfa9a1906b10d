/* SPDX-License-Identifier: Apache-2.0
 *
 * RANGE: start, start + delta, ... below limit (above it for a negative delta).  Each element is the previous element
 * plus delta, rounded.
 * Source: LiteRT f6745779, tflite/kernels/range.cc.
 */
#include <math.h>

#include "ops/check.h"

static double range_float(const tq_tensor *tensor)
{
    return *(const float *)tensor->data;
}

/* The number of elements; negative where steps do not lead from start to limit. */
static double range_count(const tq_node *node)
{
    if (node->in[0]->type == TQ_TensorType_FLOAT32) {
        float start = *(const float *)node->in[0]->data, limit = *(const float *)node->in[1]->data;
        float delta = *(const float *)node->in[2]->data;
        bool leads = (start >= limit && delta < 0) || (start <= limit && delta > 0);
        return leads ? (double)ceilf(fabsf((limit - start) / delta)) : -1;
    }
    int64_t start = tq_integer_at(node->in[0], 0), limit = tq_integer_at(node->in[1], 0);
    int64_t delta = tq_integer_at(node->in[2], 0);
    if (delta == 0 || (delta < 0 ? start < limit : start > limit))
        return -1;
    uint64_t distance = delta < 0 ? (uint64_t)start - (uint64_t)limit : (uint64_t)limit - (uint64_t)start;
    uint64_t step = delta < 0 ? 0 - (uint64_t)delta : (uint64_t)delta;
    return (double)(distance / step) + (distance % step != 0);
}

static tq_status range_shape(tq_node *node, tq_error *error)
{
    double count = range_count(node);
    if (!(count >= 0 && count <= INT32_MAX)) {
        bool floats = node->in[0]->type == TQ_TensorType_FLOAT32;
        double values[3];
        for (int i = 0; i < 3; i++)
            values[i] = floats ? range_float(node->in[i]) : (double)tq_integer_at(node->in[i], 0);
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has start %g, limit %g and delta %g", values[0], values[1],
                          values[2]);
    }
    tq_shape shape = {1, {(int32_t)count}};
    return tq_output_shape(node, 0, &shape, error);
}

static tq_status eval_range(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_tensor *out = node->out[0];
    size_t count = tq_tensor_count(out);
    if (out->type == TQ_TensorType_FLOAT32) {
        float value = *(const float *)node->in[0]->data, delta = *(const float *)node->in[2]->data;
        TQ_EACH (i, count) {
            ((float *)out->data)[i] = value;
            value += delta;
        }
        return TQ_OK;
    }
    uint64_t value = (uint64_t)tq_integer_at(node->in[0], 0), delta = (uint64_t)tq_integer_at(node->in[2], 0);
    TQ_EACH (i, count) {
        if (out->type == TQ_TensorType_INT64)
            ((uint64_t *)out->data)[i] = value;
        else
            ((uint32_t *)out->data)[i] = (uint32_t)value;
        value += delta;
    }
    return TQ_OK;
}

tq_status tq_prepare_range(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT32) | TQ_T(INT64), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    for (int i = 0; i < 3; i++) {
        TQ_TRY(tq_check_input_like(node, i, 0, error));
        TQ_TRY(tq_check_single(node, i, error));
    }
    node->eval = eval_range;
    return tq_shape_from_values(node, 7, range_shape, error);
}
