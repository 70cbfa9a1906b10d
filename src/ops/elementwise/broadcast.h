/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's broadcasting of one to three inputs, element by element.
 *
 * Prepare collapses the shapes: neighbouring dimensions that all inputs walk alike become one, so that equal
 * shapes, a scalar operand and a last-axis operand are one or two loops.  Eval cuts the output into
 * stretches, along which each input either advances with the output or stands still.
 */
#ifndef TQ_OPS_ELEMENTWISE_BROADCAST_H
#define TQ_OPS_ELEMENTWISE_BROADCAST_H

#include "ops/check.h"

#define TQ_OPERANDS 3

/* n contiguous elements of the output.  An input's are contiguous too, unless it stands still on one element. */
typedef struct tq_broadcast_run {
    const void *in[TQ_OPERANDS];
    bool still[TQ_OPERANDS];
    void *out;
    size_t n;
    const void *params;
} tq_broadcast_run;

typedef void (*tq_broadcast_fn)(const tq_broadcast_run *stretch);

typedef struct tq_broadcast {
    tq_broadcast_fn run;
    const void *params;
    int inputs, first; /* inputs first, first + 1 ... of the node */
    int rank;          /* at least 1; dimension 0 is the innermost */
    size_t count;      /* elements of the output */
    size_t dims[TQ_DIMS];
    size_t steps[TQ_OPERANDS][TQ_DIMS]; /* in bytes; 0: the input stands still */
    size_t out_bytes;                   /* of an element */
    int tiled;   /* an input whose dims[0] elements repeat along dims[1], and no others; -1: none */
    size_t tile; /* so many of its elements, repeated, lie in scratch while the node runs */
    int cost;                           /* of an element, in nanoseconds, at least 1: how many pay for a thread */
} tq_broadcast;

/* Gives output 0 the shape to which inputs [first, first + inputs) broadcast, and plans the walk.  `plan` lies
   in memory of the node's; run, params and cost (0: 1) are the caller's to set, now or later. */
tq_status tq_broadcast_prepare(tq_node *node, int first, int inputs, tq_broadcast *plan, tq_error *error);

/* Walks: an eval function for nodes whose state begins with a tq_broadcast.  Their scratch is the walk's. */
tq_status tq_broadcast_eval(tq_node *node, tq_error *error);

/* Defines a tq_broadcast_fn for two inputs: `expression` of x, y (an A and a B) and p (a copy of the
   PARAMS record at params, so that stores cannot be thought to change it). */
#define TQ_BROADCAST_2(name, attributes, A, B, R, PARAMS, expression) \
    attributes static void name(const tq_broadcast_run *stretch)      \
    {                                                                 \
        const A *a = stretch->in[0];                                  \
        const B *b = stretch->in[1];                                  \
        R *out = stretch->out;                                        \
        const size_t n = stretch->n;                                  \
        const PARAMS p = *(const PARAMS *)stretch->params;            \
        (void)p;                                                      \
        if (stretch->still[0]) {                                      \
            const A x = a[0];                                         \
            for (size_t i = 0; i < n; i++) {                          \
                const B y = b[i];                                     \
                out[i] = (R)(expression);                             \
            }                                                         \
        } else if (stretch->still[1]) {                               \
            const B y = b[0];                                         \
            for (size_t i = 0; i < n; i++) {                          \
                const A x = a[i];                                     \
                out[i] = (R)(expression);                             \
            }                                                         \
        } else {                                                      \
            for (size_t i = 0; i < n; i++) {                          \
                const A x = a[i];                                     \
                const B y = b[i];                                     \
                out[i] = (R)(expression);                             \
            }                                                         \
        }                                                             \
    }

/* The same as one plain loop, which compilers do not vectorize, with a ninth of the code: for rows that few models use.
 */
#define TQ_BROADCAST_2_SMALL(name, A, B, R, PARAMS, expression)                \
    static void name(const tq_broadcast_run *stretch)                          \
    {                                                                          \
        const A *a = stretch->in[0];                                           \
        const B *b = stretch->in[1];                                           \
        R *out = stretch->out;                                                 \
        const size_t a_step = !stretch->still[0], b_step = !stretch->still[1]; \
        const PARAMS p = *(const PARAMS *)stretch->params;                     \
        (void)p;                                                               \
        for (size_t i = 0; i < stretch->n; i++) {                              \
            const A x = a[i * a_step];                                         \
            const B y = b[i * b_step];                                         \
            out[i] = (R)(expression);                                          \
        }                                                                      \
    }

/* The PARAMS of rows without parameters. */
typedef struct tq_empty {
    char none;
} tq_empty;
extern const tq_empty tq_empty_params;

#endif
