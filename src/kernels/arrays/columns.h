/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns of parameters, as kernels read them (kernels.h): one entry a set, or spread out, one an element.
 *
 * A kernel's rule reads some of the columns only, those that are `needed`.  The others exist, but nobody computes their
 * values: they hold any numbers, or zeros where they are spread out.
 */
#ifndef TQ_KERNELS_COLUMNS_H
#define TQ_KERNELS_COLUMNS_H

#include "base/status.h"
#include "kernels/arrays/arrays.h"

#define TQ_COLUMNS 10
#define TQ_FOLD 512 /* elements whose parameters are spread out at a time, where runs are folded */
#define TQ_SET_BYTES 44 /* no operation's columns have more in a set */
#define TQ_SETS_BYTES 65536 /* of sets whose columns are made at a time */

typedef struct tq_columns {
    char *data[TQ_COLUMNS];
    size_t size[TQ_COLUMNS]; /* of an entry: 8 (those columns come first) or 4 */
    int count;
    unsigned needed, constant; /* a bit each; constant: of all sets alike */
    size_t entries;
    char *scratch;   /* the caller's, which columns are laid in, or NULL: they are allocated */
    void *memory[2]; /* what was: the sets' columns, and those spread out */
} tq_columns;

/* The scratch that columns of `entries` sets take; false: too much. */
bool tq_columns_bytes(const tq_columns *c, size_t entries, uint64_t *bytes);

/* A column for each size, of `entries` sets and padding.  To be freed whatever it returns. */
tq_status tq_columns_allocate(tq_columns *c, size_t entries, tq_error *error);
void tq_columns_free(tq_columns *c);

/* Fills what lanes kernels may read past the end. */
void tq_columns_pad(tq_columns *c);

/* Spreads out each group: every channel `inner` times, the whole `repeats` times. */
tq_status tq_columns_spread(tq_columns *c, const tq_layout *layout, size_t repeats, tq_error *error);

/* Lays columns of so many entries one behind the other in memory that is there; returns the bytes that they take. */
size_t tq_columns_lay_out(const tq_columns *c, char *memory, size_t entries, char *data[]);

/* Columns of a few sets at a time, up to TQ_SETS_BYTES with padding: for sets that are used once. */
typedef struct tq_few_sets {
    _Alignas(64) char memory[TQ_SETS_BYTES];
    char *data[TQ_COLUMNS];
} tq_few_sets;

void tq_few_sets_init(tq_few_sets *f, const tq_columns *c);

/* Fills the columns in which all sets are alike with the first set's values: `entries` of them, if there is room. */
void tq_few_sets_constant(tq_few_sets *f, const tq_columns *c, size_t entries);

/* Columns of up to TQ_FOLD elements, of runs that are too short for a row kernel each. */
typedef struct tq_folded {
    _Alignas(64) char memory[TQ_SET_BYTES * (TQ_FOLD + TQ_COLUMN_PADDING)];
    char *data[TQ_COLUMNS];
} tq_folded;

/* With what is constant filled in, from any set. */
void tq_folded_init(tq_folded *f, const tq_columns *c, char *const *sets);

/* Fills `columns`, a bit each: n elements of runs of `inner`, a set each; the first begins `cut` elements into the run
   of the first set. */
void tq_folded_fill(tq_folded *f, const tq_columns *c, unsigned columns, char *const *sets, size_t inner, size_t cut,
                    size_t n);

#endif
