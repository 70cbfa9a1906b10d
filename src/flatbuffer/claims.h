/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims: the bytes of a file that belong to the tables, vectors and strings of a tree.
 *
 * An unknown offset (unknown.c) never leads to claimed bytes.
 */
#ifndef TQ_FLATBUFFER_CLAIMS_H
#define TQ_FLATBUFFER_CLAIMS_H

#include "flatbuffer/reading.h"

/* The bytes [start, end) of a file. */
typedef struct tq_span {
    uint64_t start, end;
} tq_span;

typedef struct tq_claims {
    tq_span *spans; /* [count], ascending, without overlap or contact; NULL while they are counted */
    size_t count, room; /* spans used and allocated */
    uint64_t end; /* the largest end of a span */
} tq_claims;

/* The claims of all nodes that were read so far.  The caller releases out->spans with the tree's allocator.
   TQ_NO_MEMORY. */
tq_status tq_claims_find(tq_reading *r, tq_claims *out);

/* The index of the first span whose end is > `at`; c->count: none.  The span claims `at` if its start is <= `at`. */
size_t tq_claims_first_after(const tq_claims *c, uint64_t at);

/* The first claimed byte >= `at`; r->end where there is none below it. */
uint64_t tq_claims_next(const tq_reading *r, const tq_claims *c, uint64_t at);

#endif
