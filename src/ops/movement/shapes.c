/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators on shapes: those that change a tensor's shape and none of its elements, and those whose result
 * is a shape.
 *
 *     SQUEEZE         drops dimensions of 1: those listed, or all
 *     EXPAND_DIMS     inserts a dimension of 1
 *     SHAPE, RANK     of the input; computed when operators are prepared
 *     BROADCAST_ARGS  the shape that two shapes broadcast to
 *
 * Source: LiteRT f6745779, tflite/kernels/{squeeze,expand_dims,shape,rank,broadcast_args}.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/movement/movement.h"

/* All of input 0, as it lies, to output 0. */
static tq_status move_all(tq_node *node, const tq_shape *shape, tq_error *error)
{
    tq_moves *moves = node->state;
    tq_move_all(&moves->items[0], 0, tq_move_bytes(node->in[0]), tq_tensor_count(node->in[0]));
    return tq_moves_shape(node, shape, error);
}

/* ---- SQUEEZE ---- */

static tq_status squeezed_dims(const tq_node *node, bool *drop, tq_error *error)
{
    const tq_shape *shape = &node->in[0]->shape;
    tq_vector listed = tq_get_vector(&node->options.table, TQ_SqueezeOptions_squeeze_dims);
    for (int d = 0; d < shape->rank && listed.count == 0; d++)
        drop[d] = shape->dims[d] == 1;
    for (uint32_t i = 0; i < listed.count; i++) {
        int axis = 0;
        TQ_TRY(tq_check_axis(node, tq_vector_i32(&listed, i), shape->rank, "squeeze_dims", &axis, error));
        if (shape->dims[axis] != 1)
            return tq_input_fail(node, 0, error, "has %d elements in dimension %d, which squeeze_dims drops",
                                 (int)shape->dims[axis], axis);
        drop[axis] = true;
    }
    return TQ_OK;
}

tq_status tq_prepare_squeeze(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    bool drop[TQ_DIMS] = {false};
    tq_shape shape = {0, {0}};
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    TQ_TRY(squeezed_dims(node, drop, error));
    for (int d = 0; d < node->in[0]->shape.rank; d++)
        if (!drop[d])
            shape.dims[shape.rank++] = node->in[0]->shape.dims[d];
    return move_all(node, &shape, error);
}

/* ---- EXPAND_DIMS ---- */

static tq_status expand_dims_shape(tq_node *node, tq_error *error)
{
    tq_shape shape = node->in[0]->shape;
    int axis = 0;
    TQ_TRY(tq_check_axis(node, tq_integer_at(node->in[1], 0), shape.rank + 1, "axis", &axis, error));
    memmove(shape.dims + axis + 1, shape.dims + axis, (size_t)(shape.rank - axis) * sizeof shape.dims[0]);
    shape.dims[axis] = 1;
    shape.rank++;
    return move_all(node, &shape, error);
}

tq_status tq_prepare_expand_dims(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_list(node, 1, 1, error));
    TQ_TRY(tq_check_rank(node, 0, 0, TQ_DIMS - 1, error));
    TQ_TRY(tq_check_same_scale(node, 0, 0, error));
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    return tq_shape_from_values(node, 1u << 1, expand_dims_shape, error);
}

/* ---- SHAPE and RANK ---- */

static void put_integer(const tq_tensor *out, size_t at, int64_t value)
{
    if (out->type == TQ_TensorType_INT64)
        ((int64_t *)out->data)[at] = value;
    else
        ((int32_t *)out->data)[at] = (int32_t)value;
}

static tq_status eval_shape(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_shape *shape = &node->in[0]->shape;
    for (int d = 0; d < shape->rank; d++)
        put_integer(node->out[0], (size_t)d, shape->dims[d]);
    return TQ_OK;
}

tq_status tq_prepare_shape(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_index_output(node, 0, tq_get_int(&node->options.table, TQ_ShapeOptions_out_type), error));
    tq_shape shape = {1, {node->in[0]->shape.rank}};
    node->eval = eval_shape;
    node->foldable = true;
    return tq_output_shape(node, 0, &shape, error);
}

static tq_status eval_rank(tq_node *node, tq_error *error)
{
    (void)error;
    put_integer(node->out[0], 0, node->in[0]->shape.rank);
    return TQ_OK;
}

tq_status tq_prepare_rank(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_output(node, 0, TQ_T(INT32), error));
    tq_shape shape = {0, {0}};
    node->eval = eval_rank;
    node->foldable = true;
    return tq_output_shape(node, 0, &shape, error);
}

/* ---- BROADCAST_ARGS ---- */

static tq_status eval_broadcast_args(tq_node *node, tq_error *error)
{
    const tq_tensor *out = node->out[0];
    size_t rank = tq_tensor_count(out);
    for (size_t d = 0; d < rank; d++) {
        int64_t dim = 1;
        for (int i = 0; i < 2; i++) {
            size_t own = tq_tensor_count(node->in[i]);
            if (d + own < rank)
                continue;
            int64_t other = tq_integer_at(node->in[i], d + own - rank);
            if (dim != 1 && other != 1 && other != dim)
                return tq_input_fail(node, i, error, "has %lld where the other shape has %lld",
                                     (long long)other, (long long)dim);
            dim = dim == 1 ? other : dim;
        }
        put_integer(out, d, dim);
    }
    return TQ_OK;
}

tq_status tq_prepare_broadcast_args(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_list(node, 0, -1, error));
    TQ_TRY(tq_check_input_like(node, 1, 0, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    for (int i = 0; i < 2; i++)
        TQ_TRY(tq_check_rank(node, i, 1, 1, error));
    tq_shape shape = node->in[0]->shape;
    if (node->in[1]->shape.dims[0] > shape.dims[0])
        shape = node->in[1]->shape;
    node->eval = eval_broadcast_args;
    return tq_output_shape(node, 0, &shape, error);
}
