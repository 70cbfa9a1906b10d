/* SPDX-License-Identifier: Apache-2.0
 *
 * The least work that is worth waking a thread.
 */
#ifndef TQ_OPS_PARALLEL_H
#define TQ_OPS_PARALLEL_H

#include "base/threads.h"

/* The grain of tq_parallel_for for items of `work` >= 0 multiplications each: some microseconds. >= 1. */
static inline size_t tq_grain(size_t work)
{
    const size_t enough = 16384;
    return work ? enough / work + 1 : enough;
}

#endif
