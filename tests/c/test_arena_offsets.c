/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime/arena_offsets.h against the plainest way to do the same, over lifetimes of many kinds; that and small parts
 * of blocks (base/memory.h) with every allocation failing in turn.
 */
#include "check.h"
#include "counting.h"

#include "runtime/arena_offsets.h"

enum { MOST = 3000, TIMES = 1200 };

static uint32_t state = 1;

static int32_t below(int32_t limit)
{
    state = state * 1664525u + 1013904223u;
    return (int32_t)((state >> 8) % (uint32_t)limit);
}

/* ---- the reference ---- */

static bool comes_before(const tq_arena_item *a, const tq_arena_item *b)
{
    return a->size != b->size ? a->size > b->size : a->first != b->first ? a->first < b->first : a->index < b->index;
}

static bool live_together(const tq_arena_item *a, const tq_arena_item *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Where `it` goes, beside items that have places and stand by offset. */
static uint64_t plan_one(const tq_arena_item *it, tq_arena_item *const *planned, uint32_t count)
{
    uint64_t free_from = 0, best = 0, smallest = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const tq_arena_item *other = planned[i];
        if (!live_together(it, other))
            continue;
        if (other->offset > free_from && other->offset - free_from >= it->size &&
            other->offset - free_from < smallest) {
            smallest = other->offset - free_from;
            best = free_from;
        }
        if (other->offset + other->size > free_from)
            free_from = other->offset + other->size;
    }
    return smallest == UINT64_MAX ? free_from : best;
}

static uint64_t plan_plainly(tq_arena_item *items, uint32_t count)
{
    static tq_arena_item *planned[MOST];
    static bool done[MOST];
    uint64_t total = 0;
    memset(done, 0, sizeof done);
    for (uint32_t n = 0; n < count; n++) {
        uint32_t next = count, at = n;
        for (uint32_t i = 0; i < count; i++)
            if (!done[i] && (next == count || comes_before(&items[i], &items[next])))
                next = i;
        done[next] = true;
        items[next].offset = plan_one(&items[next], planned, n);
        for (; at > 0 && planned[at - 1]->offset > items[next].offset; at--)
            planned[at] = planned[at - 1];
        planned[at] = &items[next];
        if (items[next].offset + items[next].size > total)
            total = items[next].offset + items[next].size;
    }
    return total;
}

/* ---- lifetimes ---- */

typedef struct kind {
    int32_t span, sizes,
        unit; /* times from -1 to span; so many sizes, multiples of unit (0: one of the items has none) */
    int32_t length;            /* of most lives, at most */
    int32_t longer;            /* one in so many lives till the end; 0: none */
} kind;

static const kind kinds[] = {
    {20, 3, 64, 4, 0},
    {200, 50, 64, 200, 2},
    {1000, 5, 1, 8, 0},
    {1000, 2000, 64, 3, 50},
    {3000, 1, 64, 2, 0},
    {3000, 900, 64, 60, 7},
    {3000, 900, 64, 150, 0},
    {3000, 4, 64, 500, 3},
    {3000, 9000, 1, 1, 100},
    {900, 30, 64, 900, 1},
    {2000000000, 8, 64, 700000000, 0},
};

static void fill(tq_arena_item *items, uint32_t count, const kind *k)
{
    for (uint32_t i = 0; i < count; i++) {
        const int32_t first = below(k->span) - 1, life = below(k->length), rest = k->span - first;
        const bool longer = k->longer && below(k->longer) == 0;
        items[i] =
            (tq_arena_item){.index = i, .first = first, .size = (uint64_t)below(k->sizes + 1) * (uint64_t)k->unit};
        items[i].last = longer || life > rest ? k->span : first + life;
    }
}

static void test_equal(void)
{
    static tq_arena_item items[MOST], expected[MOST];
    tq_pool *pool;
    CHECK(tq_pool_open(&tq_default_allocator, 0, &pool, NULL) == TQ_OK);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t count = k % 3; count <= MOST; count = count * 3 + 17) {
            uint64_t total = 0;
            bool same = true;
            fill(items, count, &kinds[k]);
            memcpy(expected, items, sizeof items);
            const uint64_t expected_total = plan_plainly(expected, count);
            CHECK(tq_arena_find_offsets(items, count, pool, &total, NULL) == TQ_OK);
            for (uint32_t i = 0; i < count; i++)
                same &= items[i].offset == expected[i].offset;
            CHECK(same);
            CHECK(total == expected_total);
        }
    CHECK(tq_pool_used(pool) == 0);
    tq_pool_close(pool);
}

/* Past the work that it does for a plan, it still makes one. */
static void test_too_many(void)
{
    enum { ITEMS = 20000 };
    static tq_arena_item items[ITEMS];
    tq_pool *pool;
    uint64_t total = 0;
    CHECK(tq_pool_open(&tq_default_allocator, 0, &pool, NULL) == TQ_OK);
    for (uint32_t i = 0; i < ITEMS; i++)
        items[i] = (tq_arena_item){.size = i < ITEMS / 2 ? 64 : 128, .first = (int32_t)i, .last = ITEMS};
    CHECK(tq_arena_find_offsets(items, ITEMS, pool, &total, NULL) == TQ_OK);
    CHECK(total == ITEMS / 2 * (64 + 128));
    items[7].size = INT64_MAX;
    CHECK(tq_arena_find_offsets(items, ITEMS, pool, &total, NULL) == TQ_MEMORY_LIMIT);
    tq_pool_close(pool);
}

static void test_no_memory(void)
{
    static tq_arena_item items[TIMES];
    tq_status status = TQ_NO_MEMORY;
    fill(items, TIMES, &kinds[2]);
    for (unsigned left = 0; status != TQ_OK && left < 100; left++) {
        counting c = {.left = left + 1};
        tq_allocator allocator = {.allocate = allocate, .release = release, .context = &c};
        tq_pool *pool;
        uint64_t total = 12345;
        CHECK(tq_pool_open(&allocator, 0, &pool, NULL) == TQ_OK);
        status = tq_arena_find_offsets(items, TIMES, pool, &total, NULL);
        CHECK(status == TQ_OK || (status == TQ_NO_MEMORY && total == 12345));
        CHECK(tq_pool_used(pool) == 0);
        tq_pool_close(pool);
        CHECK(c.live == 0);
    }
    CHECK(status == TQ_OK);
}

/* Sizes around those that share blocks, and where a count does. */
static const size_t cuts[] = {1, 0, 64, 65, TQ_CUT_BYTES, TQ_CUT_BYTES + 1, 100000, 3, 63, 700, 700, 700};

static tq_status cut_all(tq_pool *pool, unsigned char *parts[], uint32_t count, tq_block **list)
{
    for (uint32_t i = 0; i < count; i++) {
        const size_t size = cuts[i % (sizeof cuts / sizeof *cuts)];
        tq_status status = tq_blocks_cut(list, pool, i % 2 ? size : 1, i % 2 ? 1 : size, &parts[i], NULL);
        if (status != TQ_OK)
            return status;
        bool zero = true;
        for (size_t k = 0; k < size; k++) {
            zero &= parts[i][k] == 0;
            parts[i][k] = (unsigned char)(i + 1);
        }
        CHECK(zero && (uintptr_t)parts[i] % TQ_ALIGNMENT == 0);
    }
    return TQ_OK;
}

static void test_cuts(void)
{
    enum { PARTS = 200 };
    unsigned char *parts[PARTS];
    tq_status status = TQ_NO_MEMORY;
    for (unsigned left = 0; status != TQ_OK && left < 1000; left++) {
        counting c = {.left = left + 1};
        tq_allocator allocator = {.allocate = allocate, .release = release, .context = &c};
        tq_pool *pool;
        tq_block *list = NULL;
        CHECK(tq_pool_open(&allocator, 0, &pool, NULL) == TQ_OK);
        status = cut_all(pool, parts, PARTS, &list);
        CHECK(status == TQ_OK || status == TQ_NO_MEMORY);
        for (uint32_t i = 0; status == TQ_OK && i < PARTS; i++) {
            bool mine = true;
            for (size_t k = 0; k < cuts[i % (sizeof cuts / sizeof *cuts)]; k++)
                mine &= parts[i][k] == (unsigned char)(i + 1);
            CHECK(mine);
        }
        CHECK(tq_blocks_cut(&list, pool, UINT64_MAX, 8, &parts[0], NULL) != TQ_OK);
        tq_blocks_release(&list);
        CHECK(tq_pool_used(pool) == 0);
        tq_pool_close(pool);
        CHECK(c.live == 0);
    }
    CHECK(status == TQ_OK);
}

void test_arena_offsets(void)
{
    test_cuts();
    test_equal();
    test_too_many();
    test_no_memory();
}
