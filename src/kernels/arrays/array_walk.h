/* SPDX-License-Identifier: Apache-2.0
 *
 * From an array and its parameters to calls of row and lanes kernels; what quantize, dequantize and requantize have
 * in common.
 *
 * Parameter sets become columns (kernels.h).  There are three ways from there:
 *   rows      each set covers a long contiguous run: row kernels do run after run;
 *   lanes     runs are short and their pattern repeats: columns are spread out, one entry an element, over the pattern
 *             or enough repetitions of it to fill a loop, and lanes kernels do pattern after pattern;
 *   folded    runs are short and the pattern does not repeat: parameters are spread out some elements at a time.
 * Columns of sets that are used once are made some sets at a time: fresh memory for all would take longer than making
 * them.  Input or output that is converted goes through a buffer that stays in the first-level cache.
 */
#ifndef TQ_KERNELS_ARRAY_WALK_H
#define TQ_KERNELS_ARRAY_WALK_H

#include "kernels/arrays/columns.h"
#include "kernels/arrays/arrays.h"
#include "kernels/kernels.h"

typedef union tq_walk_params {
    tq_quantize_params quantize;
    tq_dequantize_params dequantize;
    tq_requantize_params requantize;
} tq_walk_params;

/* What parameter sets are made of; by operation. */
typedef struct tq_walk_source {
    tq_column_f32 scale;
    tq_column_f64 multiplier;
    tq_column_i32 zero_point, input_zero_point;
    tq_requantize_rule rule;
    tq_element in, out;
    bool in_place; /* parameters may point at what is here, and need no columns of it */
    const tq_requantize_sets *sets; /* of requantize, where they are made before */
} tq_walk_source;

/* The columns of sets [first, first + count), and what the parameters say of all of them: `columns`, a bit each, and
   perhaps others. */
typedef void (*tq_walk_fill_fn)(tq_walk_params *params, char *const *data, unsigned columns,
                                const tq_walk_source *source, size_t first, size_t count);

typedef struct tq_walk {
    const char *in;
    char *out;
    size_t in_size, out_size;
    tq_kernel_fn kernel, widen, narrow; /* widen, narrow: NULL, or a conversion before, after */
    uint8_t extend;  /* the bits of input values that are to be extended before, or 0 */
    bool is_signed;  /* they are */
    tq_walk_params *params;
    tq_layout layout;
    size_t pattern; /* lanes: entries of a pattern, or of as many as are spread out; 0: rows */
    size_t pitch;   /* entries from group to group, where columns are ready */
    const tq_columns *columns;
    bool ready; /* the columns of all sets are there; or they are made as they are needed */
    const tq_walk_source *source;
    tq_walk_fill_fn fill;
    void (*point)(tq_walk_params *, char *const *); /* lets parameters point at columns */
} tq_walk;

/* The way that is fastest: lanes or, unless their pattern comes often, folded where runs are short, else rows. */
typedef enum tq_way { TQ_WAY_ROWS, TQ_WAY_PATTERNS, TQ_WAY_FOLDED } tq_way;
tq_way tq_layout_way(const tq_layout *layout);

/* The entries of columns that are made beforehand: of all sets, if they are used often, and of those spread out. */
typedef struct tq_walk_needs {
    size_t sets, pattern; /* pattern: entries of a pattern, 0 for rows */
    size_t pitch;         /* entries of a group */
    size_t spread;        /* all groups' pitches, 0 if sets will do */
} tq_walk_needs;
tq_walk_needs tq_layout_needs(const tq_layout *layout);

size_t tq_layout_elements(const tq_layout *layout);

/* One set for everything is one run. */
tq_layout tq_layout_joined(tq_layout layout, bool many);

/* Whether the output leaves the caches before it is read. */
bool tq_job_is_large(const tq_array_job *job);

/* Does the whole array, which is not empty.  The caller sets the walk's params, layout, source, fill and point;
   the rest is set here.  Columns are freed. */
tq_status tq_walk_run(tq_walk *walk, const tq_array_job *job, tq_operation operation, tq_columns *columns,
                      tq_error *error);

/* A column of floats or integers from one value or from as many as sets. */
void tq_fill_u32(void *to, const void *from, bool many, size_t first, size_t sets);

/* What kernels take off 8-bit values to make them signed. */
static inline int32_t tq_integer_center(tq_element type)
{
    return tq_element_low(type) == 0 ? 128 : 0;
}

#endif
