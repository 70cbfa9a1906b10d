/* SPDX-License-Identifier: Apache-2.0
 *
 * How far one array lies from another, in one pass over both, for any types and strides.
 *
 * Elements are read as float64 (64-bit integers round); differences and products are summed in float64, in lanes, chunk
 * by chunk.  Chunks depend on the shape alone, so the result does not depend on the number of threads.  Where squares
 * leave float64's range (elements beyond 1e150 or below 1e-140), a second pass sums long doubles.
 *
 * NaN gives NaN, and so do infinities of the same sign at the same index.  For no elements the greatest error is 0 and
 * the other measures are NaN.  The cosine with an array of zeros is NaN; sqnr_db of equal arrays is infinity.
 */
#ifndef TQ_QUANT_MEASURE_H
#define TQ_QUANT_MEASURE_H

#include "base/status.h"
#include "quant/real_values.h"

typedef enum tq_measure_kind {
#define MEASURE(symbol, name, text) TQ_MEASURE_##symbol,
#include "quant/measure.def"
#undef MEASURE
    TQ_MEASURES
} tq_measure_kind;

#define TQ_MEASURE_MAX_RANK 64

/* An operand.  Its elements have any alignment. */
typedef struct tq_measured {
    const char *data;
    tq_real_type type;
    ptrdiff_t strides[TQ_MEASURE_MAX_RANK]; /* bytes */
} tq_measured;

/* The shape of both operands; rank: 0 to TQ_MEASURE_MAX_RANK.  axis: the dimension whose indices are measured one by
   one; -1: none. */
typedef struct tq_measure_shape {
    int rank;
    size_t dims[TQ_MEASURE_MAX_RANK];
    int axis;
} tq_measure_shape;

/* out: one value, or [dims[axis]].  threads: at most; 0: as many as pay.  TQ_NO_MEMORY. */
tq_status tq_measure(tq_measure_kind kind, const tq_measure_shape *shape, const tq_measured *x, const tq_measured *y,
                     int threads, double *out, tq_error *error);

#endif
