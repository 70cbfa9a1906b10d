/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy of an N-dimensional box of elements, with a stride a dimension on either side.
 *
 *     for all i:  to[to_at + sum(i[d] * to[d])] = from[from_at + sum(i[d] * from[d])]
 *
 * Operators that move data describe the move: TRANSPOSE permutes the source's strides, BROADCAST_TO and
 * TILE set some to 0, REVERSE_V2 negates one, CONCATENATION and PACK skip in the destination.  What follows
 * is done once: dimensions that lie densely on both sides are merged, runs are copied with memcpy or
 * as one unit of 1, 2, 4, 8 or 16 bytes, and large copies are shared among threads.
 *
 * The caller proves that every byte named lies inside; dimensions are listed in the order in which the
 * destination holds them, outermost first.
 */
#ifndef TQ_OPS_MOVEMENT_STRIDED_COPY_H
#define TQ_OPS_MOVEMENT_STRIDED_COPY_H

#include "ops/tensor.h"

/* TILE and SPACE_TO_BATCH_ND use two for each dimension of a tensor. */
#define TQ_STRIDED_DIMS (2 * TQ_DIMS)

typedef struct tq_strided {
    int rank;
    size_t run;                     /* bytes copied as one */
    size_t dims[TQ_STRIDED_DIMS];   /* of runs */
    ptrdiff_t from[TQ_STRIDED_DIMS]; /* bytes from one to the next; may be 0 or negative */
    ptrdiff_t to[TQ_STRIDED_DIMS];
    ptrdiff_t from_at, to_at;       /* the first byte */
} tq_strided;

/* A copy of one element of `bytes` bytes. */
void tq_strided_begin(tq_strided *copy, size_t bytes);

/* Adds a dimension of `count` steps inside all dimensions added before it. */
void tq_strided_dim(tq_strided *copy, size_t count, ptrdiff_t from, ptrdiff_t to);

/* Merges dimensions.  Call once, after the last one. */
void tq_strided_end(tq_strided *copy);

/* From and to must not overlap. */
void tq_strided_copy(const tq_strided *copy, const void *from, void *to, int threads);

/* Where the element that is the `index`th of a dense destination, of elements of `bytes` bytes, comes
   from: its first byte in the source. */
ptrdiff_t tq_strided_source(const tq_strided *copy, size_t index, size_t bytes);

#endif
