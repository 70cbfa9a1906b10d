/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk that all reductions share: which input elements belong to which output.
 *
 * Dimensions of 1 are dropped, and neighbours that are both reduced, or both kept, are merged, so that reduced and
 * kept dimensions alternate.  If the innermost is kept, a whole row of outputs is folded at once, element by element;
 * if it is reduced, a run of inputs is folded into one output.  Either way an output meets its inputs in the order in
 * which they lie.  That is the reference's order, so that float sums round alike.
 */
#ifndef TQ_OPS_REDUCTIONS_REDUCE_H
#define TQ_OPS_REDUCTIONS_REDUCE_H

#include "ops/elementwise/fixed_point_lanes.h"

/* Accumulators that fold at once: they live on the stack. */
#define TQ_REDUCE_ROW 512

typedef struct tq_reduction tq_reduction;
typedef void (*tq_fold_fn)(const tq_reduction *r, void *acc, const void *in, size_t n);

/* One way to reduce.  Accumulators have acc_bytes, at most 8. */
typedef struct tq_reducer {
    uint8_t in_bytes, acc_bytes, out_bytes;
    bool seeds_from_input; /* where all is reduced to one value, the first element takes init's place */
    /* acc[i] = acc[i] + in[i] for n, whatever + is */
    tq_fold_fn fold_row[TQ_ISAS];
    /* acc[0] = acc[0] + in[0] + ... + in[n - 1] */
    tq_fold_fn fold_run[TQ_ISAS];
    /* out[i] from acc[i] for n */
    void (*store)(const tq_reduction *r, const void *acc, void *out, size_t n);
} tq_reducer;

struct tq_reduction {
    const tq_reducer *how;
    tq_fold_fn fold_row, fold_run; /* how's, for this machine */
    uint64_t init; /* an accumulator, in its first acc_bytes */

    int kept_rank, cut_rank; /* without the innermost dimension */
    size_t kept[TQ_DIMS], kept_step[TQ_DIMS], cut[TQ_DIMS], cut_step[TQ_DIMS];
    bool row; /* the innermost dimension is kept */
    size_t inner;
    bool all; /* every dimension is reduced */
    size_t outputs, each; /* how many outputs, of how many inputs */

    /* for quantized results */
    int32_t multiplier, shift, in_zero_point, out_zero_point, low, high;
    enum {
        TQ_REDUCE_EXACT, /* the reference's rule, for any numbers */
        TQ_REDUCE_LANES, /* the same by `lanes` */
        TQ_REDUCE_EVEN,  /* XNNPACK's: even(sum * by + offset) */
        TQ_REDUCE_AWAY,  /* the optimized SUM: away(sum * by + offset) + zero point */
        TQ_REDUCE_BLOCKS /* the optimized MEAN: the rule up in whole blocks of 16, with out_zero_point + in_zero_point
                            in one */
    } way;
    tq_lane_fixed lanes;
    bool fits; /* TQ_REDUCE_BLOCKS: `lanes` does the same */
    float by, offset;
};

/* Plans the reduction of a shape over the dimensions whose bit is set in `axes`; init and the quantized fields are
   the caller's. */
void tq_reduction_plan(tq_reduction *r, const tq_reducer *how, const tq_shape *shape, uint32_t axes);

void tq_reduction_run(const tq_reduction *r, const void *in, void *out, int threads);

#endif
