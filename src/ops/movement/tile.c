/* SPDX-License-Identifier: Apache-2.0
 *
 * TILE: the input repeated multiples[d] times along each dimension d.
 * Source: LiteRT f6745779, tflite/kernels/tile.cc.
 */
#include "ops/check.h"
#include "ops/movement/movement.h"

static tq_status tile_shape(tq_node *node, tq_error *error)
{
    const tq_shape *in = &node->in[0]->shape;
    tq_shape shape = {in->rank, {0}};
    ptrdiff_t from[TQ_DIMS], steps[2 * TQ_DIMS];
    size_t dims[2 * TQ_DIMS];
    tq_strided *copy = tq_dense_move_begin(node, from);
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
    tq_dense_move_end(copy, 2 * in->rank, dims, steps);
    return TQ_OK;
}

tq_status tq_prepare_tile(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_list(node, 1, node->in[0]->shape.rank, error));
    TQ_TRY(tq_moves_new(node, 1, 0, &moves, error));
    return tq_shape_from_values(node, 1u << 1, tile_shape, error);
}
