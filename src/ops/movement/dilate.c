/* SPDX-License-Identifier: Apache-2.0
 *
 * DILATE         gaps between elements
 * STABLEHLO_PAD  gaps between elements and a border, which may be negative and then crops
 *
 * The input's elements lie `step` apart, from `low` on, in a tensor that is filled with one value.
 * Source: LiteRT f6745779, tflite/kernels/{stablehlo_pad,dilate}.cc.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/movement/movement.h"

/* The input's elements that lie inside the output, in one dimension: the first, their number, and the first's index in
   the output. */
static void spread_extent(int64_t dim, int64_t step, int64_t low, int64_t out, int64_t *first, int64_t *count,
                          int64_t *at)
{
    *first = low >= 0 ? 0 : (-low + step - 1) / step;
    *at = low + *first * step;
    int64_t room = *at < out ? (out - 1 - *at) / step + 1 : 0;
    *count = dim - *first < room ? dim - *first : room;
    *count = *count < 0 ? 0 : *count;
}

static tq_status spread(tq_node *node, int value, const int64_t *steps, const int64_t *low, const tq_shape *shape,
                        tq_error *error)
{
    tq_moves *moves = node->state;
    const tq_shape *in = &node->in[0]->shape;
    size_t bytes = tq_move_bytes(node->in[0]);
    ptrdiff_t from[TQ_DIMS], to[TQ_DIMS];
    int64_t first[TQ_DIMS], count[TQ_DIMS], at[TQ_DIMS];
    bool none = false;
    TQ_TRY(tq_output_shape(node, 0, shape, error));
    tq_move_fill(&moves->items[0], value, bytes, tq_shape_size(shape));
    tq_dense_strides(in, bytes, from);
    tq_dense_strides(shape, bytes, to);
    for (int d = 0; d < in->rank; d++) {
        spread_extent(in->dims[d], steps[d], low[d], shape->dims[d], &first[d], &count[d], &at[d]);
        none |= count[d] == 0;
    }
    tq_strided *copy = &moves->items[1].copy;
    tq_strided_begin(copy, bytes);
    for (int d = 0; d < in->rank && !none; d++) {
        copy->from_at += (ptrdiff_t)first[d] * from[d];
        copy->to_at += (ptrdiff_t)at[d] * to[d];
        tq_strided_dim(copy, (size_t)count[d], from[d], count[d] > 1 ? (ptrdiff_t)steps[d] * to[d] : 0);
    }
    if (none)
        tq_strided_dim(copy, 0, 0, 0);
    tq_strided_end(copy);
    return TQ_OK;
}

static tq_status check_pad_value(const tq_node *node, int i, tq_error *error)
{
    TQ_TRY(tq_check_input_like(node, i, 0, error));
    if (tq_tensor_count(node->in[i]) != 1)
        return tq_input_fail(node, i, error, "has %zu elements; it needs 1", tq_tensor_count(node->in[i]));
    return TQ_OK;
}

static tq_status check_pad_lists(const tq_node *node, const tq_vector *lists, tq_error *error)
{
    for (int k = 0; k < 3; k++)
        if (lists[k].count != (uint32_t)node->in[0]->shape.rank)
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has paddings for %u dimensions; the input has %d",
                              (unsigned)lists[k].count, (int)node->in[0]->shape.rank);
    return TQ_OK;
}

tq_status tq_prepare_stablehlo_pad(tq_node *node, tq_error *error)
{
    const tq_table *options = &node->options.table;
    const tq_vector lists[] = {tq_get_vector(options, TQ_StablehloPadOptions_edge_padding_low),
                               tq_get_vector(options, TQ_StablehloPadOptions_edge_padding_high),
                               tq_get_vector(options, TQ_StablehloPadOptions_interior_padding)};
    tq_moves *moves = NULL;
    tq_shape shape = node->in_count > 0 && node->in[0] ? node->in[0]->shape : (tq_shape){0, {0}};
    int64_t steps[TQ_DIMS], lows[TQ_DIMS];
    const int64_t far = INT32_MAX;
    TQ_TRY(tq_moves_new(node, 2, 0, &moves, error));
    TQ_TRY(check_pad_value(node, 1, error));
    TQ_TRY(check_pad_lists(node, lists, error));
    for (int d = 0; d < shape.rank; d++) {
        int64_t low = tq_vector_i64(&lists[0], (size_t)d), high = tq_vector_i64(&lists[1], (size_t)d);
        int64_t gap = tq_vector_i64(&lists[2], (size_t)d);
        if (low < -far || low > far || high < -far || high > far || gap < 0 || gap > far)
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "pads dimension %d by %lld, %lld and %lld", d,
                              (long long)low, (long long)high, (long long)gap);
        int64_t gaps = shape.dims[d] > 0 ? (shape.dims[d] - 1) * gap : 0;
        TQ_TRY(tq_dim_of(node, shape.dims[d] + gaps + low + high, &shape.dims[d], error));
        steps[d] = gap + 1;
        lows[d] = low;
    }
    return spread(node, 1, steps, lows, &shape, error);
}

static tq_status dilate_shape(tq_node *node, tq_error *error)
{
    tq_shape shape = node->in[0]->shape;
    int64_t steps[TQ_DIMS], lows[TQ_DIMS] = {0};
    for (int d = 0; d < shape.rank; d++) {
        steps[d] = tq_integer_at(node->in[1], (size_t)d);
        if (steps[d] < 1 || steps[d] > INT32_MAX)
            return tq_input_fail(node, 1, error, "has %lld for dimension %d; it needs at least 1", (long long)steps[d],
                                 d);
        int64_t dim = shape.dims[d] > 0 ? (shape.dims[d] - 1) * steps[d] + 1 : 0;
        TQ_TRY(tq_dim_of(node, dim, &shape.dims[d], error));
    }
    return spread(node, 2, steps, lows, &shape, error);
}

tq_status tq_prepare_dilate(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_list(node, 1, node->in[0]->shape.rank, error));
    TQ_TRY(check_pad_value(node, 2, error));
    TQ_TRY(tq_moves_new(node, 2, 0, &moves, error));
    return tq_shape_from_values(node, 1u << 1, dilate_shape, error);
}
