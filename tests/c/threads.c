/* SPDX-License-Identifier: Apache-2.0
 *
 * tq_parallel_for under a race detector: several callers at once, calls inside bodies, every index once.
 */
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

int main(void)
{
    pthread_t callers[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        if (pthread_create(&callers[i], NULL, call, NULL) != 0)
            return 2;
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    tq_parallel_for(0, 1, 4, touch, NULL);
    printf("%d calls\n", CALLERS * ROUNDS);
    return 0;
}
