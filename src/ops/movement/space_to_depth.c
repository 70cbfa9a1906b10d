/* SPDX-License-Identifier: Apache-2.0
 *
 * SPACE_TO_DEPTH: the channels of each b x b pixels become the channels of one pixel.  DEPTH_TO_SPACE: the inverse.
 * Source: LiteRT f6745779, tflite/kernels/{space_to_depth,depth_to_space}.cc.
 */
#include "ops/check.h"
#include "ops/movement/movement.h"

static tq_status check_block(const tq_node *node, int64_t block, tq_error *error)
{
    if (block < 1)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "block_size is %lld; it needs at least 1", (long long)block);
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
        return tq_input_fail(node, 0, error, "is %d x %d, not a multiple of block_size %lld", (int)in[1], (int)in[2],
                             (long long)block);
    tq_shape shape = {4, {in[0], (int32_t)(in[1] / block), (int32_t)(in[2] / block), 0}};
    TQ_TRY(tq_dim_of(node, in[3] > INT32_MAX / block / block ? -1 : in[3] * block * block, &shape.dims[3], error));
    ptrdiff_t from[TQ_DIMS];
    tq_strided *copy = tq_dense_move_begin(node, from);
    const size_t dims[] = {(size_t)in[0], (size_t)shape.dims[1], (size_t)shape.dims[2],
                           (size_t)block, (size_t)block,         (size_t)in[3]};
    const ptrdiff_t steps[] = {from[0], from[1] * (ptrdiff_t)block, from[2] * (ptrdiff_t)block, from[1], from[2],
                               from[3]};
    tq_dense_move_end(copy, 6, dims, steps);
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
        return tq_input_fail(node, 0, error, "has %d channels, not a multiple of block_size %lld squared", (int)in[3],
                             (long long)block);
    tq_shape shape = {4, {in[0], 0, 0, (int32_t)(in[3] / (block * block))}};
    TQ_TRY(tq_dim_of(node, in[1] * block, &shape.dims[1], error));
    TQ_TRY(tq_dim_of(node, in[2] * block, &shape.dims[2], error));
    ptrdiff_t from[TQ_DIMS];
    tq_strided *copy = tq_dense_move_begin(node, from);
    ptrdiff_t pixel = shape.dims[3] * from[3]; /* bytes of an output pixel */
    const size_t dims[] = {(size_t)in[0], (size_t)in[1], (size_t)block,
                           (size_t)in[2], (size_t)block, (size_t)shape.dims[3]};
    const ptrdiff_t steps[] = {from[0], from[1], pixel * (ptrdiff_t)block, from[2], pixel, from[3]};
    tq_dense_move_end(copy, 6, dims, steps);
    return tq_moves_shape(node, &shape, error);
}
