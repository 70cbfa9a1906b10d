/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse tensors: what SparsityParameters say, and the dense tensor that they stand for.
 *
 * A tensor of n dimensions with k blocked ones is stored level by level, n + k levels in all.
 * traversal_order says which dimension each level walks: first the n of the shape (a blocked one in
 * steps of its block), then the k inside a block, where dimension n + b is the inside of dimension
 * block_map[b].  A DENSE level has every index of its dimension.  A SPARSE_CSR level has, below the
 * pth position of the level above, the indices array_indices[segments[p]] to
 * array_indices[segments[p + 1] - 1]; a position of it is a place in array_indices.  The positions of
 * the last level are the stored values, in their order.
 *
 * Source: the comments of schema.fbs, and LiteRT f6745779,
 * kernels/internal/utils/sparsity_format_converter.cc.  Where LiteRT's converter answers and the
 * parameters do not contradict the shape, so does this one, with the same bytes.  It differs on
 * permuted blocks: LiteRT takes a block's size from the wrong level when three or more blocked
 * dimensions are traversed out of order, and demands that block_map rises.
 */
#ifndef TQ_MODEL_SPARSITY_H
#define TQ_MODEL_SPARSITY_H

#include "flatbuffer/table.h"

/* Shapes of more dimensions, blocked ones counted twice, are refused for sparse tensors. */
enum { TQ_SPARSITY_LEVELS = 32 };

/* ---- one level as the file stores it, nothing checked but that it can be read ---- */

/* The integers of an Int32Vector, Uint16Vector or Uint8Vector. */
typedef struct tq_indices {
    tq_vector vector;
    tq_scalar scalar; /* TQ_I32, TQ_U16 or TQ_U8; of an absent or unknown vector TQ_I32 with count 0 */
} tq_indices;

static inline int32_t tq_indices_at(const tq_indices *indices, size_t index)
{
    const uint8_t *first = indices->vector.file.data + indices->vector.at;
    if (index >= indices->vector.count)
        return 0;
    return indices->scalar == TQ_I32   ? (int32_t)tq_load_u32(first + 4 * index)
           : indices->scalar == TQ_U16 ? (int32_t)tq_load_u16(first + 2 * index)
                                       : (int32_t)first[index];
}

typedef struct tq_dimension {
    int64_t format; /* TQ_DimensionType_x, or a number not known */
    int32_t dense_size;
    tq_indices segments, indices; /* vector.at == 0: absent */
} tq_dimension;

/* Level `level` of a SparsityParameters table; all absent where there is no such level. */
tq_dimension tq_sparsity_dimension(const tq_table *sparsity, size_t level);

/* ---- the whole, checked ---- */

typedef struct tq_sparse_level {
    bool is_sparse;
    uint64_t size;                /* of its dimension, in steps */
    uint64_t stride;              /* elements of the dense tensor that one step skips */
    tq_indices segments, indices; /* of a sparse level */
} tq_sparse_level;

typedef struct tq_sparsity {
    uint32_t levels;
    uint64_t dense_count;  /* elements of the dense tensor */
    uint64_t stored_count; /* values that the parameters describe */
    tq_sparse_level level[TQ_SPARSITY_LEVELS];
} tq_sparsity;

/* Reads and checks a tensor's sparsity against its shape.  Takes time in proportion to the index
   vectors.  Fails with TQ_BAD_SPARSITY (also where the tensor has none) and TQ_BAD_SHAPE. */
tq_status tq_sparsity_open(const tq_table *tensor, tq_sparsity *out, tq_error *error);

/* Fails as tq_tensor_densify does, without a dense tensor: all checks but that of dense_size. */
tq_status tq_tensor_densify_check(const tq_table *tensor, tq_bytes stored, tq_error *error);

/* Writes the dense tensor.
     stored      the tensor's buffer: stored_count elements or more; what follows them is ignored
     dense       dense_size bytes, all zero, of which those of stored values are written.  dense_size
                 must be tq_tensor_size()
   An element must take whole bytes: TQ_BAD_TYPE for strings, packed 4-bit types and the like, which
   LiteRT does not densify either.  Else fails as tq_sparsity_open, or with TQ_DATA_SIZE where
   `stored` is too short; `dense` may be partly written only if the file's bytes change meanwhile.
   An index that stands twice in a segment gives its later value.  Takes time in proportion to the
   index vectors and the stored values. */
tq_status tq_tensor_densify(const tq_table *tensor, tq_bytes stored, uint8_t *dense, uint64_t dense_size,
                            tq_error *error);

#endif
