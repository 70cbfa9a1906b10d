/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements in another order, or repeated: one strided copy each.
 *
 *     TRANSPOSE       output dimension d is input dimension perm[d]
 *     REVERSE_V2      the listed dimensions run backwards
 *     TILE            dimension d repeated multiples[d] times
 *     BROADCAST_TO    dimensions of 1 repeated to a shape, and new ones put in front
 *     SPACE_TO_DEPTH  b x b pixels to the channels of one;  DEPTH_TO_SPACE: back
 *
 * Source: LiteRT f6745779, tflite/kernels/{transpose,reverse,tile,broadcast_to,space_to_depth,
 * depth_to_space}.cc.
 */
#include "ops/check.h"
#include "ops/movement/movement.h"

/* A move of input 0 to a dense output: begun, with the source's strides in `from`. */
static tq_strided *begin_move(tq_node *node, ptrdiff_t *from)
{
    tq_moves *moves = node->state;
    tq_strided *copy = &moves->items[0].copy;
    size_t bytes = tq_move_bytes(node->in[0]);
    tq_dense_strides(&node->in[0]->shape, bytes, from);
    tq_strided_begin(copy, bytes);
    return copy;
}

/* Ends a move of dimensions `dims`, which step through the source by `from` and lie densely in the output. */
static void end_move(tq_strided *copy, int rank, const size_t *dims, const ptrdiff_t *from)
{
    ptrdiff_t to[TQ_STRIDED_DIMS], stride = (ptrdiff_t)copy->run;
    for (int d = 0; d < rank; d++)
        stride = dims[d] == 0 ? 0 : stride; /* nothing to move, and no overflow */
    for (int d = rank - 1; d >= 0; d--) {
        to[d] = stride;
        stride = stride == 0 ? 0 : stride * (ptrdiff_t)dims[d];
    }
    for (int d = 0; d < rank; d++)
        tq_strided_dim(copy, dims[d], from[d], to[d]);
    tq_strided_end(copy);
}

/* ---- TRANSPOSE ---- */

static tq_status transpose_shape(tq_node *node, tq_error *error)
{
    const tq_shape *in = &node->in[0]->shape;
    tq_shape shape = {in->rank, {0}};
    ptrdiff_t from[TQ_DIMS], steps[TQ_DIMS];
    size_t dims[TQ_DIMS];
    unsigned seen = 0;
    tq_strided *copy = begin_move(node, from);
    for (int d = 0; d < in->rank; d++) {
        int axis = 0;
        TQ_TRY(tq_check_axis(node, tq_integer_at(node->in[1], (size_t)d), in->rank, "perm", &axis, error));
        if (seen >> axis & 1)
            return tq_input_fail(node, 1, error, "names dimension %d twice; it needs a permutation", axis);
        seen |= 1u << axis;
        shape.dims[d] = in->dims[axis];
        dims[d] = (size_t)in->dims[axis];
        steps[d] = from[axis];
    }
    end_move(copy, in->rank, dims, steps);
    return tq_moves_shape(node, &shape, error);
}

tq_status tq_prepare_transpose(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_list(node, 1, node->in[0]->shape.rank, error));
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    return tq_shape_from_values(node, 1u << 1, transpose_shape, error);
}

/* ---- REVERSE_V2 ---- */

static tq_status reverse_moves(tq_node *node, tq_error *error)
{
    const tq_shape *in = &node->in[0]->shape;
    ptrdiff_t from[TQ_DIMS];
    size_t dims[TQ_DIMS];
    unsigned seen = 0;
    tq_strided *copy = begin_move(node, from);
    for (int d = 0; d < in->rank; d++)
        dims[d] = (size_t)in->dims[d];
    for (size_t i = 0; i < tq_tensor_count(node->in[1]); i++) {
        int axis = 0;
        TQ_TRY(tq_check_axis(node, tq_integer_at(node->in[1], i), in->rank, "axis", &axis, error));
        if (seen >> axis & 1)
            return tq_input_fail(node, 1, error, "names dimension %d twice", axis);
        seen |= 1u << axis;
        if (dims[axis] > 0)
            copy->from_at += (ptrdiff_t)(dims[axis] - 1) * from[axis];
        from[axis] = -from[axis];
    }
    end_move(copy, in->rank, dims, from);
    return TQ_OK;
}

static tq_status eval_reverse(tq_node *node, tq_error *error)
{
    TQ_TRY(reverse_moves(node, error));
    return tq_eval_moves(node, error);
}

tq_status tq_prepare_reverse_v2(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_list(node, 1, -1, error));
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    if (tq_is_constant(node->in[1]))
        TQ_TRY(reverse_moves(node, error));
    else if (node->in[0]->type == TQ_TensorType_STRING)
        return tq_input_fail(node, 1, error, "is not constant, as it must be where strings are reversed");
    else
        node->eval = eval_reverse;
    return tq_moves_shape(node, &node->in[0]->shape, error);
}

/* ---- TILE ---- */

static tq_status tile_shape(tq_node *node, tq_error *error)
{
    const tq_shape *in = &node->in[0]->shape;
    tq_shape shape = {in->rank, {0}};
    ptrdiff_t from[TQ_DIMS], steps[2 * TQ_DIMS];
    size_t dims[2 * TQ_DIMS];
    tq_strided *copy = begin_move(node, from);
    for (int d = 0; d < in->rank; d++) {
        int64_t times = tq_integer_at(node->in[1], (size_t)d);
        if (times < 0 || times > INT32_MAX)
            return tq_input_fail(node, 1, error, "repeats dimension %d %lld times", d, (long long)times);
        TQ_TRY(tq_dim_of(node, times * in->dims[d], &shape.dims[d], error));
        dims[2 * d] = (size_t)times;
        steps[2 * d] = 0;
        dims[2 * d + 1] = (size_t)in->dims[d];
        steps[2 * d + 1] = from[d];
    }
    TQ_TRY(tq_moves_shape(node, &shape, error));
    end_move(copy, 2 * in->rank, dims, steps);
    return TQ_OK;
}

tq_status tq_prepare_tile(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_list(node, 1, node->in[0]->shape.rank, error));
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    return tq_shape_from_values(node, 1u << 1, tile_shape, error);
}

/* ---- BROADCAST_TO ---- */

static tq_status broadcast_shape(tq_node *node, tq_error *error)
{
    const tq_shape *in = &node->in[0]->shape;
    tq_shape shape = {(int32_t)tq_tensor_count(node->in[1]), {0}};
    ptrdiff_t from[TQ_DIMS], steps[TQ_DIMS];
    size_t dims[TQ_DIMS];
    int new_dims = shape.rank - in->rank;
    tq_strided *copy = begin_move(node, from);
    for (int d = 0; d < shape.rank; d++) {
        TQ_TRY(tq_dim_of(node, tq_integer_at(node->in[1], (size_t)d), &shape.dims[d], error));
        int32_t own = d < new_dims ? 1 : in->dims[d - new_dims];
        if (own != 1 && own != shape.dims[d])
            return tq_input_fail(node, 0, error, "has %d elements in dimension %d, which do not broadcast to %d",
                                 (int)own, d - new_dims, (int)shape.dims[d]);
        dims[d] = (size_t)shape.dims[d];
        steps[d] = d < new_dims || own == 1 ? 0 : from[d - new_dims];
    }
    TQ_TRY(tq_moves_shape(node, &shape, error));
    end_move(copy, shape.rank, dims, steps);
    return TQ_OK;
}

tq_status tq_prepare_broadcast_to(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_list(node, 1, -1, error));
    size_t rank = tq_tensor_count(node->in[1]);
    if (rank > TQ_DIMS || rank < (size_t)node->in[0]->shape.rank)
        return tq_input_fail(node, 1, error, "has %zu elements; it needs %d to %d", rank,
                             (int)node->in[0]->shape.rank, TQ_DIMS);
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    return tq_shape_from_values(node, 1u << 1, broadcast_shape, error);
}

/* ---- SPACE_TO_DEPTH and DEPTH_TO_SPACE ---- */

static tq_status check_block(const tq_node *node, int64_t block, tq_error *error)
{
    if (block < 1)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "block_size is %lld; it needs at least 1",
                          (long long)block);
    return TQ_OK;
}

tq_status tq_prepare_space_to_depth(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_rank(node, 0, 4, 4, error));
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    const int32_t *in = node->in[0]->shape.dims;
    int64_t block = tq_get_int(&node->options.table, TQ_SpaceToDepthOptions_block_size);
    TQ_TRY(check_block(node, block, error));
    if (in[1] % block != 0 || in[2] % block != 0)
        return tq_input_fail(node, 0, error, "is %d x %d, not a multiple of block_size %lld", (int)in[1],
                             (int)in[2], (long long)block);
    tq_shape shape = {4, {in[0], (int32_t)(in[1] / block), (int32_t)(in[2] / block), 0}};
    TQ_TRY(tq_dim_of(node, in[3] > INT32_MAX / block / block ? -1 : in[3] * block * block, &shape.dims[3], error));
    ptrdiff_t from[TQ_DIMS];
    tq_strided *copy = begin_move(node, from);
    const size_t dims[] = {(size_t)in[0], (size_t)shape.dims[1], (size_t)shape.dims[2], (size_t)block,
                           (size_t)block, (size_t)in[3]};
    const ptrdiff_t steps[] = {from[0], from[1] * (ptrdiff_t)block, from[2] * (ptrdiff_t)block, from[1], from[2],
                               from[3]};
    end_move(copy, 6, dims, steps);
    return tq_moves_shape(node, &shape, error);
}

tq_status tq_prepare_depth_to_space(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_rank(node, 0, 4, 4, error));
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    const int32_t *in = node->in[0]->shape.dims;
    int64_t block = tq_get_int(&node->options.table, TQ_DepthToSpaceOptions_block_size);
    TQ_TRY(check_block(node, block, error));
    if (block > 46340 || in[3] % (block * block) != 0)
        return tq_input_fail(node, 0, error, "has %d channels, not a multiple of block_size %lld squared",
                             (int)in[3], (long long)block);
    tq_shape shape = {4, {in[0], 0, 0, (int32_t)(in[3] / (block * block))}};
    TQ_TRY(tq_dim_of(node, in[1] * block, &shape.dims[1], error));
    TQ_TRY(tq_dim_of(node, in[2] * block, &shape.dims[2], error));
    ptrdiff_t from[TQ_DIMS];
    tq_strided *copy = begin_move(node, from);
    ptrdiff_t pixel = shape.dims[3] * from[3]; /* of the output: as many channels as it has */
    const size_t dims[] = {(size_t)in[0], (size_t)in[1], (size_t)block, (size_t)in[2], (size_t)block,
                           (size_t)shape.dims[3]};
    const ptrdiff_t steps[] = {from[0], from[1], pixel * (ptrdiff_t)block, from[2], pixel, from[3]};
    end_move(copy, 6, dims, steps);
    return tq_moves_shape(node, &shape, error);
}
