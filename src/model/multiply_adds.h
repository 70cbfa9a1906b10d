/* SPDX-License-Identifier: Apache-2.0
 *
 * How many multiply-adds one run of an operator takes, by the rows of multiply_adds.def: from the shapes in a file, or
 * from those of a model that runs.
 */
#ifndef TQ_MODEL_MULTIPLY_ADDS_H
#define TQ_MODEL_MULTIPLY_ADDS_H

#include "model/model.h"

enum { TQ_EXTENT_DIMS = 64 }; /* a longer shape is no shape, and its product could grow without bound */

typedef struct tq_extent {
    uint32_t rank;
    int32_t dims[TQ_EXTENT_DIMS]; /* each >= 0 */
} tq_extent;

typedef enum tq_given { TQ_GIVEN, TQ_LEFT_OUT, TQ_NO_SHAPE } tq_given;

/* An operator's shapes, wherever they come from. */
typedef struct tq_extents {
    const void *context;
    /* The shape of input or output `index`, which is below `inputs` or `outputs`. */
    tq_given (*shape)(const void *context, bool output, uint32_t index, tq_extent *out);
    uint32_t inputs, outputs;
} tq_extents;

typedef enum tq_count_kind {
    TQ_COUNT_KNOWN,
    TQ_COUNT_UNKNOWN, /* shapes are missing or do not fit, or the operator is one that no row names */
    TQ_COUNT_HUGE     /* 2^64 or more */
} tq_count_kind;

tq_count_kind tq_multiply_adds(const tq_operator *op, const tq_extents *extents, uint64_t *out);

/* The same from the shapes in the file. */
tq_count_kind tq_multiply_adds_in_file(const tq_subgraph *subgraph, const tq_operator *op, uint64_t *out);

/* Row by row, the names of the operators that have one; NULL: there are no more. */
const char *tq_multiply_adds_name(size_t row);

#endif
