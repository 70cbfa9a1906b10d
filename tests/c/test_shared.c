/* SPDX-License-Identifier: Apache-2.0
 *
 * base/shared.h in one thread, with every allocation failing in turn, and after fork(); threads.c has the races.
 */
#include "check.h"
#include "counting.h"

#include "base/shared.h"

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

static void release_owner(void *owner)
{
    ++*(int *)owner;
}

static tq_bytes key_of(const int *number)
{
    return (tq_bytes){(const uint8_t *)number, sizeof *number};
}

static void test_parts(void)
{
    enum { PARTS = 500 };
    static int released[PARTS];
    tq_shared_item *parts[PARTS], *other;
    tq_shared *shared = NULL;
    int late = 0;
    CHECK(tq_shared_open(&tq_default_allocator, &shared, NULL) == TQ_OK);
    for (int i = 0; i < PARTS; i++) {
        CHECK(!tq_shared_find(shared, key_of(&i)));
        CHECK(tq_shared_add(shared, key_of(&i), &released[i], &released[i], release_owner, &parts[i], NULL) == TQ_OK);
    }
    for (int i = 0; i < PARTS; i++) {
        CHECK(tq_shared_find(shared, key_of(&i)) == parts[i] && parts[i]->data == &released[i]);
        CHECK(tq_shared_add(shared, key_of(&i), &late, &late, release_owner, &other, NULL) == TQ_OK);
        CHECK(other == parts[i] && late == i + 1);
        for (int user = 0; user < 3; user++) {
            CHECK(released[i] == 0);
            tq_shared_drop(shared, parts[i]);
        }
        CHECK(released[i] == 1 && !tq_shared_find(shared, key_of(&i)));
    }
    tq_shared_drop(shared, NULL);
    tq_shared_close(shared);
    tq_shared_close(NULL);
}

static void test_making(void)
{
    int number = 7, owner = 0;
    bool again = true;
    tq_shared *shared = NULL;
    tq_shared_item *part;
    CHECK(tq_shared_open(&tq_default_allocator, &shared, NULL) == TQ_OK);
    CHECK(tq_shared_add(shared, key_of(&number), NULL, &owner, release_owner, &part, NULL) == TQ_OK);
    CHECK(tq_shared_begin(part, &again) && !again);
    tq_shared_end(part, false);
    CHECK(tq_shared_begin(part, &again) && again);
#ifndef _WIN32
    /* the child has no thread that makes the item: it makes it, and does not wait */
    const pid_t child = fork();
    if (child == 0) {
        again = false;
        const bool mine = tq_shared_begin(part, &again) && again;
        tq_shared_end(part, true);
        _exit(mine && !tq_shared_begin(part, &again) ? 42 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
#endif
    tq_shared_end(part, true);
    CHECK(!tq_shared_begin(part, &again));
    tq_shared_drop(shared, part);
    CHECK(owner == 1);
    tq_shared_close(shared);
}

static void test_no_memory(void)
{
    enum { PARTS = 40 }; /* more than the first chains */
    tq_status status = TQ_NO_MEMORY;
    for (unsigned left = 0; status != TQ_OK && left < 100; left++) {
        counting c = {.left = left};
        tq_allocator allocator = {.allocate = allocate, .release = release, .context = &c};
        tq_shared_item *parts[PARTS];
        tq_shared *shared = NULL;
        int owner = 0, made = 0;
        status = tq_shared_open(&allocator, &shared, NULL);
        for (; status == TQ_OK && made < PARTS; made += status == TQ_OK)
            status = tq_shared_add(shared, key_of(&made), NULL, &owner, release_owner, &parts[made], NULL);
        CHECK(status == TQ_OK || status == TQ_NO_MEMORY);
        CHECK(owner == 0);
        for (int i = 0; i < made; i++)
            tq_shared_drop(shared, parts[i]);
        CHECK(owner == made);
        tq_shared_close(shared);
        CHECK(c.live == 0);
    }
    CHECK(status == TQ_OK);
}

void test_shared(void)
{
    test_parts();
    test_making();
    test_no_memory();
}
