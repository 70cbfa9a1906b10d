/* SPDX-License-Identifier: Apache-2.0
 *
 * EMBEDDING_LOOKUP_SPARSE: inputs ids [n], indices [n, r], dense shape [r], weights [n], table [rows, ...], the
 * first three INT32, the others FLOAT32.
 *
 * The output has the shape dense shape[:r - 1] + table.shape[1:].  Lookup i adds weights[i] * table[ids[i]] to the
 * output row indices[i, :r - 1].  Consecutive lookups of one row form a run; at its end the row is divided by the sum
 * of the run's weights (MEAN) or by the square root of the sum of their squares (SQRTN).
 *
 * Source: LiteRT f6745779, tflite/kernels/embedding_lookup_sparse.cc.  LiteRT wraps or drops indices outside the
 * dense shape; here they are errors.
 */
#include <math.h>
#include <string.h>

#include "ops/check.h"

enum { IDS, INDICES, DENSE, WEIGHTS, TABLE };

/* The current run of lookups. */
typedef struct bucket {
    size_t target, count;
    float weight, squares;
} bucket;

static void finish(const tq_node *node, const bucket *b, size_t size)
{
    int64_t combiner = tq_get_int(&node->options.table, TQ_EmbeddingLookupSparseOptions_combiner);
    if (combiner == TQ_CombinerType_SUM || b->count == 0)
        return;
    float divisor = combiner == TQ_CombinerType_MEAN ? b->weight : sqrtf(b->squares);
    float *out = (float *)node->out[0]->data + b->target * size;
    for (size_t k = 0; k < size; k++)
        out[k] /= divisor;
}

/* The output row of lookup i. */
static tq_status target_of(const tq_node *node, size_t i, int rank, size_t *target, tq_error *error)
{
    const int32_t *index = (const int32_t *)node->in[INDICES]->data + i * (size_t)rank;
    const int32_t *dense = node->in[DENSE]->data;
    size_t at = 0;
    for (int k = 0; k < rank - 1; k++) {
        if (index[k] < 0 || index[k] >= dense[k])
            return tq_input_fail(node, INDICES, error, "has index %d at position %zu, %d; the dense shape has %d there",
                                 index[k], i, k, dense[k]);
        at = at * (size_t)dense[k] + (size_t)index[k];
    }
    *target = at;
    return TQ_OK;
}

static tq_status shape_output(tq_node *node, tq_error *error)
{
    const tq_shape *table = &node->in[TABLE]->shape;
    int rank = node->in[INDICES]->shape.dims[1];
    tq_shape out = {0, {0}};
    for (int k = 0; k < rank - 1; k++) {
        int32_t dim = ((const int32_t *)node->in[DENSE]->data)[k];
        if (dim < 0)
            return tq_input_fail(node, DENSE, error, "has dimension %d of %d", k, dim);
        out.dims[out.rank++] = dim;
    }
    for (int k = 1; k < table->rank; k++)
        out.dims[out.rank++] = table->dims[k];
    return tq_output_shape(node, 0, &out, error);
}

static tq_status eval(tq_node *node, tq_error *error)
{
    size_t work = 0;
    const tq_tensor *table = node->in[TABLE];
    size_t rows = (size_t)table->shape.dims[0], size = tq_shape_span(&table->shape, 1, table->shape.rank);
    float *out = node->out[0]->data;
    tq_fill(out, 0, tq_tensor_count(node->out[0]) * sizeof *out);
    bucket b = {0, 0, 0, 0};
    const size_t count = tq_tensor_count(node->in[IDS]);
    for (size_t i = 0; i < count && !tq_stop_count(&work, 8 + 2 * size); i++) {
        int32_t id = ((const int32_t *)node->in[IDS]->data)[i];
        if (id < 0 || (size_t)id >= rows)
            return tq_input_fail(node, IDS, error, "has index %d at position %zu; the table has %zu rows", id, i, rows);
        size_t target = 0;
        TQ_TRY(target_of(node, i, node->in[INDICES]->shape.dims[1], &target, error));
        if (target != b.target) {
            finish(node, &b, size);
            b = (bucket){target, 0, 0, 0};
        }
        float weight = ((const float *)node->in[WEIGHTS]->data)[i];
        b.count++;
        b.weight += weight;
        b.squares += weight * weight;
        TQ_EACH (k, size)
            out[target * size + k] += ((const float *)table->data)[(size_t)id * size + k] * weight;
    }
    finish(node, &b, size);
    return TQ_OK;
}

static tq_status check_shapes(const tq_node *node, tq_error *error)
{
    static const int ranks[] = {1, 2, 1, 1};
    for (int i = IDS; i <= WEIGHTS; i++)
        TQ_TRY(tq_check_rank(node, i, ranks[i], ranks[i], error));
    TQ_TRY(tq_check_rank(node, TABLE, 2, TQ_DIMS, error));
    int32_t lookups = node->in[IDS]->shape.dims[0], rank = node->in[INDICES]->shape.dims[1];
    if (node->in[INDICES]->shape.dims[0] != lookups || node->in[WEIGHTS]->shape.dims[0] != lookups)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "there are %d ids, %d indices and %d weights", lookups,
                          node->in[INDICES]->shape.dims[0], node->in[WEIGHTS]->shape.dims[0]);
    if (rank < 1 || node->in[DENSE]->shape.dims[0] != rank)
        return tq_input_fail(node, DENSE, error, "has %d dimensions; the indices have %d",
                             node->in[DENSE]->shape.dims[0], rank);
    if (rank - 1 + node->in[TABLE]->shape.rank - 1 > TQ_DIMS)
        return tq_output_fail(node, 0, error, "would have %d dimensions; there may be %d",
                              rank - 1 + node->in[TABLE]->shape.rank - 1, TQ_DIMS);
    return TQ_OK;
}

tq_status tq_prepare_embedding_lookup_sparse(tq_node *node, tq_error *error)
{
    for (int i = IDS; i <= DENSE; i++)
        TQ_TRY(tq_check_input(node, i, TQ_T(INT32), error));
    TQ_TRY(tq_check_input(node, WEIGHTS, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_input(node, TABLE, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(check_shapes(node, error));
    int64_t combiner = tq_get_int(&node->options.table, TQ_EmbeddingLookupSparseOptions_combiner);
    if (combiner < TQ_CombinerType_SUM || combiner > TQ_CombinerType_SQRTN)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "the combiner is %lld; there are SUM (0), MEAN (1) and SQRTN (2)", (long long)combiner);
    node->eval = eval;
    return tq_shape_from_values(node, 1u << DENSE, shape_output, error);
}
