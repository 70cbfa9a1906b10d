/* SPDX-License-Identifier: Apache-2.0
 *
 * A parallel for over [0, count).
 *
 * One pool a process, made on first use; its workers never touch the caller's language runtime, and end when nobody has
 * called for some seconds.  Any
 * number of threads may call at once, and a call inside a body runs too.  After fork() the child starts
 * with an empty pool.  If the system gives no thread, the caller does all the work.
 */
#ifndef TQ_BASE_THREADS_H
#define TQ_BASE_THREADS_H

#include <stddef.h>

#define TQ_MAX_THREADS 64

/* Makes the pool survive fork().  tq_parallel_for calls this too, but a program that may fork while another thread
   makes its first call must do it before there are two threads: a fork does not run handlers that are registered
   while it runs. */
void tq_threads_init(void);

/* How many forks lie between the process that first called tq_threads_init and this one.  It tells this process from
   every one that it inherited memory from, for the cost of a load; getpid() would cost a system call. */
long tq_forks(void);

/* Does the elements [begin, end).  Different ranges run at the same time. */
typedef void (*tq_range_fn)(void *context, size_t begin, size_t end);

/* Calls body on ranges that cover [0, count) once, on at most `threads` threads, the caller's being
   one.  Every range but the last begins and ends on a multiple of `grain` (at least 1).  Returns when
   all is done; what the bodies wrote is then visible to the caller.  They run in the caller's mode of
   denormals (denormals.h), and listen to what the caller listens to (stop.h): when that says stop, some ranges are left
   out. */
void tq_parallel_for(size_t count, size_t grain, int threads, tq_range_fn body, void *context);

/* TQ_NUM_THREADS where it holds a positive number, else tq_processors(); 1 to TQ_MAX_THREADS. */
int tq_default_threads(void);

/* What TQ_NUM_THREADS says: a positive number, 0 for NULL and "", -1 for anything else. */
long tq_threads_wanted(const char *text);

/* How many threads to use: `wanted` where positive, else at most tq_default_threads(), each with at least
   bytes_a_thread of `bytes`: below that, another thread costs more than it brings. */
int tq_threads_for(int wanted, size_t bytes, size_t bytes_a_thread);

#endif
