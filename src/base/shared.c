/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash table under a lock that is held for a few loads and stores, and a state for each item.  Both name the process
 * of the thread that has them (tq_forks): fork() copies a lock that is held, but not its holder.  Whoever finds another
 * process there takes it.  The table is sound between any two of the stores that its holder makes (chains end, and what
 * is not found in them is made again), so that this costs no more than memory.
 */
#include "base/system.h"

#include "base/shared.h"

#include <string.h>

#include "base/stop.h"
#include "base/threads.h"

#if defined(_WIN32)
#include <windows.h>
#else
#include <sched.h>
#include <time.h>
#endif

enum { FIRST_CHAINS = 32, EMPTY = 0, MADE = 1 };

struct tq_shared {
    tq_allocator allocator;
    atomic_long holder; /* of the lock: a process, or EMPTY */
    atomic_size_t count; /* of items; stored under the lock */
    size_t chain_count;
    tq_shared_item **chains, *first[FIRST_CHAINS]; /* `first` until there are more */
};

/* ---- who, and waiting ---- */

static long who(void)
{
    return tq_forks() + MADE + 1;
}

#if defined(_WIN32)

static void wait_a_little(unsigned turn)
{
    Sleep(turn < 64 ? 0 : 1);
}

#else

static void wait_a_little(unsigned turn)
{
    enum { YIELDS = 64, NANOSECONDS = 50000 };
    if (turn < YIELDS)
        sched_yield();
    else
        nanosleep(&(struct timespec){0, NANOSECONDS}, NULL);
}

#endif

/* Takes what is EMPTY, or another process's, for the caller's. */
static bool take(atomic_long *owner, long found, long me)
{
    return found != me && atomic_compare_exchange_strong(owner, &found, me);
}

static void lock(tq_shared *shared)
{
    const long me = who();
    for (unsigned turn = 0; !take(&shared->holder, atomic_load(&shared->holder), me); turn++)
        wait_a_little(turn);
}

static void unlock(tq_shared *shared)
{
    atomic_store_explicit(&shared->holder, EMPTY, memory_order_release);
}

/* ---- the table ---- */

tq_status tq_shared_open(const tq_allocator *allocator, tq_shared **out, tq_error *error)
{
    tq_shared *shared;
    tq_status status = tq_allocate(allocator, 1, sizeof *shared, &shared, error);
    if (status != TQ_OK)
        return status;
    shared->allocator = *allocator;
    shared->chains = shared->first;
    shared->chain_count = FIRST_CHAINS;
    tq_threads_init(); /* so that forks are counted */
    *out = shared;
    return TQ_OK;
}

void tq_shared_close(tq_shared *shared)
{
    if (!shared)
        return;
    tq_allocator allocator = shared->allocator;
    if (shared->chains != shared->first)
        tq_release(&allocator, shared->chains);
    tq_release(&allocator, shared);
}

/* Eight bytes at a time, of the first TQ_KEY_HASHED.  The factor is 2^64 divided by the golden ratio; the shift brings
   the upper bits, which depend on all, down to those that choose a chain. */
static uint64_t hash_of(tq_bytes key)
{
    const size_t size = key.size < TQ_KEY_HASHED ? key.size : TQ_KEY_HASHED;
    uint64_t hash = key.size, part;
    for (size_t i = 0; i < size; i += sizeof part) {
        part = 0;
        memcpy(&part, key.data + i, size - i < sizeof part ? size - i : sizeof part);
        hash = (hash ^ part) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return hash;
}

/* Where the pointer to a item stands; the chain's end where there is none.  Under the lock. */
static tq_shared_item **link_of(const tq_shared *shared, tq_bytes key, uint64_t hash)
{
    tq_shared_item **at = &shared->chains[hash & (shared->chain_count - 1)];
    while (*at && ((*at)->hash != hash || (*at)->key_size != key.size || memcmp((*at)->key, key.data, key.size) != 0))
        at = &(*at)->next;
    return at;
}

bool tq_shared_is_empty(const tq_shared *shared)
{
    return atomic_load(&((tq_shared *)shared)->count) == 0;
}

tq_shared_item *tq_shared_find(tq_shared *shared, tq_bytes key)
{
    if (tq_shared_is_empty(shared))
        return NULL;
    const uint64_t hash = hash_of(key);
    lock(shared);
    tq_shared_item *item = *link_of(shared, key, hash);
    if (item)
        item->users++;
    unlock(shared);
    return item;
}

/* To at least as many chains as items; where there is no memory for that they stay long. */
static void grow(tq_shared *shared, size_t wanted)
{
    tq_shared_item **chains, **old = NULL;
    if (tq_allocate(&shared->allocator, wanted, sizeof(tq_shared_item *), &chains, NULL) != TQ_OK)
        return;
    lock(shared);
    if (shared->chain_count < wanted) {
        for (size_t i = 0; i < shared->chain_count; i++)
            for (tq_shared_item *item = shared->chains[i], *next; item; item = next) {
                tq_shared_item **head = &chains[item->hash & (wanted - 1)];
                next = item->next;
                item->next = *head;
                *head = item;
            }
        old = shared->chains;
        shared->chains = chains;
        shared->chain_count = wanted;
        chains = NULL;
    }
    unlock(shared);
    if (old != shared->first)
        tq_release(&shared->allocator, old);
    tq_release(&shared->allocator, chains);
}

/* Links the item, unless there is one of its key, which is returned with one user more.  *wanted: so many chains, or 0
   where there are enough. */
static tq_shared_item *link_item(tq_shared *shared, tq_shared_item *item, size_t *wanted)
{
    lock(shared);
    tq_shared_item **link = link_of(shared, (tq_bytes){item->key, item->key_size}, item->hash), *there = *link;
    if (there) {
        there->users++;
    } else {
        *link = item;
        shared->count++;
    }
    *wanted = shared->count > shared->chain_count ? shared->chain_count * 4 : 0;
    unlock(shared);
    return there;
}

tq_status tq_shared_add(tq_shared *shared, tq_bytes key, void *data, void *owner, void (*release)(void *owner),
                        tq_shared_item **out, tq_error *error)
{
    tq_shared_item *item;
    size_t wanted;
    tq_status status = tq_allocate(&shared->allocator, 1, sizeof *item + key.size, &item, error);
    if (status != TQ_OK)
        return status;
    *item = (tq_shared_item){.data = data, .owner = owner, .release = release, .users = 1};
    item->hash = hash_of(key);
    item->key_size = key.size;
    memcpy(item->key, key.data, key.size);
    tq_shared_item *there = link_item(shared, item, &wanted);
    if (wanted)
        grow(shared, wanted);
    if (there) {
        tq_release(&shared->allocator, item);
        release(owner);
    }
    *out = there ? there : item;
    return TQ_OK;
}

void tq_shared_drop(tq_shared *shared, tq_shared_item *item)
{
    if (!item)
        return;
    lock(shared);
    const bool last = --item->users == 0;
    if (last) {
        tq_shared_item **link = link_of(shared, (tq_bytes){item->key, item->key_size}, item->hash);
        if (*link == item) {
            *link = item->next;
            shared->count--;
        }
    }
    unlock(shared);
    if (!last)
        return;
    item->release(item->owner);
    tq_release(&shared->allocator, item);
}

/* ---- an item ---- */

bool tq_shared_begin(tq_shared_item *item, bool *again)
{
    const long me = who();
    for (unsigned turn = 0;; turn++) {
        const long state = atomic_load(&item->state);
        if (state == MADE)
            return false;
        if (take(&item->state, state, me)) {
            *again = item->touched;
            item->touched = true;
            return true;
        }
        if (tq_stop_now())
            return false;
        wait_a_little(turn);
    }
}

void tq_shared_end(tq_shared_item *item, bool made)
{
    atomic_store_explicit(&item->state, made ? MADE : EMPTY, memory_order_release);
}
