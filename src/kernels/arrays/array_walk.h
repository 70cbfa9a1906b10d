/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk of quantize, dequantize and requantize over an array: from its parameters to calls of row and lanes kernels.
 *
 * Parameter sets become columns (kernels/elementwise.h).  There are three ways to use them:
 *   rows      each set covers a long contiguous run: row kernels compute run after run;
 *   patterns  runs are short and the sets repeat: columns are expanded to one entry an element, over the pattern or as
 *             many repetitions as fill a loop, and lanes kernels compute pattern after pattern;
 *   folded    runs are short and the sets do not repeat: columns are expanded for some elements at a time.
 * Columns of sets that are used once are computed for some sets at a time: fresh memory for all sets costs more than
 * computing them.  Converted input or output goes through a buffer in the first-level cache.
 */
#ifndef TQ_KERNELS_ARRAY_WALK_H
#define TQ_KERNELS_ARRAY_WALK_H

#include "kernels/arrays/arrays.h"
#include "kernels/arrays/columns.h"
#include "kernels/kernels.h"

typedef union tq_walk_params {
    tq_quantize_params quantize;
    tq_dequantize_params dequantize;
    tq_requantize_params requantize;
} tq_walk_params;

/* The parameters that columns are computed from, by operation. */
typedef struct tq_walk_source {
    tq_column_f32 scale;
    tq_column_f64 multiplier;
    tq_column_i32 zero_point, input_zero_point;
    tq_requantize_rule rule;
    tq_element in, out;
    bool in_place; /* params may point into these arrays, without columns */
    const tq_requantize_sets *sets; /* requantize: columns that exist already, or NULL */
} tq_walk_source;

/* Computes the columns of sets [first, first + count), at least those in the bit set `columns`, and the flags of params
   that hold for all of these sets. */
typedef void (*tq_walk_fill_fn)(tq_walk_params *params, char *const *data, unsigned columns,
                                const tq_walk_source *source, size_t first, size_t count);

typedef struct tq_walk {
    const char *in;
    char *out;
    size_t in_size, out_size;
    tq_kernel_fn kernel, widen, narrow; /* widen, narrow: a conversion before, after the kernel, or NULL */
    uint8_t extend;  /* the mask of narrow input values, which are extended to whole bytes; 0: none */
    bool is_signed;  /* narrow input values are signed */
    tq_walk_params *params;
    tq_layout layout;
    size_t pattern; /* entries of the expanded pattern; 0: rows */
    size_t pitch;   /* entries from group to group, where columns are ready */
    const tq_columns *columns;
    bool ready; /* the columns of all sets are computed before the walk; false: during the walk */
    const tq_walk_source *source;
    tq_walk_fill_fn fill;
    void (*point)(tq_walk_params *, char *const *); /* points params at columns */
} tq_walk;

/* The fastest way of a layout: rows for long runs; for short runs patterns where they repeat often, else folded. */
typedef enum tq_way { TQ_WAY_ROWS, TQ_WAY_PATTERNS, TQ_WAY_FOLDED } tq_way;
tq_way tq_layout_way(const tq_layout *layout);

/* The columns that are computed before the walk; sets 0: none. */
typedef struct tq_walk_needs {
    size_t sets;    /* all sets, where each is used often */
    size_t pattern; /* entries of the expanded pattern; 0: rows */
    size_t pitch;   /* entries of a group */
    size_t spread;  /* entries of all groups; 0: the columns of sets are not expanded */
} tq_walk_needs;
tq_walk_needs tq_layout_needs(const tq_layout *layout);

/* The elements of an array. */
size_t tq_layout_elements(const tq_layout *layout);

/* The layout, or one run of all elements where `many` is false: one set for all. */
tq_layout tq_layout_joined(tq_layout layout, bool many);

/* Whether the output is so large that it leaves the caches before it is read. */
bool tq_job_is_large(const tq_array_job *job);

/* Computes the whole array, which is not empty.  The caller sets params, layout, source, fill and point of the walk and
   size, count, needed, constant and scratch of the columns.  Frees the columns. */
tq_status tq_walk_run(tq_walk *walk, const tq_array_job *job, tq_operation operation, tq_columns *columns,
                      tq_error *error);

/* Fills a column of 4-byte values for sets [first, first + sets): from one value, or from an array of all sets. */
void tq_fill_u32(void *to, const void *from, bool many, size_t first, size_t sets);

/* The value that kernels subtract from values of this type to make them signed: 128 or 0. */
/* The low 8 bits, four times. */
static inline int32_t tq_four_bytes(int32_t value)
{
    const uint32_t bytes = ((uint32_t)value & UINT8_MAX) * 0x01010101u;
    return (int32_t)bytes;
}

static inline int32_t tq_integer_center(tq_element type)
{
    return tq_element_low(type) == 0 ? 128 : 0;
}

#endif
