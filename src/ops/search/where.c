/* SPDX-License-Identifier: Apache-2.0
 *
 * WHERE: the positions of all elements that are not 0, in order, as rows of INT64.
 * Source: LiteRT f6745779, tflite/kernels/where.cc.
 */
#include "ops/check.h"

static bool is_set(const tq_tensor *tensor, size_t i)
{
    switch (tensor->type) {
    case TQ_TensorType_FLOAT32: return ((const float *)tensor->data)[i] != 0;
    case TQ_TensorType_UINT32: return ((const uint32_t *)tensor->data)[i] != 0;
    default: return tq_integer_at(tensor, i) != 0;
    }
}

static tq_status where_shape(tq_node *node, tq_error *error)
{
    size_t count = 0, all = tq_tensor_count(node->in[0]);
    TQ_EACH (i, all)
        count += is_set(node->in[0], i);
    tq_shape shape = {2, {0, node->in[0]->shape.rank}};
    TQ_TRY(tq_dim_of(node, (int64_t)count, &shape.dims[0], error));
    return tq_output_shape(node, 0, &shape, error);
}

static tq_status eval_where(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_shape *shape = &node->in[0]->shape;
    int64_t *to = node->out[0]->data;
    const size_t count = tq_tensor_count(node->in[0]);
    TQ_EACH (i, count) {
        if (!is_set(node->in[0], i))
            continue;
        size_t position = i;
        for (int d = shape->rank - 1; d >= 0; d--) {
            to[d] = (int64_t)(position % (size_t)shape->dims[d]);
            position /= (size_t)shape->dims[d];
        }
        to += shape->rank;
    }
    return TQ_OK;
}

tq_status tq_prepare_where(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0,
                          TQ_T(BOOL) | TQ_T(FLOAT32) | TQ_T(INT64) | TQ_T(INT32) | TQ_T(INT16) | TQ_T(INT8) |
                              TQ_T(UINT8) | TQ_T(UINT32),
                          error));
    TQ_TRY(tq_check_rank(node, 0, 1, TQ_DIMS, error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(INT64), error));
    node->eval = eval_where;
    return tq_shape_from_values(node, 1u << 0, where_shape, error);
}
