/* SPDX-License-Identifier: Apache-2.0
 *
 * Ctrl-C while something computes.
 *
 * A long computation listens to a tq_stop: tq_stop_enter sets the thread's, and tq_parallel_for passes it to helper
 * threads.  Loops at any depth call tq_stop_now() or, where items are short, tq_stop_after(work), and return early on
 * true.  Their results are then unspecified: the function that entered reads tq_stop.stopped at the end, and discards
 * them.  So a loop that stops must not leave data that a later step of the computation uses as an index or a size.
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
    bool (*ask)(void *context); /* whether to stop; called on the thread that entered alone; NULL: never stop */
    void *context;
    bool flushed;           /* the thread that entered is in TQ_DENORMALS_ZERO, and leaves it for `ask` */
    tq_denormals denormals; /* its mode before */
    uint64_t last_asked;    /* nanoseconds */
    atomic_bool stopped;
} tq_stop;

/* The tq_stop that a thread listens to. */
typedef struct tq_listener {
    tq_stop *stop; /* NULL: nothing */
    bool asks;     /* the thread that entered: it calls `ask`; helpers read `stopped` */
} tq_listener;

/* A thread-local variable of a shared object is found by a call.  glibc reserves room in which small variables of
   objects that are loaded later are found without one; musl refuses such objects. */
#if defined(__GLIBC__) && defined(__ELF__)
#define TQ_STATIC_TLS __attribute__((tls_model("initial-exec")))
#else
#define TQ_STATIC_TLS
#endif

/* The state of a thread; for this file and stop.c. */
typedef struct tq_stop_state {
    tq_listener listener;
    size_t work; /* element operations since the last look */
} tq_stop_state;
extern _Thread_local tq_stop_state tq_stop_mine TQ_STATIC_TLS;

/* This thread listens to `now`.  Returns the listener before, which the caller enters again at the end. */
static inline tq_listener tq_stop_enter(tq_listener now)
{
    const tq_listener before = tq_stop_mine.listener;
    tq_stop_mine.listener = now;
    return before;
}

/* The listener for helpers of this thread. */
tq_listener tq_stop_helper(void);

/* Whether this thread listens to anything. */
bool tq_stop_listens(void);

/* Whether to stop.  Reads a clock; calls `ask` at most some fifty times a second. */
bool tq_stop_now(void);

/* The same; resets the count of work. */
bool tq_stop_look(void);

#define TQ_STOP_WORK ((size_t)1 << 16) /* element operations between two looks: at 50 ns each, 3 ms */

/* The same after `work` more element operations; looks once in TQ_STOP_WORK of them. */
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

/* The same for very short steps: *work, which starts at 0, counts up to TQ_CHUNK between two calls of tq_stop_after. */
static inline bool tq_stop_count(size_t *work, size_t more)
{
    *work = more < TQ_CHUNK ? *work + more : TQ_CHUNK;
    if (*work < TQ_CHUNK)
        return false;
    *work = 0;
    return tq_stop_after(TQ_CHUNK);
}

/* Whether to stop; calls `ask` unless it was called within the last 20 ms.  On the thread that entered. */
bool tq_stop_ask(tq_stop *stop);

/* for (size_t i = 0; i < n; i++) that ends early on stop; a step is a few element operations.  Loops shorter than a
   chunk cost nothing more, and compilers vectorize the inner loop. */
#define TQ_EACH(i, n)                                                                                           \
    for (size_t i##_chunk = 0, i##_end; i##_chunk < (n) && (i##_chunk == 0 || !tq_stop_after(TQ_CHUNK));        \
         i##_chunk = i##_end)                                                                                   \
        for (size_t i = ((void)(i##_end = (n) - i##_chunk < TQ_CHUNK ? (n) : i##_chunk + TQ_CHUNK), i##_chunk); \
             i < i##_end; i++)

/* memcpy and memset of any number of bytes that end early on stop. */
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
