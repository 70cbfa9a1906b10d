/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stop.h"

#include "base/clock.h"

enum {
    ASK_EVERY = 20000000, /* nanoseconds between two calls of `ask` */
    BYTES = 1 << 20       /* copied between two looks */
};

_Thread_local tq_stop_state tq_stop_mine TQ_STATIC_TLS;

tq_listener tq_stop_helper(void)
{
    return (tq_listener){tq_stop_mine.listener.stop, false};
}

bool tq_stop_listens(void)
{
    return tq_stop_mine.listener.stop != NULL;
}

/* `ask` runs arbitrary code of the caller, which may begin another computation: with no listener, in its own mode. */
static bool ask_outside(tq_stop *stop)
{
    const tq_listener before = tq_stop_enter((tq_listener){NULL, false});
    if (stop->flushed)
        tq_denormals_restore(stop->denormals);
    const bool wanted = stop->ask(stop->context);
    if (stop->flushed)
        tq_denormals_restore(TQ_DENORMALS_ZERO);
    tq_stop_enter(before);
    return wanted;
}

bool tq_stop_ask(tq_stop *stop)
{
    if (atomic_load_explicit(&stop->stopped, memory_order_relaxed))
        return true;
    if (!stop->ask)
        return false;
    const uint64_t now = tq_nanoseconds_coarse();
    if (now - stop->last_asked < ASK_EVERY)
        return false;
    stop->last_asked = now;
    if (!ask_outside(stop))
        return false;
    atomic_store_explicit(&stop->stopped, true, memory_order_relaxed);
    return true;
}

bool tq_stop_now(void)
{
    tq_stop *stop = tq_stop_mine.listener.stop;
    if (!stop)
        return false;
    return tq_stop_mine.listener.asks ? tq_stop_ask(stop) : atomic_load_explicit(&stop->stopped, memory_order_relaxed);
}

bool tq_stop_look(void)
{
    tq_stop_mine.work = 0;
    return tq_stop_now();
}

void tq_copy_long(void *to, const void *from, size_t bytes)
{
    while (bytes > BYTES && !tq_stop_after(BYTES / 64)) {
        memcpy(to, from, BYTES);
        to = (char *)to + BYTES;
        from = (const char *)from + BYTES;
        bytes -= BYTES;
    }
    if (bytes <= BYTES)
        memcpy(to, from, bytes);
}

void tq_fill(void *to, int byte, size_t bytes)
{
    while (bytes > BYTES && !tq_stop_after(BYTES / 64)) {
        memset(to, byte, BYTES);
        to = (char *)to + BYTES;
        bytes -= BYTES;
    }
    if (bytes <= BYTES && bytes)
        memset(to, byte, bytes);
}
