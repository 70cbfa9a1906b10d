/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of elementwise kernels, and the instruction sets that this process uses.
 */
#ifndef TQ_KERNELS_KERNELS_H
#define TQ_KERNELS_KERNELS_H

#include "kernels/elementwise.h"

/* A row of elementwise.def. */
typedef struct tq_kernel {
    const char *name; /* "quantize_away_f32_i8" */
    const char *isa;  /* "avx2" */
    uint8_t operation, in, out; /* tq_operation, tq_element, tq_element */
    uint8_t feature;            /* TQ_CPU_INDEX_x */
    tq_kernel_fn row, lanes;
} tq_kernel;

/* Chooses for each operation and types the last row whose feature is in `features` (TQ_CPU_ bits).  A program calls it
   once, before any other function here and while it has one thread. */
void tq_kernels_choose(uint32_t features);

/* The chosen row, or NULL: elementwise.def has no kernel for these types. */
const tq_kernel *tq_kernel_find(tq_operation operation, tq_element in, tq_element out);

/* Makes tq_kernel_find on this thread return the rows of `feature` (TQ_CPU_INDEX_x, one of the chosen features), and
   scalar rows where it has none, so that a test reaches every row.  -1 ends it. */
void tq_kernels_force(int feature);

/* All rows, for tests; *count: their number. */
const tq_kernel *tq_kernels(size_t *count);

/* The features given to tq_kernels_choose, as TQ_CPU_ bits. */
uint32_t tq_kernels_features(void);

/* The features that kernels may use on this thread: the chosen features, or the forced one and scalar. */
uint32_t tq_kernels_usable(void);

/* A row of a table of kernels, as listings show it. */
typedef struct tq_variant {
    const char *name, *isa;
    bool available; /* the machine has its instruction set, and no mask hides it */
    bool chosen;    /* callers of `name` run this row */
} tq_variant;

/* Row i of this table; gemm.h and depthwise.h have the same for theirs.  false: i is past the end. */
bool tq_kernel_variant(size_t i, tq_variant *row);

#endif
