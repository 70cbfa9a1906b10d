/* SPDX-License-Identifier: Apache-2.0
 *
 * An allocator of the C tests that fails at a chosen allocation, and counts blocks that are not released.
 */
#ifndef TQ_TESTS_COUNTING_H
#define TQ_TESTS_COUNTING_H

#include <stdlib.h>

typedef struct counting {
    unsigned left, live; /* allocations until one fails; blocks not released */
} counting;

static inline void *allocate(void *context, size_t size)
{
    counting *c = context;
    if (c->left == 0)
        return NULL;
    c->left--;
    c->live++;
    return calloc(1, size);
}

static inline void release(void *context, void *memory)
{
    counting *c = context;
    c->live -= memory != NULL;
    free(memory);
}

#endif
