/* SPDX-License-Identifier: Apache-2.0
 *
 * What the operators that only move elements share: a list of strided copies, made when shapes are known,
 * and the function that makes them.
 *
 * Such an operator moves elements of any type: numbers, handles, strings.  Its prepare function checks
 * types, takes room for its moves with tq_moves_new, and lets a shape function say what the outputs'
 * shapes and the moves are (at once, or before each run if values decide it).
 */
#ifndef TQ_OPS_MOVEMENT_MOVEMENT_H
#define TQ_OPS_MOVEMENT_MOVEMENT_H

#include "ops/op.h"
#include "ops/movement/strided_copy.h"

/* The source of a move that repeats the value at tq_moves.fill; its strides are 0. */
#define TQ_MOVE_FILL (-1)

typedef struct tq_move {
    int input, output; /* input: may be TQ_MOVE_FILL */
    tq_strided copy;
} tq_move;

typedef struct tq_moves {
    int count;
    unsigned char fill[16];
    tq_shape shape; /* of output 0 */
    tq_move items[];
} tq_moves;

/* node->state: room for `count` moves from input 0 to output 0, and node->eval: the function that makes
   them in their order.  All outputs must have the type of input `like`, and that type elements that can be
   moved.  STRING is taken where there is one move. */
tq_status tq_moves_new(tq_node *node, int count, int like, tq_moves **out, tq_error *error);

/* Makes the moves of all types but STRING. */
tq_status tq_eval_moves(tq_node *node, tq_error *error);

/* tq_output_shape(node, 0, shape), for strings too, whose bytes are counted when they are moved. */
tq_status tq_moves_shape(tq_node *node, const tq_shape *shape, tq_error *error);

/* Bytes an element takes in a move's strides: those of its type; 1 for strings. */
size_t tq_move_bytes(const tq_tensor *tensor);

/* The strides in bytes of a dense tensor of a shape; all 0 if it is empty. */
void tq_dense_strides(const tq_shape *shape, size_t bytes, ptrdiff_t *out);

/* Describes a move that fills a dense tensor of `count` elements with one value. */
void tq_move_fill(tq_move *move, int input, size_t bytes, size_t count);

/* ... and one that copies a dense tensor as it lies. */
void tq_move_all(tq_move *move, int input, size_t bytes, size_t count);

/* Elements of a shape that no tensor has yet: exact below TQ_SHAPE_SIZE_MAX, which no product of dimensions wraps
 * around. */
#define TQ_SHAPE_SIZE_MAX ((uint64_t)1 << 62)
uint64_t tq_shape_size_saturated(const tq_shape *shape);

/* Output strings: string `i` is source(context, i) of `in`, or empty for SIZE_MAX, for all elements of the shape. */
typedef size_t (*tq_string_source)(const void *context, size_t i);
tq_status tq_output_strings(tq_node *node, int output, const tq_shape *shape, const tq_tensor *in,
                            tq_string_source source, const void *context, tq_error *error);

/* A single move of input 0 to a dense output 0, in the node's state.  tq_dense_move_begin: starts it, and writes the
   source's strides in bytes to from[TQ_DIMS].  tq_dense_move_end: ends it, of dimensions `dims`, `rank` of them, at
   most TQ_STRIDED_DIMS, which step through the source by `from`. */
tq_strided *tq_dense_move_begin(tq_node *node, ptrdiff_t *from);
void tq_dense_move_end(tq_strided *copy, int rank, const size_t *dims, const ptrdiff_t *from);

/* The single move of the node's state becomes all of input 0, as it lies, to output 0 of this shape. */
tq_status tq_moves_reshape(tq_node *node, const tq_shape *shape, tq_error *error);

/* eval: input 0's bytes to output 0, unless they lie there already. */
tq_status tq_eval_copy(tq_node *node, tq_error *error);

#endif
