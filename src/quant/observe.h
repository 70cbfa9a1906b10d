/* SPDX-License-Identifier: Apache-2.0
 *
 * The exact range of a tensor's values over a calibration set.  kernels/arrays/observe.h fills the records, one a
 * channel.
 *
 * NaN and infinities are counted, and no part of the range.  Zeros of either sign count as +0, so that results do not
 * depend on the order of data.
 */
#ifndef TQ_QUANT_OBSERVE_H
#define TQ_QUANT_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/threads.h"
#include "quant/axis_view.h"

typedef struct tq_observed {
    double min, max; /* of the finite values; +infinity and -infinity where there are none */
    uint64_t finite, nan, infinite;
} tq_observed;

/* A dense array of float32 or float64, around one axis. */
typedef struct tq_reals {
    const void *data;
    bool is_double;
    tq_axis_view view;
} tq_reals;

/* Threads for a walk over x; wanted: at most, or 0: as many as pay.  With fewer bytes a thread costs more than it
 * saves. */
static inline int tq_observe_threads(const tq_reals *x, int wanted)
{
    const size_t bytes_a_thread = 262144;
    return tq_threads_for(wanted, tq_axis_view_size(x->view) * (x->is_double ? 8 : 4), bytes_a_thread);
}

#endif
