/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of shared items, each found by its key.  One thread makes an item's data; all threads read them.  An item
 * lives as long as it has users.
 *
 * No call waits for ever.  In a child of fork() the thread that was making an item does not exist: another takes over.
 */
#ifndef TQ_BASE_SHARED_H
#define TQ_BASE_SHARED_H

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/bytes.h"

typedef struct tq_shared tq_shared; /* a table of items */

/* The first bytes of a key, which are hashed.  Longer keys that are equal in these share a hash, and are compared one
   by one. */
enum { TQ_KEY_HASHED = 80 };

typedef struct tq_shared_item {
    void *data;                   /* its maker writes here; afterwards it is only read */
    void *owner;                  /* the memory that `data` lies in */
    void (*release)(void *owner); /* called after the last user */
    /* the rest is shared.c's */
    struct tq_shared_item *next;
    atomic_long state; /* empty, made, or the process whose thread makes it */
    bool touched;      /* a thread began to make it */
    uint64_t users, hash;
    size_t key_size;
    unsigned char key[];
} tq_shared_item;

tq_status tq_shared_open(const tq_allocator *allocator, tq_shared **out, tq_error *error);
void tq_shared_close(tq_shared *shared); /* no item has users; NULL: nothing */

/* Whether the table has no items: the first user of a model need not look for any. */
bool tq_shared_is_empty(const tq_shared *shared);

/* The item of a key, with one user more; NULL: there is none. */
tq_shared_item *tq_shared_find(tq_shared *shared, tq_bytes key);

/* An item with one user.  A new one takes over `owner`; where another thread added the key first, *out is that thread's
   item and `owner` is released.  On failure (TQ_NO_MEMORY) `owner` stays the caller's.  The key is copied. */
tq_status tq_shared_add(tq_shared *shared, tq_bytes key, void *data, void *owner, void (*release)(void *owner),
                        tq_shared_item **out, tq_error *error);

/* One user less; NULL: nothing. */
void tq_shared_drop(tq_shared *shared, tq_shared_item *item);

/* True: the caller makes the data, and then calls tq_shared_end.  False: they are made, or Ctrl-C was heard (stop.h)
   while another thread makes them.  *again: a thread began to make them before, and did not finish. */
bool tq_shared_begin(tq_shared_item *item, bool *again);

/* made false: the data stay unmade, and the next caller of tq_shared_begin makes them. */
void tq_shared_end(tq_shared_item *item, bool made);

#endif
