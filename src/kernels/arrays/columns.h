/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns of parameters (kernels/elementwise.h): one entry a set, or expanded to one entry an element.
 *
 * A rule reads some columns only: those in `needed`.  The others exist with unspecified values, or zeros where
 * expanded.
 */
#ifndef TQ_KERNELS_COLUMNS_H
#define TQ_KERNELS_COLUMNS_H

#include "base/status.h"
#include "kernels/arrays/arrays.h"

#define TQ_COLUMNS 10
#define TQ_FOLD 512         /* elements whose parameters are expanded at a time, where runs are folded */
#define TQ_SET_BYTES 44     /* bytes of a set in all columns: the most of any operation */
#define TQ_SETS_BYTES 65536 /* bytes of columns that are computed at a time */

typedef struct tq_columns {
    char *data[TQ_COLUMNS];
    size_t size[TQ_COLUMNS]; /* bytes of an entry: 8 (these columns come first) or 4 */
    int count;               /* columns */
    unsigned needed;         /* bit i: the rule reads column i */
    unsigned constant;       /* bit i: all sets are equal in column i */
    size_t entries;
    char *scratch;   /* the caller's memory for columns; NULL: they are allocated */
    void *memory[2]; /* allocated: the columns of sets, and the expanded columns */
} tq_columns;

/* The bytes of scratch for columns of `entries` entries.  false: they exceed size_t. */
bool tq_columns_bytes(const tq_columns *c, size_t entries, uint64_t *bytes);

/* Allocates `count` columns of `entries` entries and padding; entries: 1 and more.  tq_columns_free follows, also after
   failure.  TQ_NO_MEMORY. */
tq_status tq_columns_allocate(tq_columns *c, size_t entries, tq_error *error);
void tq_columns_free(tq_columns *c);

/* Fills the padding behind the last entry, which lanes kernels may read. */
void tq_columns_pad(tq_columns *c);

/* Expands columns of sets in place: in each group every channel `inner` times, and all of that `repeats` times.
   TQ_NO_MEMORY. */
tq_status tq_columns_spread(tq_columns *c, const tq_layout *layout, size_t repeats, tq_error *error);

/* Sets data[] to columns of `entries` entries, one behind the other in `memory`; returns their bytes. */
size_t tq_columns_lay_out(const tq_columns *c, char *memory, size_t entries, char *data[]);

/* Columns of a few sets at a time, for sets that are used once. */
typedef struct tq_few_sets {
    _Alignas(64) char memory[TQ_SETS_BYTES];
    char *data[TQ_COLUMNS];
} tq_few_sets;

/* Lays out the columns of `c` in f->memory: as many entries as fit. */
void tq_few_sets_init(tq_few_sets *f, const tq_columns *c);

/* Repeats the first entry of constant columns `entries` times, or as often as there is room. */
void tq_few_sets_constant(tq_few_sets *f, const tq_columns *c, size_t entries);

/* Expanded columns of up to TQ_FOLD elements, whose runs are too short for row kernels. */
typedef struct tq_folded {
    _Alignas(64) char memory[TQ_SET_BYTES * (TQ_FOLD + TQ_COLUMN_PADDING)];
    char *data[TQ_COLUMNS];
} tq_folded;

/* Sets data[], and fills the constant columns from the first of `sets`. */
void tq_folded_init(tq_folded *f, const tq_columns *c, char *const *sets);

/* Expands the columns in the bit set `columns` to n elements, n <= TQ_FOLD: each set has a run of `inner` elements, of
   which the first begins `cut` elements in; cut < inner. */
void tq_folded_fill(tq_folded *f, const tq_columns *c, unsigned columns, char *const *sets, size_t inner, size_t cut,
                    size_t n);

#endif
