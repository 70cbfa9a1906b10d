/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's broadcasting of one to three inputs, element by element.
 *
 * Prepare collapses the shapes: neighbouring dimensions that all inputs step through alike become one, so that equal
 * shapes, a scalar operand and a last-axis operand are one or two loops.  Eval cuts the output into contiguous runs.
 * Along a run an input is contiguous too, or has stride 0: one element for the whole run.
 */
#ifndef TQ_OPS_ELEMENTWISE_BROADCAST_H
#define TQ_OPS_ELEMENTWISE_BROADCAST_H

#include "ops/elementwise/map.h"

#define TQ_OPERANDS 3

/* n contiguous elements of the output, n >= 0. */
typedef struct tq_broadcast_run {
    const void *in[TQ_OPERANDS];
    bool scalar[TQ_OPERANDS]; /* the input has stride 0: only its first element is read */
    void *out;
    size_t n;
    const void *params; /* tq_broadcast.params */
} tq_broadcast_run;

typedef void (*tq_broadcast_fn)(const tq_broadcast_run *run);

typedef struct tq_broadcast {
    tq_broadcast_fn run;
    const void *params;
    int inputs, first; /* the node's inputs [first, first + inputs); inputs is 1 to TQ_OPERANDS */
    int rank;          /* 1 to TQ_DIMS; dimension 0 is the innermost */
    size_t count;      /* elements of the output */
    size_t dims[TQ_DIMS];
    size_t steps[TQ_OPERANDS][TQ_DIMS]; /* strides in bytes; 0: the input does not move */
    size_t out_bytes;                   /* bytes of an output element */
    size_t bytes[TQ_OPERANDS], widest;  /* of the inputs' elements, and the most of them */
    int tiled;   /* the input whose dims[0] elements repeat along dims[1], the only one that repeats; -1: none */
    size_t tile; /* elements of that input's repetition, which lies in the node's scratch during eval */
    int cost;    /* of an element, in picoseconds; 0: TQ_USUAL_COST */
} tq_broadcast;

/* Gives output 0 the shape to which inputs [first, first + inputs) broadcast, and plans the walk.  inputs: 1 to
   TQ_OPERANDS.  `plan` lies in the node's state; the caller sets run, params and cost, before or after.
   Fails where shapes do not broadcast or memory is short. */
tq_status tq_broadcast_prepare(tq_node *node, int first, int inputs, tq_broadcast *plan, tq_error *error);

/* Walks the plan: an eval function for nodes whose state begins with a prepared tq_broadcast, which uses the node's
   scratch.  Never fails. */
tq_status tq_broadcast_eval(tq_node *node, tq_error *error);

/* for each i < n:  out[i] = expression of x = first (an A), y = second (a B) */
#define TQ_BROADCAST_LOOP(A, first, B, second, R, expression) \
    TQ_IN_PLACE                                               \
    for (size_t i = 0; i < n; i++) {                          \
        const A x = first;                                    \
        const B y = second;                                   \
        out[i] = (R)(expression);                             \
    }

/* Defines a tq_broadcast_fn of two inputs: `expression` of x (an A), y (a B) and p (a copy of the PARAMS record at
   params: a copy cannot alias the output). */
#define TQ_BROADCAST_2(name, attributes, A, B, R, PARAMS, expression)   \
    attributes static void name(const tq_broadcast_run *run)            \
    {                                                                   \
        const A *a = run->in[0], first = run->scalar[0] ? *a : (A){0};  \
        const B *b = run->in[1], second = run->scalar[1] ? *b : (B){0}; \
        const PARAMS p = *(const PARAMS *)run->params;                  \
        const size_t n = run->n;                                        \
        R *out = run->out;                                              \
        (void)p;                                                        \
        if (run->scalar[0])                                             \
            TQ_BROADCAST_LOOP(A, first, B, b[i], R, expression)         \
        else if (run->scalar[1])                                        \
            TQ_BROADCAST_LOOP(A, a[i], B, second, R, expression)        \
        else                                                            \
            TQ_BROADCAST_LOOP(A, a[i], B, b[i], R, expression)          \
    }

/* The same as one loop with strides, which compilers do not vectorize, in a ninth of the code: for rows that few models
   use. */
#define TQ_BROADCAST_2_SMALL(name, A, B, R, PARAMS, expression)                      \
    static void name(const tq_broadcast_run *run)                                    \
    {                                                                                \
        const A *a = run->in[0];                                                     \
        const B *b = run->in[1];                                                     \
        const size_t n = run->n, a_step = !run->scalar[0], b_step = !run->scalar[1]; \
        const PARAMS p = *(const PARAMS *)run->params;                               \
        R *out = run->out;                                                           \
        (void)p;                                                                     \
        TQ_BROADCAST_LOOP(A, a[i * a_step], B, b[i * b_step], R, expression)         \
    }

/* The PARAMS of rows without parameters, and their record. */
typedef struct tq_empty {
    char none;
} tq_empty;
extern const tq_empty tq_empty_params;

#endif
