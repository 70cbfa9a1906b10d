/* SPDX-License-Identifier: Apache-2.0
 *
 * BUCKETIZE: for each value the number of ascending boundaries that are not above it; all of them for NaN.
 *
 * Source: LiteRT f6745779, tflite/kernels/bucketize.cc.  Integers are compared as float32.
 */
#include "ops/check.h"

typedef struct buckets {
    size_t count;
    float *boundaries;
} buckets;

/* The index of the first boundary above x.  float64 holds all input values: integers are rounded to float32 first. */
static int32_t bucket_of(const buckets *b, double x)
{
    size_t low = 0, count = b->count;
    while (count > 0) {
        size_t half = count / 2;
        if (x < (double)b->boundaries[low + half]) {
            count = half;
        } else {
            low += half + 1;
            count -= half + 1;
        }
    }
    return (int32_t)low;
}

static double value_at(const tq_tensor *tensor, size_t i)
{
    switch (tensor->type) {
    case TQ_TensorType_FLOAT32: return (double)((const float *)tensor->data)[i];
    case TQ_TensorType_FLOAT64: return ((const double *)tensor->data)[i];
    default: return (double)(float)tq_integer_at(tensor, i);
    }
}

static tq_status eval_bucketize(tq_node *node, tq_error *error)
{
    (void)error;
    int32_t *out = node->out[0]->data;
    const size_t count = tq_tensor_count(node->in[0]);
    TQ_EACH (i, count)
        out[i] = bucket_of(node->state, value_at(node->in[0], i));
    return TQ_OK;
}

tq_status tq_prepare_bucketize(tq_node *node, tq_error *error)
{
    buckets *b = NULL;
    tq_vector boundaries = tq_get_vector(&node->options.table, TQ_BucketizeOptions_boundaries);
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(FLOAT64) | TQ_T(INT32) | TQ_T(INT64), error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(INT32), error));
    TQ_TRY(tq_node_state(node, sizeof *b, &b, error));
    b->count = boundaries.count;
    TQ_TRY(tq_node_memory(node, boundaries.count, sizeof *b->boundaries, &b->boundaries, error));
    for (size_t i = 0; i < b->count; i++) {
        b->boundaries[i] = tq_vector_f32(&boundaries, i);
        if (i > 0 && b->boundaries[i] < b->boundaries[i - 1])
            return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                              "has boundary %zu below the one before; boundaries need to ascend", i);
    }
    node->eval = eval_bucketize;
    return tq_output_shape(node, 0, &node->in[0]->shape, error);
}
