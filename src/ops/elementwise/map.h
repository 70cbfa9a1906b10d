/* SPDX-License-Identifier: Apache-2.0
 *
 * One input, one output of its shape, element by element.
 */
#ifndef TQ_OPS_ELEMENTWISE_MAP_H
#define TQ_OPS_ELEMENTWISE_MAP_H

#include "ops/check.h"

/* Computes n contiguous elements of `out` from the n of `in`; n >= 0. */
typedef void (*tq_map_fn)(const void *in, void *out, size_t n, const void *params);

typedef struct tq_map {
    tq_map_fn run;
    const void *params;
    size_t in_bytes, out_bytes; /* of an element */
    int cost; /* of an element, in picoseconds; 0: TQ_USUAL_COST */
} tq_map;

/* Gives output 0 the shape of input 0, and sets eval to tq_map_eval.  The node's state begins with `map`; the caller
   sets run, params and cost, before or after. */
tq_status tq_map_prepare(tq_node *node, tq_map *map, tq_error *error);

/* Runs the map over all elements.  A range given to `run` begins at a multiple of 64 elements.  Never fails. */
tq_status tq_map_eval(tq_node *node, tq_error *error);

/* Before a loop whose output may be an input (node->in_place), and overlaps none otherwise: no element waits for
   another one's.  clang's own check of the addresses takes equal ones for an overlap. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* of loops that stay scalar */
#define TQ_IN_PLACE _Pragma("clang loop vectorize(assume_safety)")
#else
#define TQ_IN_PLACE _Pragma("GCC ivdep")
#endif

/* Defines a tq_map_fn: `expression` of x (an A) and p (a copy of the PARAMS record at params: a copy cannot alias the
   output). */
#define TQ_MAP(name, attributes, A, R, PARAMS, expression)                               \
    attributes static void name(const void *in, void *out, size_t n, const void *params) \
    {                                                                                    \
        const A *from = in;                                                              \
        R *to = out;                                                                     \
        const PARAMS p = *(const PARAMS *)params;                                        \
        (void)p;                                                                         \
        TQ_IN_PLACE                                                                      \
        for (size_t i = 0; i < n; i++) {                                                 \
            const A x = from[i];                                                         \
            to[i] = (R)(expression);                                                     \
        }                                                                                \
    }

#endif
