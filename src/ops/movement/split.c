/* SPDX-License-Identifier: Apache-2.0
 *
 * SPLIT and SPLIT_V split a tensor along a dimension.
 * Source: LiteRT f6745779, tflite/kernels/{split,split_v}.cc.
 */
#include "ops/check.h"
#include "ops/movement/axis_part.h"

/* Output i gets the next sizes[i] elements of input `from` along an axis. */
static tq_status split_at(tq_node *node, int from, int axis, const int64_t *sizes, tq_error *error)
{
    tq_moves *moves = node->state;
    const tq_shape *in = &node->in[from]->shape;
    size_t bytes = tq_move_bytes(node->in[from]);
    int64_t at = 0;
    for (int i = 0; i < node->out_count; i++) {
        int64_t size = sizes[i];
        tq_shape shape = *in;
        shape.dims[axis] = (int32_t)size;
        TQ_TRY(tq_output_shape(node, i, &shape, error));
        tq_move_out_of_part(&moves->items[i], tq_axis_part_of(in, axis, bytes, at, size), bytes);
        moves->items[i].input = from;
        moves->items[i].output = i;
        at += size;
    }
    return TQ_OK;
}

/* The sizes are stored behind the moves. */
static int64_t *sizes_of(tq_moves *moves)
{
    return (int64_t *)(void *)&moves->items[moves->count];
}

static tq_status split_new(tq_node *node, int from, tq_error *error)
{
    tq_moves *moves = NULL;
    size_t each = sizeof(tq_move) + sizeof(int64_t);
    TQ_TRY(tq_check_splits_elements(node, from, error));
    for (int i = 0; i < node->out_count; i++)
        TQ_TRY(tq_check_output_like(node, i, from, error));
    TQ_TRY(tq_node_state(node, sizeof(tq_moves) + (size_t)node->out_count * each, &moves, error));
    moves->count = node->out_count;
    node->eval = tq_eval_moves;
    return TQ_OK;
}

static tq_status split_shape(tq_node *node, tq_error *error)
{
    const tq_shape *in = &node->in[1]->shape;
    int axis = 0;
    TQ_TRY(tq_check_axis(node, tq_integer_at(node->in[0], 0), in->rank, "split_dim", &axis, error));
    if (in->dims[axis] % node->out_count != 0)
        return tq_input_fail(node, 1, error, "has %d elements in dimension %d, not a multiple of %d outputs",
                             (int)in->dims[axis], axis, node->out_count);
    int64_t *sizes = sizes_of(node->state);
    for (int i = 0; i < node->out_count; i++)
        sizes[i] = in->dims[axis] / node->out_count;
    return split_at(node, 1, axis, sizes, error);
}

static tq_status check_splits(const tq_node *node, int64_t num_splits, tq_error *error)
{
    if (num_splits != node->out_count)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %d outputs, and num_splits %lld", node->out_count,
                          (long long)num_splits);
    return TQ_OK;
}

tq_status tq_prepare_split(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_list(node, 0, 1, error));
    TQ_TRY(check_splits(node, tq_get_int(&node->options.table, TQ_SplitOptions_num_splits), error));
    TQ_TRY(split_new(node, 1, error));
    return tq_shape_from_values(node, 1u << 0, split_shape, error);
}

static tq_status split_v_shape(tq_node *node, tq_error *error)
{
    const tq_shape *in = &node->in[0]->shape;
    int axis = 0, rest = -1;
    TQ_TRY(tq_check_axis(node, tq_integer_at(node->in[2], 0), in->rank, "split_dim", &axis, error));
    int64_t *sizes = sizes_of(node->state), left = in->dims[axis];
    for (int i = 0; i < node->out_count; i++) {
        sizes[i] = tq_integer_at(node->in[1], (size_t)i);
        if (sizes[i] == -1 && rest < 0)
            rest = i;
        else if (sizes[i] < 0 || sizes[i] > left)
            return tq_input_fail(node, 1, error, "has %lld at %d, with %lld left of dimension %d", (long long)sizes[i],
                                 i, (long long)left, axis);
        else
            left -= sizes[i];
    }
    if (rest >= 0)
        sizes[rest] = left;
    else if (left != 0)
        return tq_input_fail(node, 1, error, "leaves %lld of the %d elements of dimension %d", (long long)left,
                             (int)in->dims[axis], axis);
    return split_at(node, 0, axis, sizes, error);
}

tq_status tq_prepare_split_v(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_list(node, 1, node->out_count, error));
    TQ_TRY(tq_check_list(node, 2, 1, error));
    TQ_TRY(check_splits(node, tq_get_int(&node->options.table, TQ_SplitVOptions_num_splits), error));
    TQ_TRY(split_new(node, 0, error));
    return tq_shape_from_values(node, 1u << 1 | 1u << 2, split_v_shape, error);
}
