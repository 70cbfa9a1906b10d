/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash table under a lock that is held for a few loads and stores, and a state for each part.  Both name the process
 * of the thread that has them: fork() copies a lock that is held, but not its holder.  Whoever finds another process
 * there takes it.  The table is sound between any two of the stores that its holder makes (chains end, and what is not
 * found in them is made again), so that this costs no more than memory.
 */
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#endif
#include "base/shared.h"

#include <string.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include <sched.h>
#include <time.h>
#include <unistd.h>
#endif

enum { FIRST_CHAINS = 32, EMPTY = 0, MADE = 1 };

struct tq_shared {
    tq_allocator allocator;
    atomic_long holder; /* of the lock: a process, or EMPTY */
    size_t count, chain_count;
    tq_part **chains;
};

/* ---- who, and waiting ---- */

#if defined(_WIN32)

static long who(void)
{
    return MADE + 1; /* there is no fork */
}

static void wait_a_little(unsigned turn)
{
    Sleep(turn < 64 ? 0 : 1);
}

#else

static long who(void)
{
    return (long)getpid() + MADE + 1; /* processes have numbers from 1 on */
}

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
    atomic_store(&shared->holder, EMPTY);
}

/* ---- the table ---- */

tq_status tq_shared_open(const tq_allocator *allocator, tq_shared **out, tq_error *error)
{
    tq_shared *shared;
    tq_status status = tq_allocate(allocator, 1, sizeof *shared, &shared, error);
    if (status != TQ_OK)
        return status;
    shared->allocator = *allocator;
    *out = shared;
    return TQ_OK;
}

void tq_shared_close(tq_shared *shared)
{
    if (!shared)
        return;
    tq_allocator allocator = shared->allocator;
    tq_release(&allocator, shared->chains);
    tq_release(&allocator, shared);
}

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t hash_of(tq_bytes key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < key.size; i++)
        hash = (hash ^ key.data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Where the pointer to a part stands; the chain's end where there is none.  Under the lock, with chains. */
static tq_part **place_of(const tq_shared *shared, tq_bytes key, uint64_t hash)
{
    tq_part **at = &shared->chains[hash & (shared->chain_count - 1)];
    while (*at && ((*at)->hash != hash || (*at)->key_size != key.size || memcmp((*at)->key, key.data, key.size) != 0))
        at = &(*at)->next;
    return at;
}

tq_part *tq_shared_find(tq_shared *shared, tq_bytes key)
{
    const uint64_t hash = hash_of(key);
    lock(shared);
    tq_part *part = shared->chain_count ? *place_of(shared, key, hash) : NULL;
    if (part)
        part->users++;
    unlock(shared);
    return part;
}

static tq_status grow(tq_shared *shared, size_t wanted, tq_error *error)
{
    tq_part **chains, **old = NULL;
    tq_status status = tq_allocate(&shared->allocator, wanted, sizeof(tq_part *), &chains, error);
    if (status != TQ_OK)
        return status;
    lock(shared);
    if (shared->chain_count < wanted) {
        for (size_t i = 0; i < shared->chain_count; i++)
            for (tq_part *part = shared->chains[i], *next; part; part = next) {
                tq_part **head = &chains[part->hash & (wanted - 1)];
                next = part->next;
                part->next = *head;
                *head = part;
            }
        old = shared->chains;
        shared->chains = chains;
        shared->chain_count = wanted;
        chains = NULL;
    }
    unlock(shared);
    tq_release(&shared->allocator, old);
    tq_release(&shared->allocator, chains);
    return TQ_OK;
}

/* At least as many chains as parts, or what there is where there is no memory for more. */
static tq_status make_room(tq_shared *shared, tq_error *error)
{
    lock(shared);
    const size_t chains = shared->chain_count, count = shared->count;
    unlock(shared);
    if (chains == 0)
        return grow(shared, FIRST_CHAINS, error);
    if (count >= chains)
        (void)grow(shared, chains * 4, NULL);
    return TQ_OK;
}

/* Links the part, unless there is one of its key, which is returned with one user more. */
static tq_part *link_part(tq_shared *shared, tq_part *part)
{
    lock(shared);
    tq_part **place = place_of(shared, (tq_bytes){part->key, part->key_size}, part->hash), *there = *place;
    if (there) {
        there->users++;
    } else {
        *place = part;
        shared->count++;
    }
    unlock(shared);
    return there;
}

tq_status tq_shared_add(tq_shared *shared, tq_bytes key, void *data, void *owner, void (*release)(void *owner),
                        tq_part **out, tq_error *error)
{
    tq_part *part;
    tq_status status = make_room(shared, error);
    if (status == TQ_OK)
        status = tq_allocate(&shared->allocator, 1, sizeof *part + key.size, &part, error);
    if (status != TQ_OK)
        return status;
    *part = (tq_part){.data = data, .owner = owner, .release = release, .users = 1};
    part->hash = hash_of(key);
    part->key_size = key.size;
    memcpy(part->key, key.data, key.size);
    tq_part *there = link_part(shared, part);
    if (there) {
        tq_release(&shared->allocator, part);
        release(owner);
    }
    *out = there ? there : part;
    return TQ_OK;
}

void tq_shared_drop(tq_shared *shared, tq_part *part)
{
    if (!part)
        return;
    lock(shared);
    const bool last = --part->users == 0;
    if (last) {
        tq_part **place = place_of(shared, (tq_bytes){part->key, part->key_size}, part->hash);
        if (*place == part) {
            *place = part->next;
            shared->count--;
        }
    }
    unlock(shared);
    if (!last)
        return;
    part->release(part->owner);
    tq_release(&shared->allocator, part);
}

/* ---- a part ---- */

bool tq_part_begin(tq_part *part, bool *again)
{
    const long me = who();
    for (unsigned turn = 0;; turn++) {
        const long state = atomic_load(&part->state);
        if (state == MADE)
            return false;
        if (take(&part->state, state, me)) {
            *again = part->touched;
            part->touched = true;
            return true;
        }
        wait_a_little(turn);
    }
}

void tq_part_end(tq_part *part, bool made)
{
    atomic_store(&part->state, made ? MADE : EMPTY);
}
