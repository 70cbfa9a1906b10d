/* SPDX-License-Identifier: Apache-2.0
 *
 * tq's C interface: everything that the core offers, and the contracts that hold for all of it.
 *
 * Bytes.  The core reads bytes that the caller owns, in place, at any alignment; they must outlive
 * whatever was got from them.  They may be hostile: no input reads out of bounds, loops without end
 * or asks for memory out of proportion to its size.  They may even change while they are read; what
 * is then read is unspecified, but stays inside.
 *
 * Failure.  A function that can fail returns a tq_status, leaves its out-pointers untouched when it
 * does, and fills the tq_error that it is given, which may be NULL.
 *
 * Memory.  What allocates takes a tq_allocator; every allocation may fail, with TQ_NO_MEMORY.
 *
 * Threads.  There is no global mutable state.  A model may be read from several threads, and run by any number
 * of runs (runtime/run.h), each used by one thread at a time.
 *
 * Names.  tq_noun_verb; TQ_ for constants.  Rooms stand in the order in which data flows: base,
 * flatbuffer, model, quant, kernels, ops, runtime; each header says the rest.
 */
#ifndef TQ_H
#define TQ_H

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"
#include "flatbuffer/flexbuffer.h"
#include "flatbuffer/table.h"
#include "flatbuffer/verify.h"
#include "model/graph.h"
#include "model/model.h"
#include "model/problems/problems.h"
#include "model/quantization.h"
#include "model/sparsity.h"
#include "model/tensor.h"
#include "quant/dequantize.h"
#include "runtime/run.h"

#endif
