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

/* How many first bytes of a key are hashed.  Longer keys with equal first bytes share a hash and are compared one by
   one. */
enum { TQ_KEY_HASHED = 80 };

typedef struct tq_shared_item {
    void *data;                   /* written by the thread that makes it; then read-only */
    void *owner;                  /* the memory of `data` */
    void (*release)(void *owner); /* called after the last user */
    /* private to shared.c */
    struct tq_shared_item *next;
    atomic_long state; /* empty, made, or the process whose thread makes the data */
    bool touched;      /* a thread began to make the data */
    uint64_t users, hash;
    size_t key_size;
    unsigned char key[];
} tq_shared_item;

/* TQ_NO_MEMORY. */
tq_status tq_shared_open(const tq_allocator *allocator, tq_shared **out, tq_error *error);
void tq_shared_close(tq_shared *shared); /* no item has users; NULL: nothing */

/* Whether the table has no items. */
bool tq_shared_is_empty(const tq_shared *shared);

/* The item of a key, with one more user; NULL: there is none. */
tq_shared_item *tq_shared_find(tq_shared *shared, tq_bytes key);

/* *out: the item of a key, with one more user.  A new item takes `owner`; where another thread added the key first,
 *out is its item, and `owner` is released.  The key is copied.  TQ_NO_MEMORY: `owner` stays the caller's. */
tq_status tq_shared_add(tq_shared *shared, tq_bytes key, void *data, void *owner, void (*release)(void *owner),
                        tq_shared_item **out, tq_error *error);

/* Removes one user; the last one releases the item.  NULL: nothing. */
void tq_shared_drop(tq_shared *shared, tq_shared_item *item);

/* true: the caller makes the data, and then calls tq_shared_end; *again: another thread began before and did not
   finish. false: the data are made, or the computation was stopped (stop.h) while another thread makes them. */
bool tq_shared_begin(tq_shared_item *item, bool *again);

/* made false: the next caller of tq_shared_begin makes the data. */
void tq_shared_end(tq_shared_item *item, bool made);

#endif
