/* SPDX-License-Identifier: Apache-2.0
 *
 * A parallel for over [0, count).
 *
 * One pool a process, created on first use.  Workers never touch the caller's language runtime, and end after some
 * seconds without a call.  Any number of threads may call at once, also inside a body.  After fork() the child has an
 * empty pool.  If the system gives no thread, the caller does all the work.
 */
#ifndef TQ_BASE_THREADS_H
#define TQ_BASE_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TQ_MAX_THREADS 64

/* Registers fork handlers.  tq_parallel_for calls this too; a program that may fork while another thread makes its
   first call must call it before it has two threads, since a fork does not run handlers that are registered meanwhile.
 */
void tq_threads_init(void);

/* The number of forks from the process that first called tq_threads_init to this one.  It differs in every process from
   which this one inherited memory, and costs a load; getpid() would cost a system call. */
long tq_forks(void);

/* Computes elements [begin, end).  Disjoint ranges run at the same time. */
typedef void (*tq_range_fn)(void *context, size_t begin, size_t end);

/* Calls body on disjoint ranges that cover [0, count), on at most `threads` threads, one of them the caller's; returns
   when all are done.  Ranges begin and end on multiples of `grain` (at least 1), or at count.  Bodies run in the
   caller's denormal mode (denormals.h) and listen to its tq_stop (stop.h): on stop, some ranges are left out. */
void tq_parallel_for(size_t count, size_t grain, int threads, tq_range_fn body, void *context);

/* Computes elements [begin, end) with scratch number `share`, below the number of threads.  Calls that run at the same
   time have different ones. */
typedef void (*tq_share_fn)(void *context, size_t share, size_t begin, size_t end);

/* tq_parallel_for with grain 1, for a body with scratch for each thread. */
void tq_parallel_shares(size_t count, int threads, tq_share_fn body, void *context);

/* Whether a worker has had a call some microseconds ago and waits for the next: a hint. */
bool tq_worker_spins(void);

/* The threads, from 1 to `threads`, that have one unit of `work` each, or all of less. */
static inline size_t tq_working_threads(double work, int threads)
{
    const size_t most = (size_t)(threads < 1 ? 1 : threads), some = work < (double)most ? (size_t)work : most;
    return some ? some : 1;
}

/* The parts of each of `threads` threads, for tq_parallel_shares: 16 at most, of 4 units of `work` at least, which is
   that of all threads, and of one of `pieces` at least; 1 for one thread. */
static inline size_t tq_parts_of_thread(double work, size_t threads, size_t pieces)
{
    const double most = work / (double)threads / 4;
    const size_t parts = most < 16 ? (size_t)most : 16, whole = pieces / threads;
    const size_t each = parts < whole ? parts : whole;
    return threads > 1 && each > 1 ? each : 1;
}

/* From one thread's share of scratch to the next one's, for shares of `bytes` bytes.  Scratch that begins with the
   shares gives a thread the same memory in most calls, and so leaves it in the caches of one core. */
static inline uint64_t tq_share_bytes(uint64_t bytes, int threads)
{
    const uint64_t step = 64 << 10;
    return threads > 1 ? (bytes + step - 1) / step * step : bytes;
}

/* TQ_NUM_THREADS where it holds a positive number, else tq_processors(); 1 to TQ_MAX_THREADS. */
int tq_default_threads(void);

/* The value of TQ_NUM_THREADS: a positive number; 0 for NULL and ""; -1 for any other text. */
long tq_threads_wanted(const char *text);

/* The threads to use for `bytes` bytes: `wanted` where positive, else at most tq_default_threads(), so that each has at
   least bytes_a_thread (1 and more).  1 to TQ_MAX_THREADS. */
int tq_threads_for(int wanted, size_t bytes, size_t bytes_a_thread);

#endif
