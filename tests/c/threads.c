/* SPDX-License-Identifier: Apache-2.0
 *
 * Under a race detector: tq_parallel_for with several callers at once and calls inside bodies, which computes every
 * index once; tq_parallel_shares, whose shares have one user at a time; loops that stop, where `ask` runs on the
 * caller's thread alone; and items of base/shared.h that threads need at the same time, each made once as long as it
 * has users.
 */
#include "base/shared.h"
#include "base/stop.h"
#include "base/threads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 10007
#define CALLERS 4
#define ROUNDS 100

struct work {
    unsigned char seen[COUNT];
    size_t grain;
};

static void touch(void *context, size_t begin, size_t end)
{
    struct work *w = context;
    if (begin % w->grain != 0 || (end % w->grain != 0 && end != COUNT))
        abort();
    for (size_t i = begin; i < end; i++)
        w->seen[i]++;
}

static void check(struct work *w)
{
    for (size_t i = 0; i < COUNT; i++)
        if (w->seen[i] != 1)
            abort();
}

static void nested(void *context, size_t begin, size_t end)
{
    struct work inner = {.grain = 64};
    tq_parallel_for(COUNT, inner.grain, 2, touch, &inner);
    check(&inner);
    touch(context, begin, end);
}

static void *call(void *unused)
{
    (void)unused;
    for (int k = 0; k < ROUNDS; k++) {
        struct work w = {.grain = 1 + (size_t)k * 37};
        tq_parallel_for(COUNT, w.grain, 1 + k % 5, k % 10 ? touch : nested, &w);
        check(&w);
    }
    return NULL;
}

struct shares {
    struct work w;
    int used[4]; /* written by a share's user alone */
};

static void touch_share(void *context, size_t share, size_t begin, size_t end)
{
    struct shares *s = context;
    if (share >= 4 || s->used[share]++ != 0)
        abort();
    touch(&s->w, begin, end);
    s->used[share]--;
}

static void *call_shares(void *unused)
{
    (void)unused;
    for (int k = 0; k < ROUNDS; k++) {
        struct shares s = {.w = {.grain = 1}};
        tq_parallel_shares(COUNT, 1 + k % 4, touch_share, &s);
        check(&s.w);
    }
    return NULL;
}

typedef struct asked {
    pthread_t thread;
    int times; /* calls of `ask` before it says stop */
} asked;

static bool ask(void *context)
{
    asked *a = context;
    if (!pthread_equal(a->thread, pthread_self()))
        abort();
    return a->times-- == 0;
}

static void spin(void *context, size_t begin, size_t end)
{
    (void)context;
    while (begin < end && !tq_stop_after(1 << 12)) /* for ever */
        ;
}

static void *stop_loops(void *unused)
{
    (void)unused;
    for (int k = 0; k < 6; k++) {
        asked a = {pthread_self(), k % 3};
        tq_stop stop = {.ask = ask, .context = &a};
        const tq_listener before = tq_stop_enter((tq_listener){&stop, true});
        tq_parallel_for(COUNT, 1, 1 + k % 4, spin, NULL);
        tq_stop_enter(before);
        if (!stop.stopped || tq_stop_listens())
            abort();
    }
    return NULL;
}

enum { PARTS = 50, SIZE = 64 };

typedef struct owner {
    int value[SIZE];
    int made; /* written by the item's maker alone */
} owner;

static tq_shared *shared;

static tq_shared_item *get_part(int number)
{
    tq_bytes key = {(const uint8_t *)&number, sizeof number};
    tq_shared_item *part = tq_shared_find(shared, key);
    if (part)
        return part;
    owner *o = calloc(1, sizeof *o);
    if (!o || tq_shared_add(shared, key, o->value, o, free, &part, NULL) != TQ_OK)
        abort();
    return part;
}

static void use_part(int number)
{
    tq_shared_item *part = get_part(number);
    owner *o = part->owner;
    bool again;
    if (tq_shared_begin(part, &again)) {
        o->made++;
        for (int i = 0; i < SIZE; i++)
            o->value[i] = number + i;
        tq_shared_end(part, true);
    }
    for (int i = 0; i < SIZE; i++)
        if (((const int *)part->data)[i] != number + i || o->made != 1)
            abort();
    tq_shared_drop(shared, part);
}

static void *share(void *unused)
{
    (void)unused;
    for (int k = 0; k < ROUNDS; k++)
        for (int number = 0; number < PARTS; number++)
            use_part(number);
    return NULL;
}

static void race(void *(*body)(void *))
{
    pthread_t callers[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        if (pthread_create(&callers[i], NULL, body, NULL) != 0)
            abort();
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
}

int main(void)
{
    if (tq_shared_open(&tq_default_allocator, &shared, NULL) != TQ_OK)
        return 2;
    race(call);
    race(call_shares);
    race(share);
    race(stop_loops);
    tq_shared_close(shared);
    tq_parallel_for(0, 1, 4, touch, NULL);
    printf("%d calls\n", CALLERS * ROUNDS);
    return 0;
}
