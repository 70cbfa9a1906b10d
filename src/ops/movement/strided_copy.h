/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy of an N-dimensional box of elements, with a stride a dimension on either side.
 *
 *     for all i:  to[to_at + sum(i[d] * to[d])] = from[from_at + sum(i[d] * from[d])]
 *
 * Operators that move data describe the copy: TRANSPOSE permutes the source's strides, BROADCAST_TO and TILE set some
 * to 0, REVERSE_V2 negates one, CONCATENATION and PACK skip in the destination.  This file merges dimensions that are
 * dense on both sides, copies runs with memcpy or as one unit of 1, 2, 3, 4, 8 or 16 bytes, and shares large copies
 * among threads.
 *
 * The caller proves that every byte lies inside the source or the destination, and adds dimensions in the order of the
 * destination, outermost first.
 */
#ifndef TQ_OPS_MOVEMENT_STRIDED_COPY_H
#define TQ_OPS_MOVEMENT_STRIDED_COPY_H

#include "ops/tensor.h"

/* TILE and SPACE_TO_BATCH_ND use two for each dimension of a tensor. */
#define TQ_STRIDED_DIMS (2 * TQ_DIMS)

typedef struct tq_strided_step {
    size_t count;       /* of runs, or of the dimensions inside */
    ptrdiff_t from, to; /* bytes from each to the next; may be 0 or negative */
} tq_strided_step;

/* The fields of a short copy lie together: lists of them take few lines of a cache. */
typedef struct tq_strided {
    int rank;                 /* 0 to TQ_STRIDED_DIMS */
    size_t run;               /* contiguous bytes, at least 1 */
    ptrdiff_t from_at, to_at; /* the first run's byte */
    tq_strided_step dims[TQ_STRIDED_DIMS];
} tq_strided;

/* Makes *copy a copy of one element of `bytes` >= 1 bytes, from byte 0 to byte 0. */
void tq_strided_begin(tq_strided *copy, size_t bytes);

/* Adds a dimension of `count` >= 0 steps, `from` and `to` bytes each, inside of all earlier dimensions; at most
   TQ_STRIDED_DIMS of them. */
void tq_strided_dim(tq_strided *copy, size_t count, ptrdiff_t from, ptrdiff_t to);

/* Merges dimensions; called once, after the last one. */
void tq_strided_end(tq_strided *copy);

/* Makes an ended copy on at most `threads` threads.  `from` and `to` must not overlap. */
void tq_strided_copy(const tq_strided *copy, const void *from, void *to, int threads);

/* The first byte in the source of element `index` of a dense destination, of elements of `bytes` bytes; index is below
   the number of elements of the ended copy. */
ptrdiff_t tq_strided_source(const tq_strided *copy, size_t index, size_t bytes);

#endif
