/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of parts, each found by its key: what one user makes and all others, in any threads, read.  A part lives as
 * long as someone uses it.
 *
 * No call waits for ever.  In a child of fork() the thread that was making a part does not exist: another takes over.
 */
#ifndef TQ_BASE_SHARED_H
#define TQ_BASE_SHARED_H

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/bytes.h"

typedef struct tq_shared tq_shared; /* a table of parts */

/* So many bytes of a key are hashed.  Keys may be longer; those that are equal so far share a hash, and are compared one
   by one. */
enum { TQ_KEY_HASHED = 80 };

typedef struct tq_shared_item {
    void *data;  /* its maker writes here; then it is only read */
    void *owner; /* what `data` lies in, and how that is released after the last user */
    void (*release)(void *owner);
    /* shared.c's */
    struct tq_shared_item *next;
    atomic_long state; /* empty, made, or who makes it */
    bool touched;      /* someone began to make it */
    uint64_t users, hash;
    size_t key_size;
    unsigned char key[];
} tq_shared_item;

tq_status tq_shared_open(const tq_allocator *allocator, tq_shared **out, tq_error *error);
void tq_shared_close(tq_shared *shared); /* no part has users; NULL: nothing */

/* Whether there is no part at all: a model's first user need not look for any. */
bool tq_shared_is_empty(const tq_shared *shared);

/* The part of a key, with one user more; NULL: there is none. */
tq_shared_item *tq_shared_find(tq_shared *shared, tq_bytes key);

/* A part with one user, which takes over `owner`; or, where another thread was faster, that one's part, and `owner` is
   released.  On failure `owner` stays the caller's. */
tq_status tq_shared_add(tq_shared *shared, tq_bytes key, void *data, void *owner, void (*release)(void *owner),
                        tq_shared_item **out, tq_error *error);

/* One user less; NULL: nothing. */
void tq_shared_drop(tq_shared *shared, tq_shared_item *part);

/* True: the caller is to make the part, and then to call tq_shared_end.  False: it is made.  Waits while another thread
   makes it, or until Ctrl-C is heard (stop.h).  *again: someone began to make it before, and did not finish. */
bool tq_shared_begin(tq_shared_item *part, bool *again);
void tq_shared_end(tq_shared_item *part, bool made);

#endif
