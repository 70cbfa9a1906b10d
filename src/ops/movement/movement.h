/* SPDX-License-Identifier: Apache-2.0
 *
 * The shared parts of operators that only move elements: a list of strided copies (moves), made when shapes are known,
 * and the eval function that makes the copies.
 *
 * Such an operator moves elements of any type: numbers, handles, strings.  Its prepare function checks types, takes
 * room for its moves with tq_moves_new, and has a shape function set the outputs' shapes and the moves (at once, or
 * before each run where values decide them).
 */
#ifndef TQ_OPS_MOVEMENT_MOVEMENT_H
#define TQ_OPS_MOVEMENT_MOVEMENT_H

#include "ops/op.h"
#include "ops/movement/strided_copy.h"

/* The input of a move that repeats the value at tq_moves.fill; its strides are 0. */
#define TQ_MOVE_FILL (-1)

typedef struct tq_move {
    int input, output; /* of the node; input may be TQ_MOVE_FILL */
    tq_strided copy;
} tq_move;

typedef struct tq_moves {
    int count;
    unsigned char fill[16]; /* one element */
    tq_shape shape; /* of output 0 */
    tq_move items[];
} tq_moves;

/* Sets node->state to room for `count` >= 1 moves, at first all from input 0 to output 0, and node->eval to the
   function that makes them in order.  Fails unless all outputs have the type of input `like`, and elements of that type
   can be moved; STRING needs a count of 1 and one output. */
tq_status tq_moves_new(tq_node *node, int count, int like, tq_moves **out, tq_error *error);

/* Makes the moves of the node's tq_moves, of every type but STRING: an eval function.  Never fails. */
tq_status tq_eval_moves(tq_node *node, tq_error *error);

/* Gives output 0 its shape.  Strings get their memory in eval, where their bytes are counted. */
tq_status tq_moves_shape(tq_node *node, const tq_shape *shape, tq_error *error);

/* Bytes of an element in a move's strides: those of its type; 1 for strings; 0 for types that cannot be moved. */
size_t tq_move_bytes(const tq_tensor *tensor);

/* Writes the strides in bytes of a dense tensor to out[0 .. rank - 1]; all 0 where it has no elements, or
   more than memory holds. */
void tq_dense_strides(const tq_shape *shape, size_t bytes, ptrdiff_t *out);

/* Makes *move fill a dense tensor of `count` elements, `bytes` each, with the one element of `input`. */
void tq_move_fill(tq_move *move, int input, size_t bytes, size_t count);

/* Makes *move copy a dense tensor of `count` elements, `bytes` each, from `input`. */
void tq_move_all(tq_move *move, int input, size_t bytes, size_t count);

/* The number of elements of a shape that no tensor has yet, of dimensions from 0 to 2^31 - 1; saturates at
   TQ_SHAPE_SIZE_MAX. */
#define TQ_SHAPE_SIZE_MAX ((uint64_t)1 << 62)
uint64_t tq_shape_size_saturated(const tq_shape *shape);

/* Writes an output of strings: string i of the shape's elements is string source(context, i) of `in`, or empty where
   that is SIZE_MAX.  Fails for invalid strings of `in`, more than 2 GB, short memory, and an interrupt. */
typedef size_t (*tq_string_source)(const void *context, size_t i);
tq_status tq_output_strings(tq_node *node, int output, const tq_shape *shape, const tq_tensor *in,
                            tq_string_source source, const void *context, tq_error *error);

/* The node's single move, of input 0 to a dense output 0.  tq_dense_move_begin starts it, and writes the input's
   strides in bytes to from[TQ_DIMS].  tq_dense_move_end ends it: the output has dimensions dims[0 .. rank - 1], rank at
   most TQ_STRIDED_DIMS, which step through the input by from[], in bytes. */
tq_strided *tq_dense_move_begin(tq_node *node, ptrdiff_t *from);
void tq_dense_move_end(tq_strided *copy, int rank, const size_t *dims, const ptrdiff_t *from);

/* Makes the node's single move copy all of input 0 in order, and gives output 0 its shape. */
tq_status tq_moves_reshape(tq_node *node, const tq_shape *shape, tq_error *error);

/* Copies input 0's bytes to output 0, unless both are the same memory: an eval function.  Never fails. */
tq_status tq_eval_copy(tq_node *node, tq_error *error);

#endif
