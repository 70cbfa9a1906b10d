/* SPDX-License-Identifier: Apache-2.0
 *
 * The multiply-adds of one run of an operator, by the rows of multiply_adds.def, from the shapes in a file or the
 * shapes of a model that runs.
 */
#ifndef TQ_MODEL_MULTIPLY_ADDS_H
#define TQ_MODEL_MULTIPLY_ADDS_H

#include "model/model.h"

enum { TQ_EXTENT_DIMS = 64 }; /* the limit of a rank, which bounds the time of a product */

typedef struct tq_extent {
    uint32_t rank;
    int32_t dims[TQ_EXTENT_DIMS]; /* each >= 0 */
} tq_extent;

/* Whether a shape is known, belongs to an optional tensor that is left out, or is unknown. */
typedef enum tq_given { TQ_GIVEN, TQ_LEFT_OUT, TQ_NO_SHAPE } tq_given;

/* The shapes of an operator's tensors, from any source. */
typedef struct tq_extents {
    const void *context;
    /* The shape of input (!output) or output `index`, which is < inputs or < outputs. */
    tq_given (*shape)(const void *context, bool output, uint32_t index, tq_extent *out);
    uint32_t inputs, outputs;
} tq_extents;

typedef enum tq_count_kind {
    TQ_COUNT_KNOWN,
    TQ_COUNT_UNKNOWN, /* shapes are missing or contradict each other, or a custom operator has no row */
    TQ_COUNT_HUGE     /* 2^64 or more */
} tq_count_kind;

/* The multiply-adds of the operator; *out is set for TQ_COUNT_KNOWN only. */
tq_count_kind tq_multiply_adds(const tq_operator *op, const tq_extents *extents, uint64_t *out);

/* The same from the shapes in the file. */
tq_count_kind tq_multiply_adds_in_file(const tq_subgraph *subgraph, const tq_operator *op, uint64_t *out);

/* The name of the operator of row `row`; NULL: row >= the number of rows. */
const char *tq_multiply_adds_name(size_t row);

#endif
