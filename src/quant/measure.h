/* SPDX-License-Identifier: Apache-2.0
 *
 * How far one array lies from another, in one pass over both, whatever their types and strides.
 *
 * Elements are read as doubles (64-bit integers round) and their differences and products summed as
 * doubles, a chunk at a time, in lanes; then chunk after chunk.  Where chunks end depends on the shapes alone,
 * so the result does not depend on the number of threads.  Where squares leave double's range, which takes
 * float64 beyond 1e150 or below 1e-140, a second pass sums long doubles.
 *
 * NaN gives NaN, and so do infinities of the same sign in the same place.  Of no elements the greatest error is 0
 * and the others NaN.  A cosine with zeros alone is NaN; sqnr_db of equal arrays infinity.
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

typedef struct tq_measured {
    const char *data;
    tq_real_type type;
    ptrdiff_t strides[TQ_MEASURE_MAX_RANK]; /* bytes */
} tq_measured;

/* The shape that both have.  axis: the dimension whose indices are measured apart; -1: none. */
typedef struct tq_measure_shape {
    int rank;
    size_t dims[TQ_MEASURE_MAX_RANK];
    int axis;
} tq_measure_shape;

/* out: one double, or one for each index of axis.  threads: at most; 0: as many as pay. */
tq_status tq_measure(tq_measure_kind kind, const tq_measure_shape *shape, const tq_measured *x, const tq_measured *y,
                     int threads, double *out, tq_error *error);

#endif
