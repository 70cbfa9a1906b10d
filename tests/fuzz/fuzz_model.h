/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fuzz target and the replayer share.
 */
#ifndef TQ_TESTS_FUZZ_MODEL_H
#define TQ_TESTS_FUZZ_MODEL_H

#include "model/model.h"

/* Opens the bytes and, if they are a model, walks all of it.  Aborts where a promise is broken. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Calls every accessor on every part of an open model and returns a checksum of the answers.  At
   most `steps` tables are visited: a model whose bytes changed since it was opened has no budget of
   its own. */
uint64_t fuzz_walk(const tq_model *model, uint64_t steps);

/* Of the inputs that open, how many are written again: all by default. */
extern unsigned fuzz_rewrites_one_in;

/* Reads the model into a tree, writes it and compares what is read back.  `limit` and `share_equal` are
   tq_rewrite_plan's.  Fails with what kept it from writing. */
tq_status fuzz_rewrite(const tq_model *model, uint64_t limit, bool share_equal);

#endif
