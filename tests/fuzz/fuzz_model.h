/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the fuzz targets and the replayer share.
 */
#ifndef TQ_TESTS_FUZZ_MODEL_H
#define TQ_TESTS_FUZZ_MODEL_H

#include "model/model.h"

#define PROMISE(condition) ((condition) ? (void)0 : fuzz_broken(#condition, __FILE__, __LINE__))
void fuzz_broken(const char *condition, const char *file, int line); /* prints the broken promise, and aborts */

/* An allocator of a target: blocks are counted, and allocations fail after some blocks. */
typedef struct fuzz_heap {
    long live, until_failure; /* blocks; allocations that still succeed */
} fuzz_heap;
tq_allocator fuzz_allocator(fuzz_heap *heap);

/* A target.  fuzz_model.c: opens the bytes and, if they are a model, walks all of it and writes it again.  fuzz_run.c:
   runs it.  Aborts where a promise is broken. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Calls every accessor on every part of an open model and returns a checksum of the results.  At
   most `steps` tables are visited: a model whose bytes changed since it was opened has no budget of
   its own. */
uint64_t fuzz_walk(const tq_model *model, uint64_t steps);

/* Of the inputs that open, how many are written again: all by default. */
extern unsigned fuzz_rewrites_one_in;

/* Reads the model into a tree, writes it, and compares the written model.  limit, share_equal: of tq_rewrite_plan.
   Returns the status of writing. */
tq_status fuzz_rewrite(const tq_model *model, uint64_t limit, bool share_equal);

#endif
