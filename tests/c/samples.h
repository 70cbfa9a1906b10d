/* SPDX-License-Identifier: Apache-2.0
 *
 * Models that several tests read.
 */
#ifndef TQ_TESTS_SAMPLES_H
#define TQ_TESTS_SAMPLES_H

#include "maker.h"

/* A model with one part of every kind that the accessors know: scalars of several widths, vectors of each
   kind, strings, tables, unions, a constant, a sparse tensor, external buffers of ids 7 and 3. */
void make_sample_model(maker *m);

/* The parameters of a sparse tensor; index vectors have elements of `width` bytes. */
typedef struct sample_level {
    int64_t format, dense_size;
    uint32_t segment_count;
    int64_t segments[8];
    uint32_t index_count;
    int64_t indices[8];
    unsigned width;
} sample_level;

typedef struct sample_sparsity {
    uint32_t rank, order_count, block_count, level_count;
    int64_t type, shape[40], order[40], block_map[8];
    sample_level levels[8];
} sample_sparsity;

/* Appends a Tensor. */
size_t make_sparse_tensor(maker *m, const sample_sparsity *from);

#endif
