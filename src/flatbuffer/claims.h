/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a file that the tables, vectors and strings of a tree cover.
 *
 * An unknown offset (unknown.c) never leads to them.
 */
#ifndef TQ_FLATBUFFER_CLAIMS_H
#define TQ_FLATBUFFER_CLAIMS_H

#include "flatbuffer/reading.h"

typedef struct tq_span {
    uint64_t start, end;
} tq_span;

typedef struct tq_claims {
    tq_span *spans; /* by rising start, none touching another; NULL while they are counted */
    size_t count, room;
    uint64_t end; /* of the last of them */
} tq_claims;

/* The claims of what has been read so far; the caller releases out->spans to the tree's allocator. */
tq_status tq_claims_find(tq_reading *r, tq_claims *out);

/* The first span that ends past `at`, or as many as there are: `at` is covered if that span starts at or before it. */
size_t tq_claims_first_after(const tq_claims *c, uint64_t at);

/* The first byte at or after `at` that is covered, at most r->end. */
uint64_t tq_claims_next(const tq_reading *r, const tq_claims *c, uint64_t at);

#endif
