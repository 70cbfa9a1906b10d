/* SPDX-License-Identifier: Apache-2.0
 *
 * RESHAPE: the same elements in another shape.
 *
 * The shape is input 1, where that is an INT32 vector, else the option new_shape; one dimension may be -1.
 * Source: LiteRT f6745779, tflite/kernels/reshape.cc.
 */
#include "ops/check.h"
#include "ops/movement/movement.h"

/* Computes the dimension `unknown` (-1: none) and sets the move and the output's shape. */
static tq_status complete(tq_node *node, tq_shape *shape, int unknown, tq_error *error)
{
    tq_moves *moves = node->state;
    size_t have = tq_tensor_count(node->in[0]);
    char from[64], to[64];
    if (unknown >= 0)
        shape->dims[unknown] = 1;
    const uint64_t need = tq_shape_size_saturated(shape);
    bool fits = need == have;
    if (unknown >= 0) {
        fits = need && need < TQ_SHAPE_SIZE_MAX && have % need == 0 && have / need <= INT32_MAX;
        shape->dims[unknown] = fits ? (int32_t)(have / need) : -1;
    }
    if (fits) {
        tq_move_all(&moves->items[0], 0, tq_move_bytes(node->in[0]), have);
        return tq_moves_shape(node, shape, error);
    }
    tq_shape_format(&node->in[0]->shape, from, sizeof from);
    tq_shape_format(shape, to, sizeof to);
    return tq_input_fail(node, 0, error, "has shape %s, whose %llu elements do not fit the new shape %s", from,
                         (unsigned long long)have, to);
}

static tq_status take_dims(tq_node *node, int count, int64_t (*dim)(const tq_node *, int), tq_error *error)
{
    tq_shape shape = {.rank = count};
    int unknown = -1;
    if (count > TQ_DIMS)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "the new shape has %d dimensions; tq takes %d", count, TQ_DIMS);
    for (int i = 0; i < count; i++) {
        int64_t size = dim(node, i);
        if (size < -1 || size > INT32_MAX || (size == -1 && unknown >= 0))
            return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                              "dimension %d of the new shape is %lld; it needs to be 0 or more, or once -1", i,
                              (long long)size);
        shape.dims[i] = (int32_t)size;
        if (size == -1)
            unknown = i;
    }
    return complete(node, &shape, unknown, error);
}

static int64_t dim_of_input(const tq_node *node, int i)
{
    return tq_integer_at(node->in[1], (size_t)i);
}

static int64_t dim_of_options(const tq_node *node, int i)
{
    tq_vector dims = tq_get_vector(&node->options.table, TQ_ReshapeOptions_new_shape);
    return tq_vector_i32(&dims, (size_t)i);
}

static tq_status shape_from_input(tq_node *node, tq_error *error)
{
    return take_dims(node, (int)tq_tensor_count(node->in[1]), dim_of_input, error);
}

tq_status tq_prepare_reshape(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    const tq_tensor *shape = node->in_count == 2 ? node->in[1] : NULL;
    if (shape && shape->shape.rank == 1 && shape->type == TQ_TensorType_INT32) {
        if (shape->shape.dims[0] > TQ_DIMS)
            return tq_input_fail(node, 1, error, "has %d dimensions of the new shape; tq takes %d",
                                 shape->shape.dims[0], TQ_DIMS);
        return tq_shape_from_values(node, 1u << 1, shape_from_input, error);
    }
    tq_vector dims = tq_get_vector(&node->options.table, TQ_ReshapeOptions_new_shape);
    /* Old converters write [0] for a scalar. */
    bool scalar = dims.count == 1 && tq_vector_i32(&dims, 0) == 0;
    int count = scalar ? 0 : dims.count > TQ_DIMS ? TQ_DIMS + 1 : (int)dims.count;
    return take_dims(node, count, dim_of_options, error);
}
