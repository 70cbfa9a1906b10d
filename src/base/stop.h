/* SPDX-License-Identifier: Apache-2.0
 *
 * Ctrl-C while something computes.
 *
 * A computation that may take long listens to a tq_stop: tq_stop_enter makes one the thread's, and tq_parallel_for
 * carries it to the threads that help.  Loops at any depth then ask tq_stop_now() or, where an item is short,
 * tq_stop_after(work), and return early, whatever they have.  Such results are garbage: whoever entered looks at
 * tq_stop.stopped when the computation returns, and throws them away.  So a loop may leave only what no later step of the
 * same computation takes for an index or a size.
 */
#ifndef TQ_BASE_STOP_H
#define TQ_BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* From now on this thread listens to `now`; returns the listener before, to be entered again at the end. */
tq_listener tq_stop_enter(tq_listener now);

/* The listener of this thread, as its helpers have it. */
tq_listener tq_stop_helper(void);

/* Whether this thread listens to anything. */
bool tq_stop_listens(void);

/* Whether to stop.  Reads a clock; asks the caller some fifty times a second at most. */
bool tq_stop_now(void);

/* The same after `work` more element operations; looks once in some ten thousand of them. */
bool tq_stop_after(size_t work);

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
#define TQ_EACH(i, n)                                                                                               \
    for (size_t i##_chunk = 0, i##_end; i##_chunk < (n) && (i##_chunk == 0 || !tq_stop_after(TQ_CHUNK));            \
         i##_chunk = i##_end)                                                                                       \
        for (size_t i = ((void)(i##_end = (n) - i##_chunk < TQ_CHUNK ? (n) : i##_chunk + TQ_CHUNK), i##_chunk);     \
             i < i##_end; i++)

/* memcpy and memset of any number of bytes, which stop when asked to. */
void tq_copy(void *to, const void *from, size_t bytes);
void tq_fill(void *to, int byte, size_t bytes);

#endif
