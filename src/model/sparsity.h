/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse tensors: the SparsityParameters of a file, and the dense tensor that they describe.
 *
 * A tensor of n dimensions, k of them blocked, is stored in n + k levels.  traversal_order has the
 * dimension of each level: first the n dimensions of the shape (a blocked one in steps of its block),
 * then the k dimensions inside a block; dimension n + b is the inside of dimension block_map[b].  A
 * DENSE level has every index of its dimension.  A SPARSE_CSR level has, below position p of the level
 * above, the indices array_indices[segments[p]] to array_indices[segments[p + 1] - 1]; its positions are
 * indices of array_indices.  The positions of the last level are the stored values, in order.
 *
 * Source: the comments of schema.fbs, and LiteRT f6745779,
 * kernels/internal/utils/sparsity_format_converter.cc.  The dense bytes equal those of LiteRT's converter
 * wherever it succeeds and the parameters do not contradict the shape, with one exception, permuted
 * blocks: LiteRT takes a block's size from the wrong level when three or more blocked dimensions are
 * traversed out of order, and requires an ascending block_map.
 */
#ifndef TQ_MODEL_SPARSITY_H
#define TQ_MODEL_SPARSITY_H

#include "flatbuffer/table.h"

/* The limit of n + k; a sparse tensor of more levels is refused. */
enum { TQ_SPARSITY_LEVELS = 32 };

/* ---- one level as the file stores it, readable but not checked ---- */

/* The integers of an Int32Vector, Uint16Vector or Uint8Vector. */
typedef struct tq_indices {
    tq_vector vector;
    tq_scalar scalar; /* TQ_I32, TQ_U16 or TQ_U8; of an absent or unknown vector TQ_I32 with count 0 */
} tq_indices;

/* The integer at any index; 0 where it is out of range. */
static inline int32_t tq_indices_at(const tq_indices *indices, size_t index)
{
    const uint8_t *first = indices->vector.file.data + indices->vector.at;
    if (index >= indices->vector.count)
        return 0;
    return indices->scalar == TQ_I32   ? (int32_t)tq_load_u32(first + 4 * index)
           : indices->scalar == TQ_U16 ? (int32_t)tq_load_u16(first + 2 * index)
                                       : (int32_t)first[index];
}

/* A DimensionMetadata table. */
typedef struct tq_dimension {
    int64_t format; /* TQ_DimensionType_x, or an unknown value */
    int32_t dense_size;
    tq_indices segments, indices; /* vector.at == 0: absent */
} tq_dimension;

/* Level `level` of a SparsityParameters table; out of range: a dimension without fields. */
tq_dimension tq_sparsity_dimension(const tq_table *sparsity, size_t level);

/* ---- all levels, checked ---- */

typedef struct tq_sparse_level {
    bool is_sparse;
    uint64_t size;                /* of its dimension, in steps */
    uint64_t stride;              /* elements of the dense tensor per step */
    tq_indices segments, indices; /* of a sparse level */
} tq_sparse_level;

typedef struct tq_sparsity {
    uint32_t levels;
    uint64_t dense_count;  /* elements of the dense tensor */
    uint64_t stored_count; /* values in the buffer by the parameters */
    tq_sparse_level level[TQ_SPARSITY_LEVELS];
} tq_sparsity;

/* Reads the sparsity of a Tensor table and checks it against the shape, in time proportional to the index vectors.
   TQ_BAD_SPARSITY, also for a tensor without sparsity; TQ_BAD_SHAPE. */
tq_status tq_sparsity_open(const tq_table *tensor, tq_sparsity *out, tq_error *error);

/* All checks of tq_tensor_densify but that of dense_size, with the same failures. */
tq_status tq_tensor_densify_check(const tq_table *tensor, tq_bytes stored, tq_error *error);

/* Writes the stored values to the dense tensor.
     stored      the tensor's buffer: at least stored_count elements; further bytes are ignored
     dense       dense_size zero bytes; dense_size must be tq_tensor_size()
   TQ_BAD_TYPE for elements without whole bytes (strings, packed 4-bit types), which LiteRT does not densify either;
   TQ_DATA_SIZE: `stored` is too short; the failures of tq_sparsity_open.  A failure leaves `dense` untouched unless the
   file's bytes change during the call.  Of equal indices in a segment the last value counts.  Time is proportional to
   the index vectors and the stored values. */
tq_status tq_tensor_densify(const tq_table *tensor, tq_bytes stored, uint8_t *dense, uint64_t dense_size,
                            tq_error *error);

#endif
