/* SPDX-License-Identifier: Apache-2.0
 *
 * What a calibration set teaches about a tensor: its range, exactly, and a histogram.
 *
 * Everything is one record a channel, in arrays that the caller owns.  NaN and the infinities lie in
 * no range: they are counted and otherwise passed over.  A zero of either sign counts as +0, so that
 * results do not depend on the order of the data.
 */
#ifndef TQ_QUANT_OBSERVE_H
#define TQ_QUANT_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "quant/axis_view.h"

typedef struct tq_observed {
    double min, max; /* of the finite values; +infinity and -infinity where there are none */
    uint64_t finite, nan, infinite;
} tq_observed;

/* A dense array of floats or doubles, seen around one axis. */
typedef struct tq_reals {
    const void *data;
    bool is_double;
    tq_axis_view view;
} tq_reals;

/* Overwrites one record a channel.  threads: at most; 0: as many as pay.  They change no result. */
void tq_observe(const tq_reals *x, int threads, tq_observed *observed);

/* At most so many threads for observing x. */
int tq_observe_threads(const tq_reals *x, int wanted);

#endif
