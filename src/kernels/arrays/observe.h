/* SPDX-License-Identifier: Apache-2.0
 *
 * The ranges of arrays (quant/observe.h), on threads.
 */
#ifndef TQ_KERNELS_OBSERVE_H
#define TQ_KERNELS_OBSERVE_H

#include "quant/observe.h"

/* Overwrites observed[x->view.channels].  threads: at most; 0: as many as pay; the result does not depend on it. */
void tq_observe(const tq_reals *x, int threads, tq_observed *observed);

#endif
