/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding the ranges of quant/observe.h in arrays, on threads.
 */
#ifndef TQ_KERNELS_OBSERVE_H
#define TQ_KERNELS_OBSERVE_H

#include "quant/observe.h"

/* Overwrites one record a channel.  threads: at most; 0: as many as pay.  They change no result. */
void tq_observe(const tq_reals *x, int threads, tq_observed *observed);

#endif
