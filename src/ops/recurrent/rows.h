/* SPDX-License-Identifier: Apache-2.0
 *
 * Float rows as operands of products with float or quantized (hybrid) matrices; and sequences of rows.
 */
#ifndef TQ_OPS_RECURRENT_ROWS_H
#define TQ_OPS_RECURRENT_ROWS_H

#include "ops/products/hybrid.h"

/* A sequence of rows in a tensor: row (step, batch) begins at element step * step_size + batch * batch_size. */
typedef struct tq_sequence {
    void *data;                   /* NULL: no such tensor */
    size_t step_size, batch_size; /* in elements */
} tq_sequence;

/* The sequence in a tensor at `data`, of rows of `width` elements of element_size bytes, from element `offset` <= width
   of each row on.  time_major: [steps, batches, width], else [batches, steps, width]. */
static inline tq_sequence tq_sequence_of(void *data, size_t element_size, bool time_major, size_t steps, size_t batches,
                                         size_t width, size_t offset)
{
    tq_sequence s = {data ? (char *)data + offset * element_size : NULL, 0, 0};
    s.step_size = (time_major ? batches : 1) * width;
    s.batch_size = (time_major ? 1 : steps) * width;
    return s;
}

/* The rows of one step, one for each batch. */
typedef struct tq_rows {
    const float *data;
    size_t stride; /* elements from row to row */
    size_t width;
    const int8_t *quantized;     /* [batch][width]; NULL: matrices are float32 */
    const tq_hybrid_row *scales; /* [batch], of `quantized` */
} tq_rows;

/* The rows at `data`.  With a rule, not NULL, quantizes them to `quantized` [batches][width] and `scales` [batches]. */
static inline tq_rows tq_rows_make(const float *data, size_t stride, size_t width, size_t batches, tq_hybrid_rule rule,
                                   int8_t *quantized, tq_hybrid_row *scales)
{
    tq_rows rows = {data, stride, width, rule ? quantized : NULL, scales};
    for (size_t b = 0; rule && b < batches; b++)
        scales[b] = rule(data + b * stride, width, 1, quantized + b * width);
    return rows;
}

/* The same for step number `step` of a sequence of float32 rows. */
static inline tq_rows tq_rows_of_step(const tq_sequence *sequence, size_t step, size_t width, size_t batches,
                                      tq_hybrid_rule rule, int8_t *quantized, tq_hybrid_row *scales)
{
    const float *data = (const float *)sequence->data + step * sequence->step_size;
    return tq_rows_make(data, sequence->batch_size, width, batches, rule, quantized, scales);
}

/* Sums of the rows of a hybrid matrix [rows][columns]; sums NULL: does nothing. */
static inline void tq_sum_matrix_rows(const tq_tensor *matrix, int32_t *sums)
{
    if (sums)
        tq_row_sums(matrix->data, (size_t)matrix->shape.dims[0], (size_t)matrix->shape.dims[1], sums);
}

/* sums[i] += (row first + i of a matrix) . (the row of batch b), for i < count.  row_sums: of all of the matrix's rows;
   NULL for float matrices. */
void tq_rows_add_products(const tq_tensor *matrix, const int32_t *row_sums, const tq_rows *rows, size_t b, size_t first,
                          size_t count, float *sums);

#endif
