/* SPDX-License-Identifier: Apache-2.0
 *
 * MATRIX_DIAG: vectors as the diagonals of matrices of zeros.
 * MATRIX_SET_DIAG: matrices whose diagonals are replaced.
 * Source: LiteRT f6745779, tflite/kernels/{matrix_diag,matrix_set_diag}.cc.
 */
#include "ops/check.h"
#include "ops/movement/movement.h"

/* Makes *move copy `batch` dense diagonals to the diagonals of dense matrices of rows x columns. */
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
        return tq_input_fail(node, 1, error, "has %zu elements; the diagonals have %zu", tq_tensor_count(node->in[1]),
                             batch * n);
    tq_move_all(&moves->items[0], 0, bytes, tq_tensor_count(node->in[0]));
    move_diagonals(&moves->items[1], batch, rows, columns, bytes);
    moves->items[1].input = 1;
    return tq_moves_shape(node, shape, error);
}
