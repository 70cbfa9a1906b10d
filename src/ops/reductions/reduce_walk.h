/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk that all reductions share: which input elements belong to which output.
 *
 * Dimensions of 1 are dropped, and neighbours that are both reduced, or both kept, are merged, so that reduced and
 * kept dimensions alternate.  If the innermost is kept, a whole row of outputs is folded at once, element by element;
 * if it is reduced, a run of inputs is folded into one output, and the runs of neighbouring outputs together.  Either
 * way an output meets its inputs in the order in which they lie.  That is the reference's order, so that float sums
 * round alike.  XNNPACK keeps dimensions of 1, and scales float sums after each pass over the innermost reduced
 * dimension.
 */
#ifndef TQ_OPS_REDUCTIONS_REDUCE_H
#define TQ_OPS_REDUCTIONS_REDUCE_H

#include "ops/elementwise/fixed_point_lanes.h"

/* Accumulators that fold at once; they lie on the stack.  A multiple of 16. */
#define TQ_REDUCE_ROW 512

/* Rows of fold_rows. */
#define TQ_REDUCE_ROWS 4

typedef struct tq_reduction tq_reduction;
typedef void (*tq_fold_fn)(const tq_reduction *r, void *acc, const void *in, size_t n);

/* How one operator reduces one type; "+" is its operation. */
typedef struct tq_reducer {
    uint8_t in_bytes, acc_bytes, out_bytes; /* of an element: 1, 2, 4 or 8 */
    bool seeds_from_input; /* where all dimensions are reduced, the first element takes init's place */
    /* acc[i] = acc[i] + in[i] for n */
    tq_fold_fn fold_row[TQ_ISAS];
    /* acc[0] = acc[0] + in[0] + ... + in[n - 1] */
    tq_fold_fn fold_run[TQ_ISAS];
    /* out[i] from acc[i] for n */
    void (*store)(const tq_reduction *r, const void *acc, void *out, size_t n);
} tq_reducer;

struct tq_reduction {
    const tq_reducer *how;
    tq_fold_fn fold_row, fold_run; /* how's, for this machine */
    /* fold_run into acc[0] to acc[runs - 1] of runs of n inputs each, one behind the other; set by the caller before
       planning; NULL: one by one */
    void (*fold_runs)(const tq_reduction *r, void *acc, const void *in, size_t n, size_t runs);
    /* of n accumulators, after each pass over the innermost reduced dimension; set by the caller before planning, or
       NULL.  With it, dimensions of 1 stay, and fold_run meets a run whole and hears Ctrl-C. */
    void (*close)(const tq_reduction *r, void *acc, size_t n);
    tq_fold_fn fold_rows; /* fold_row of TQ_REDUCE_ROWS rows, cut_step[0] elements apart; set by the caller, or NULL */
    /* with fold_rows, and where `init` changes nothing: acc[i] = acc[i] + other accumulators, in any order and grouping
       of the inputs; set by the caller, or NULL */
    tq_fold_fn combine;
    uint64_t init; /* an accumulator, in its first acc_bytes */

    /* the merged dimensions but the innermost, from the inside out: sizes and steps in elements */
    int kept_rank, cut_rank; /* kept: of the output; cut: reduced */
    size_t kept[TQ_DIMS], kept_step[TQ_DIMS], cut[TQ_DIMS], cut_step[TQ_DIMS];
    bool row; /* the innermost dimension is kept */
    size_t inner; /* its size */
    size_t line, line_step; /* neighbouring outputs that fold together: a row, or runs in several passes; and the
                               elements from the inputs of each to the next */
    int line_rank; /* kept dimensions of a line but the innermost: 1 of runs */
    bool all; /* every dimension is reduced */
    size_t outputs, each; /* outputs, and inputs of each output */

    /* for quantized results */
    int32_t multiplier, shift, in_zero_point, out_zero_point, low, high;
    bool single; /* the multiplier rounds once */
    enum {
        TQ_REDUCE_EXACT, /* the reference's rule, for any multiplier */
        TQ_REDUCE_LANES, /* the same by `lanes`, where tq_lane_fits holds */
        TQ_REDUCE_EVEN, /* XNNPACK's: even(sum * by + offset) */
        TQ_REDUCE_AWAY, /* the optimized SUM: away(sum * by + offset) + zero point */
        TQ_REDUCE_BLOCKS /* the optimized MEAN: the rule "up" in whole blocks of 16; out_zero_point has the
                            rescaled in_zero_point in it */
    } rule;
    tq_lane_fixed lanes;
    bool fits; /* TQ_REDUCE_BLOCKS: tq_lane_fits holds for `lanes` */
    float by, offset;
};

/* Plans the reduction of `shape` over the dimensions d whose bit 1 << d is set in `axes`, by `how`, which outlives r.
   The caller sets init and the fields for quantized results, before or after. */
void tq_reduction_plan(tq_reduction *r, const tq_reducer *how, const tq_shape *shape, uint32_t axes);

/* Reduces `in`, of the planned shape, to r->outputs elements at `out`, on at most `threads` threads. */
void tq_reduction_run(const tq_reduction *r, const void *in, void *out, int threads);

#endif
