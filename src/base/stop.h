/* SPDX-License-Identifier: Apache-2.0
 *
 * Ctrl-C while something computes.
 *
 * A computation that may take long listens to a tq_stop: tq_stop_enter makes one the thread's, and tq_parallel_for
 * carries it to the threads that help.  Loops at any depth then ask tq_stop_now() or, where an item is short,
 * tq_stop_after(work), and return early, whatever they have.  Such results are garbage: whoever entered looks at
 * tq_stop.stopped when the computation returns, and throws them away.  So a loop may leave only what no later step of
 * the same computation takes for an index or a size.
 */
#ifndef TQ_BASE_STOP_H
#define TQ_BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/denormals.h"

typedef struct tq_stop {
    bool (*ask)(void *context); /* whether to stop; called on the thread that entered alone.  NULL: nobody is asked */
    void *context;
    tq_denormals denormals; /* the mode that `ask` runs in */
    uint64_t last_asked;    /* nanoseconds */
    atomic_bool stopped;
} tq_stop;

/* The tq_stop that a thread listens to. */
typedef struct tq_listener {
    tq_stop *stop; /* NULL: nothing */
    bool asks;     /* it is the thread that entered; others see what that one heard */
} tq_listener;

/* A shared object's own thread-local variables take a call to find.  glibc keeps room for those of objects that are
   loaded later, where a variable of a few words is found without one; musl refuses such objects. */
#if defined(__GLIBC__) && defined(__ELF__)
#define TQ_STATIC_TLS __attribute__((tls_model("initial-exec")))
#else
#define TQ_STATIC_TLS
#endif

/* What each thread has; for this file and stop.c. */
typedef struct tq_stop_state {
    tq_listener listener;
    size_t work; /* since the last look */
} tq_stop_state;
extern _Thread_local tq_stop_state tq_stop_mine TQ_STATIC_TLS;

/* From now on this thread listens to `now`; returns the listener before, to be entered again at the end. */
tq_listener tq_stop_enter(tq_listener now);

/* The listener of this thread, as its helpers have it. */
tq_listener tq_stop_helper(void);

/* Whether this thread listens to anything. */
bool tq_stop_listens(void);

/* Whether to stop.  Reads a clock; asks the caller some fifty times a second at most. */
bool tq_stop_now(void);

/* The same, and begins to count work anew. */
bool tq_stop_look(void);

#define TQ_STOP_WORK ((size_t)1 << 16) /* element operations between two looks: at 50 ns each, 3 ms */

/* The same after `work` more element operations; looks once in some ten thousand of them. */
static inline bool tq_stop_after(size_t work)
{
    const tq_stop *stop = tq_stop_mine.listener.stop;
    if (!stop)
        return false;
    tq_stop_mine.work = work < TQ_STOP_WORK ? tq_stop_mine.work + work : TQ_STOP_WORK;
    if (tq_stop_mine.work >= TQ_STOP_WORK)
        return tq_stop_look();
    return atomic_load_explicit(&stop->stopped, memory_order_relaxed);
}

#define TQ_CHUNK ((size_t)1 << 14)

/* The same for loops of steps so short that a call for each would tell: *work adds up what was not said yet. */
static inline bool tq_stop_count(size_t *work, size_t more)
{
    *work = more < TQ_CHUNK ? *work + more : TQ_CHUNK;
    if (*work < TQ_CHUNK)
        return false;
    *work = 0;
    return tq_stop_after(TQ_CHUNK);
}

/* Asks at once if the last answer is old. */
bool tq_stop_ask(tq_stop *stop);

/* for (size_t i = 0; i < n; i++), that may end early; each step is some element operations.  Loops shorter than a chunk
   pay nothing, and compilers make vectors of the inner loop. */
#define TQ_EACH(i, n)                                                                                           \
    for (size_t i##_chunk = 0, i##_end; i##_chunk < (n) && (i##_chunk == 0 || !tq_stop_after(TQ_CHUNK));        \
         i##_chunk = i##_end)                                                                                   \
        for (size_t i = ((void)(i##_end = (n) - i##_chunk < TQ_CHUNK ? (n) : i##_chunk + TQ_CHUNK), i##_chunk); \
             i < i##_end; i++)

/* memcpy and memset of any number of bytes, which stop when asked to. */
void tq_copy_long(void *to, const void *from, size_t bytes);
static inline void tq_copy(void *to, const void *from, size_t bytes)
{
    if (bytes > TQ_CHUNK)
        tq_copy_long(to, from, bytes);
    else if (bytes)
        memcpy(to, from, bytes);
}
void tq_fill(void *to, int byte, size_t bytes);

#endif
