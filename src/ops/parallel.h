/* SPDX-License-Identifier: Apache-2.0
 *
 * The least work that is worth another thread.  Handing it to a worker that spins takes 0.4 microseconds, waking one
 * that sleeps 2 to 4.  Less than a worker's work costs more than its own time where another operator's threads wrote
 * its input: half of it comes from the other core's cache, at a tenth of the speed.
 */
#ifndef TQ_OPS_PARALLEL_H
#define TQ_OPS_PARALLEL_H

#include "base/sizes.h"
#include "base/threads.h"

/* The grain of tq_parallel_for for items of `work` >= 0 multiplications each: some microseconds. >= 1. */
static inline size_t tq_grain(size_t work)
{
    const size_t enough = 16384;
    return work ? enough / work + 1 : enough;
}

/* Work of a thread, at least: of one that spins, and of any. */
#define TQ_PICOSECONDS_A_SPINNING_THREAD 250000
#define TQ_PICOSECONDS_A_THREAD 1000000

/* A thread's part that is not cut further: what another thread took of it would come from this one's cache. */
#define TQ_SHORT_PICOSECONDS 50e6

/* Picoseconds for an element of most loops that compilers vectorize. */
enum { TQ_USUAL_COST = 150 };

/* The threads that pay for `count` items of about `picoseconds` each: 1 to `threads`. */
static inline int tq_paying_threads(size_t count, size_t picoseconds, int threads)
{
    if (threads <= 1)
        return 1;
    const int least = tq_worker_spins() ? TQ_PICOSECONDS_A_SPINNING_THREAD : TQ_PICOSECONDS_A_THREAD;
    const double paying = (double)count * (double)picoseconds / least;
    return paying < 2 ? 1 : paying < threads ? (int)paying : threads;
}

/* The grain that gives each of `threads` threads one part: for work that begins with tables. */
static inline size_t tq_part(size_t count, int threads)
{
    return count / (size_t)threads + 1;
}

/* tq_parallel_for on as many threads as pay.  Less work than pays for two threads is one call of body. */
static inline void tq_parallel_work(size_t count, size_t grain, size_t picoseconds, int threads, tq_range_fn body,
                                    void *context)
{
    const int paying = tq_paying_threads(count, picoseconds, threads);
    if (paying > 1) {
        const size_t part = tq_round_up(tq_divide_up(count, (size_t)paying), grain);
        const bool is_short = (double)part * (double)picoseconds < TQ_SHORT_PICOSECONDS;
        tq_parallel_for(count, is_short ? part : grain, paying, body, context);
    } else if (count > 0)
        body(context, 0, count);
}

#endif
