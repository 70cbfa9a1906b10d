/* SPDX-License-Identifier: Apache-2.0
 *
 * What a calibration set teaches about a tensor: its range, exactly, and a histogram.
 *
 * kernels/arrays/observe.h fills the records.  Everything is one record a channel, in arrays that the caller owns.  NaN
 * and the infinities lie in no range: they are counted and otherwise passed over.  A zero of either sign counts as +0,
 * so that results do not depend on the order of the data.
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

/* A dense array of floats or doubles, seen around one axis. */
typedef struct tq_reals {
    const void *data;
    bool is_double;
    tq_axis_view view;
} tq_reals;

/* At most so many threads for a walk over x: below so many bytes, another costs more than it brings. */
static inline int tq_observe_threads(const tq_reals *x, int wanted)
{
    const size_t bytes_a_thread = 262144;
    return tq_threads_for(wanted, tq_axis_view_size(x->view) * (x->is_double ? 8 : 4), bytes_a_thread);
}

#endif
