/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors made from little.
 *
 *     FILL             a shape of one value
 *     RANGE            start, start + delta, ... up to limit: each the one before plus delta, rounded
 *     ONE_HOT          on at [..., indices[...], ...], off elsewhere
 *     MATRIX_DIAG      vectors as the diagonals of matrices of zeros
 *     MATRIX_SET_DIAG  matrices with other diagonals
 *
 * Source: LiteRT f6745779, tflite/kernels/{fill,range,one_hot,matrix_diag,matrix_set_diag}.cc.
 */
#include <math.h>
#include <string.h>

#include "ops/check.h"
#include "ops/movement/movement.h"

static tq_status check_single(const tq_node *node, int i, tq_error *error)
{
    if (tq_tensor_count(node->in[i]) != 1)
        return tq_input_fail(node, i, error, "has %zu elements; it needs 1", tq_tensor_count(node->in[i]));
    return TQ_OK;
}

/* ---- FILL ---- */

static tq_status fill_shape(tq_node *node, tq_error *error)
{
    tq_moves *moves = node->state;
    tq_shape shape = {(int32_t)tq_tensor_count(node->in[0]), {0}};
    for (int d = 0; d < shape.rank; d++)
        TQ_TRY(tq_dim_of(node, tq_integer_at(node->in[0], (size_t)d), &shape.dims[d], error));
    TQ_TRY(tq_moves_shape(node, &shape, error));
    tq_move_fill(&moves->items[0], 1, tq_move_bytes(node->in[1]), tq_shape_size(&shape));
    return TQ_OK;
}

tq_status tq_prepare_fill(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_list(node, 0, -1, error));
    if (tq_tensor_count(node->in[0]) > TQ_DIMS)
        return tq_input_fail(node, 0, error, "has %zu elements; at most %d", tq_tensor_count(node->in[0]), TQ_DIMS);
    TQ_TRY(check_single(node, 1, error));
    TQ_TRY(tq_check_same_scale(node, 1, 0, error));
    TQ_TRY(tq_moves_new(node, 1, 1, &moves, error));
    return tq_shape_from_values(node, 1u << 0, fill_shape, error);
}

/* ---- RANGE ---- */

static double range_float(const tq_tensor *tensor)
{
    return *(const float *)tensor->data;
}

/* How many steps lead from start to limit; negative: none do. */
static double range_count(const tq_node *node)
{
    if (node->in[0]->type == TQ_TensorType_FLOAT32) {
        float start = *(const float *)node->in[0]->data, limit = *(const float *)node->in[1]->data;
        float delta = *(const float *)node->in[2]->data;
        bool leads = (start >= limit && delta < 0) || (start <= limit && delta > 0);
        return leads ? (double)ceilf(fabsf((limit - start) / delta)) : -1;
    }
    int64_t start = tq_integer_at(node->in[0], 0), limit = tq_integer_at(node->in[1], 0);
    int64_t delta = tq_integer_at(node->in[2], 0);
    if (delta == 0 || (delta < 0 ? start < limit : start > limit))
        return -1;
    uint64_t distance = delta < 0 ? (uint64_t)start - (uint64_t)limit : (uint64_t)limit - (uint64_t)start;
    uint64_t step = delta < 0 ? 0 - (uint64_t)delta : (uint64_t)delta;
    return (double)(distance / step) + (distance % step != 0);
}

static tq_status range_shape(tq_node *node, tq_error *error)
{
    double count = range_count(node);
    if (!(count >= 0 && count <= INT32_MAX)) {
        bool floats = node->in[0]->type == TQ_TensorType_FLOAT32;
        double of[3];
        for (int i = 0; i < 3; i++)
            of[i] = floats ? range_float(node->in[i]) : (double)tq_integer_at(node->in[i], 0);
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has start %g, limit %g and delta %g", of[0], of[1], of[2]);
    }
    tq_shape shape = {1, {(int32_t)count}};
    return tq_output_shape(node, 0, &shape, error);
}

static tq_status eval_range(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_tensor *out = node->out[0];
    size_t count = tq_tensor_count(out);
    if (out->type == TQ_TensorType_FLOAT32) {
        float value = *(const float *)node->in[0]->data, delta = *(const float *)node->in[2]->data;
        TQ_EACH(i, count) {
            ((float *)out->data)[i] = value;
            value += delta;
        }
        return TQ_OK;
    }
    uint64_t value = (uint64_t)tq_integer_at(node->in[0], 0), delta = (uint64_t)tq_integer_at(node->in[2], 0);
    TQ_EACH(i, count) {
        if (out->type == TQ_TensorType_INT64)
            ((uint64_t *)out->data)[i] = value;
        else
            ((uint32_t *)out->data)[i] = (uint32_t)value;
        value += delta;
    }
    return TQ_OK;
}

tq_status tq_prepare_range(tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32) | TQ_T(INT32) | TQ_T(INT64), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    for (int i = 0; i < 3; i++) {
        TQ_TRY(tq_check_input_like(node, i, 0, error));
        TQ_TRY(check_single(node, i, error));
    }
    node->eval = eval_range;
    return tq_shape_from_values(node, 7, range_shape, error);
}

/* ---- ONE_HOT ---- */

typedef struct one_hot {
    int axis;
} one_hot;

static tq_status one_hot_shape(tq_node *node, tq_error *error)
{
    const one_hot *hot = node->state;
    const tq_shape *in = &node->in[0]->shape;
    tq_shape shape = {in->rank + 1, {0}};
    for (int d = 0; d < shape.rank; d++)
        if (d != hot->axis)
            shape.dims[d] = in->dims[d < hot->axis ? d : d - 1];
    TQ_TRY(tq_dim_of(node, tq_integer_at(node->in[1], 0), &shape.dims[hot->axis], error));
    return tq_output_shape(node, 0, &shape, error);
}

static tq_status eval_one_hot(tq_node *node, tq_error *error)
{
    (void)error;
    const one_hot *hot = node->state;
    const tq_shape *shape = &node->out[0]->shape;
    size_t bytes = tq_element_bytes(node->out[0]->type), inner = tq_shape_span(shape, hot->axis + 1, shape->rank);
    int64_t depth = shape->dims[hot->axis];
    unsigned char *to = node->out[0]->data;
    tq_move fill;
    tq_move_fill(&fill, 3, bytes, tq_shape_size(shape));
    tq_strided_copy(&fill.copy, node->in[3]->data, to, node->threads);
    const size_t count = tq_tensor_count(node->in[0]);
    TQ_EACH(i, count) {
        int64_t index = tq_integer_at(node->in[0], i);
        if (index >= 0 && index < depth)
            memcpy(to + ((i / inner * (size_t)depth + (size_t)index) * inner + i % inner) * bytes,
                   node->in[2]->data, bytes);
    }
    return TQ_OK;
}

tq_status tq_prepare_one_hot(tq_node *node, tq_error *error)
{
    one_hot *hot = NULL;
    TQ_TRY(tq_check_list(node, 0, -1, error));
    TQ_TRY(tq_check_list(node, 1, 1, error));
    TQ_TRY(tq_check_rank(node, 0, 0, TQ_DIMS - 1, error));
    TQ_TRY(check_single(node, 2, error));
    TQ_TRY(check_single(node, 3, error));
    TQ_TRY(tq_check_input_like(node, 3, 2, error));
    TQ_TRY(tq_check_output_like(node, 0, 2, error));
    if (tq_element_bytes(node->in[2]->type) == 0)
        return tq_input_fail(node, 2, error, "is %s, which is not filled in", tq_type_name(node->in[2]->type));
    TQ_TRY(tq_node_state(node, sizeof *hot, &hot, error));
    TQ_TRY(tq_check_axis(node, tq_get_int(&node->options.table, TQ_OneHotOptions_axis),
                         node->in[0]->shape.rank + 1, "axis", &hot->axis, error));
    node->eval = eval_one_hot;
    return tq_shape_from_values(node, 1u << 1, one_hot_shape, error);
}

/* ---- MATRIX_DIAG and MATRIX_SET_DIAG ---- */

/* Moves `batch` diagonals of n elements, which lie densely, into matrices of rows x columns. */
static void move_diagonals(tq_move *move, size_t batch, int32_t rows, int32_t columns, size_t bytes)
{
    size_t n = (size_t)(rows < columns ? rows : columns);
    bool none = batch == 0 || n == 0;
    ptrdiff_t element = none ? 0 : (ptrdiff_t)bytes;
    tq_strided_begin(&move->copy, bytes);
    tq_strided_dim(&move->copy, batch, (ptrdiff_t)n * element, (ptrdiff_t)rows * columns * element);
    tq_strided_dim(&move->copy, n, element, ((ptrdiff_t)columns + 1) * element);
    tq_strided_end(&move->copy);
}

tq_status tq_prepare_matrix_diag(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_rank(node, 0, 1, TQ_DIMS - 1, error));
    TQ_TRY(tq_moves_new(node, 2, 0, &moves, error));
    tq_shape shape = node->in[0]->shape;
    int32_t n = shape.dims[shape.rank - 1];
    size_t batch = tq_shape_span(&shape, 0, shape.rank - 1), bytes = tq_move_bytes(node->in[0]);
    shape.dims[shape.rank++] = n;
    TQ_TRY(tq_moves_shape(node, &shape, error));
    tq_move_fill(&moves->items[0], TQ_MOVE_FILL, bytes, tq_shape_size(&shape));
    move_diagonals(&moves->items[1], batch, n, n, bytes);
    return TQ_OK;
}

tq_status tq_prepare_matrix_set_diag(tq_node *node, tq_error *error)
{
    tq_moves *moves = NULL;
    TQ_TRY(tq_check_rank(node, 0, 2, TQ_DIMS, error));
    TQ_TRY(tq_check_input_like(node, 1, 0, error));
    TQ_TRY(tq_moves_new(node, 2, 0, &moves, error));
    const tq_shape *shape = &node->in[0]->shape;
    int32_t rows = shape->dims[shape->rank - 2], columns = shape->dims[shape->rank - 1];
    size_t batch = tq_shape_span(shape, 0, shape->rank - 2), bytes = tq_move_bytes(node->in[0]);
    size_t n = (size_t)(rows < columns ? rows : columns);
    if (tq_tensor_count(node->in[1]) != batch * n)
        return tq_input_fail(node, 1, error, "has %zu elements; the diagonals have %zu",
                             tq_tensor_count(node->in[1]), batch * n);
    tq_move_all(&moves->items[0], 0, bytes, tq_tensor_count(node->in[0]));
    move_diagonals(&moves->items[1], batch, rows, columns, bytes);
    moves->items[1].input = 1;
    return tq_moves_shape(node, shape, error);
}
