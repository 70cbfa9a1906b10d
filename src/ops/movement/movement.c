/* SPDX-License-Identifier: Apache-2.0
 *
 * The moves of movement.h.
 */
#include "ops/movement/movement.h"

#include <string.h>

#include "base/bytes.h"
#include "ops/check.h"
#include "model/tensor.h"

size_t tq_move_bytes(const tq_tensor *tensor)
{
    return tensor->type == TQ_TensorType_STRING ? 1 : tq_element_bytes(tensor->type);
}

void tq_dense_strides(const tq_shape *shape, size_t bytes, ptrdiff_t *out)
{
    /* a graph's input may have more than memory holds until the run, which fails, asks for its memory */
    const uint64_t size = tq_shape_size_saturated(shape);
    const bool none = size == 0 || size == TQ_SHAPE_SIZE_MAX || (bytes && size > PTRDIFF_MAX / bytes);
    ptrdiff_t stride = none ? 0 : (ptrdiff_t)bytes;
    for (int d = shape->rank - 1; d >= 0; d--) {
        out[d] = stride;
        stride = none ? 0 : stride * shape->dims[d];
    }
}

void tq_move_fill(tq_move *move, int input, size_t bytes, size_t count)
{
    move->input = input;
    tq_strided_begin(&move->copy, bytes);
    tq_strided_dim(&move->copy, count, 0, (ptrdiff_t)bytes);
    tq_strided_end(&move->copy);
}

void tq_move_all(tq_move *move, int input, size_t bytes, size_t count)
{
    move->input = input;
    tq_strided_begin(&move->copy, bytes);
    tq_strided_dim(&move->copy, count, (ptrdiff_t)bytes, (ptrdiff_t)bytes);
    tq_strided_end(&move->copy);
}

/* ---- strings ---- */

/* Opens a string tensor in eval.  Its bytes are checked each time: they may be a user's. */
static tq_status open_strings(const tq_node *node, const tq_tensor *in, tq_strings *out, tq_error *error)
{
    tq_bytes bytes = {in->data, in->bytes};
    TQ_TRY(tq_strings_open(bytes, out, error));
    if (out->count < tq_tensor_count(in))
        return tq_op_fail(node, error, TQ_BAD_STRINGS, "a string tensor of %zu elements holds %u", tq_tensor_count(in),
                          (unsigned)out->count);
    return TQ_OK;
}

static tq_bytes string_at(const tq_strings *strings, size_t index)
{
    tq_bytes none = {NULL, 0};
    return index == SIZE_MAX ? none : tq_strings_item(strings, (uint32_t)index);
}

uint64_t tq_shape_size_saturated(const tq_shape *shape)
{
    uint64_t size = 1;
    for (int i = 0; i < shape->rank; i++) {
        const uint64_t n = (uint64_t)shape->dims[i];
        size = n && size > TQ_SHAPE_SIZE_MAX / n ? TQ_SHAPE_SIZE_MAX : size * n;
    }
    return size;
}

tq_status tq_output_strings(tq_node *node, int output, const tq_shape *shape, const tq_tensor *in,
                            tq_string_source source, const void *context, tq_error *error)
{
    tq_strings strings = {{NULL, 0}, 0};
    TQ_TRY(open_strings(node, in, &strings, error));
    if (tq_shape_size_saturated(shape) > INT32_MAX / 4)
        return tq_output_fail(node, output, error, "would take more than 2 GB of strings");
    size_t count = tq_shape_size(shape);
    uint64_t header = 4 * ((uint64_t)count + 2), total = header;
    if (header <= INT32_MAX)
        TQ_TRY(tq_node_has_room(node, header, error)); /* without room counting could take minutes in vain */
    for (size_t i = 0; i < count && total <= INT32_MAX && !tq_stop_after(1); i++)
        total += string_at(&strings, source(context, i)).size;
    if (tq_stop_now())
        return TQ_INTERRUPTED; /* the sum is incomplete */
    if (total > INT32_MAX)
        return tq_output_fail(node, output, error, "would take more than 2 GB of strings");
    TQ_TRY(tq_output_bytes(node, output, shape, total, error));
    unsigned char *to = node->out[output]->data;
    int32_t at = (int32_t)header, n = (int32_t)count;
    memcpy(to, &n, 4);
    memcpy(to + 4, &at, 4);
    TQ_EACH (i, count) {
        tq_bytes item = string_at(&strings, source(context, i));
        if (item.size)
            memcpy(to + at, item.data, item.size);
        at += (int32_t)item.size;
        memcpy(to + 4 * (i + 2), &at, 4);
    }
    return TQ_OK;
}

static size_t moved_from(const void *context, size_t i)
{
    return (size_t)tq_strided_source(context, i, 1);
}

static tq_status eval_strings(tq_node *node, tq_error *error)
{
    const tq_moves *moves = node->state;
    const tq_move *move = moves->items;
    return tq_output_strings(node, move->output, &moves->shape, node->in[move->input], moved_from, &move->copy, error);
}

/* ---- all other types ---- */

tq_status tq_eval_moves(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_moves *moves = node->state;
    for (int i = 0; i < moves->count && !tq_stop_after(1); i++) {
        const tq_move *move = &moves->items[i];
        if (node->out[move->output] == NULL)
            continue;
        const void *from = move->input == TQ_MOVE_FILL ? moves->fill : node->in[move->input]->data;
        void *to = node->out[move->output]->data;
        if (from == to && node->op->flags & TQ_OP_SAME)
            continue;
        tq_strided_copy(&move->copy, from, to, node->threads);
    }
    return TQ_OK;
}

tq_status tq_moves_shape(tq_node *node, const tq_shape *shape, tq_error *error)
{
    tq_moves *moves = node->state;
    moves->shape = *shape;
    if (node->out[0]->type != TQ_TensorType_STRING)
        return tq_output_shape(node, 0, shape, error);
    tq_output_later(node, 0);
    return TQ_OK;
}

tq_status tq_moves_new(tq_node *node, int count, int like, tq_moves **out, tq_error *error)
{
    const tq_tensor *in = node->in[like];
    bool strings = in->type == TQ_TensorType_STRING;
    if (tq_move_bytes(in) == 0 || (strings && (count != 1 || node->out_count != 1)))
        return tq_input_fail(node, like, error, "is %s, which this operator does not move", tq_type_name(in->type));
    for (int i = 0; i < node->out_count; i++)
        TQ_TRY(tq_check_output_like(node, i, like, error));
    TQ_TRY(tq_node_state(node, sizeof(tq_moves) + (size_t)count * sizeof(tq_move), out, error));
    (*out)->count = count;
    node->eval = strings ? eval_strings : tq_eval_moves;
    return TQ_OK;
}

/* ---- single moves ---- */

tq_strided *tq_dense_move_begin(tq_node *node, ptrdiff_t *from)
{
    tq_moves *moves = node->state;
    tq_strided *copy = &moves->items[0].copy;
    size_t bytes = tq_move_bytes(node->in[0]);
    tq_dense_strides(&node->in[0]->shape, bytes, from);
    tq_strided_begin(copy, bytes);
    return copy;
}

void tq_dense_move_end(tq_strided *copy, int rank, const size_t *dims, const ptrdiff_t *from)
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

tq_status tq_moves_reshape(tq_node *node, const tq_shape *shape, tq_error *error)
{
    tq_moves *moves = node->state;
    tq_move_all(&moves->items[0], 0, tq_move_bytes(node->in[0]), tq_tensor_count(node->in[0]));
    return tq_moves_shape(node, shape, error);
}

tq_status tq_eval_copy(tq_node *node, tq_error *error)
{
    (void)error;
    if (node->out[0]->data != node->in[0]->data) /* BITCAST is TQ_OP_SAME */
        tq_copy(node->out[0]->data, node->in[0]->data, node->out[0]->bytes);
    return TQ_OK;
}
