/* SPDX-License-Identifier: Apache-2.0
 *
 * What several users, in any threads, make once and then read: parts, found by their keys.  A part lives as long as
 * someone uses it.
 *
 * No call waits for ever: in a child of fork(), where the thread that was at work does not exist, another takes over.
 */
#ifndef TQ_BASE_SHARED_H
#define TQ_BASE_SHARED_H

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/bytes.h"

typedef struct tq_shared tq_shared; /* a table of parts */

/* Keys may have any size; those that differ only behind so many bytes are looked for one after the other. */
enum { TQ_KEY_HASHED = 80 };

typedef struct tq_part {
    void *data;  /* its maker writes here; then it is only read */
    void *owner; /* what `data` lies in, and how that is released after the last user */
    void (*release)(void *owner);
    /* shared.c's */
    struct tq_part *next;
    atomic_long state; /* empty, made, or who makes it */
    bool touched;      /* someone began to make it */
    uint64_t users, hash;
    size_t key_size;
    unsigned char key[];
} tq_part;

tq_status tq_shared_open(const tq_allocator *allocator, tq_shared **out, tq_error *error);
void tq_shared_close(tq_shared *shared); /* no part has users; NULL: nothing */

/* The part of a key, with one user more; NULL: there is none. */
tq_part *tq_shared_find(tq_shared *shared, tq_bytes key);

/* A part with one user, which takes over `owner`; or, where another thread was faster, that one's part, and `owner` is
   released.  On failure `owner` stays the caller's. */
tq_status tq_shared_add(tq_shared *shared, tq_bytes key, void *data, void *owner, void (*release)(void *owner),
                        tq_part **out, tq_error *error);

/* One user less; NULL: nothing. */
void tq_shared_drop(tq_shared *shared, tq_part *part);

/* Whether the caller is to make the part, and then to call tq_part_end; else it is made.  Waits while another thread
   makes it.  *again: someone has begun before, and not come to an end. */
bool tq_part_begin(tq_part *part, bool *again);
void tq_part_end(tq_part *part, bool made);

#endif
