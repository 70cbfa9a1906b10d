/* SPDX-License-Identifier: Apache-2.0
 *
 * Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020.
 *
 * Each item in turn looks for those that live at the same time and have a place already, in the order of their offsets.
 * So that it need not look at all items, time is cut into blocks, each with a list of the items that live in it; a
 * short item, one that lives in two blocks at most, looks at their lists alone.
 */
#include "runtime/arena_offsets.h"

#include <string.h>

#include "base/checked.h"
#include "base/sort.h"
#include "base/stop.h"
#include "ops/check.h"

enum {
    CHUNK = 32,          /* items whose lifetimes are looked at in one go */
    LEAST_ITEMS = 256,   /* of fewer, looking at all is fast enough */
    LEAST_SHIFT = 6,     /* log2 of a block's length, at least */
    LOOKS = 16,           /* that take as long as one operation does, as tq_stop_after counts them */
    ROOM = 8,            /* room for so many entries an item, in all lists together */
    MOST_LOOKS = 1 << 27 /* the work of 2^14 items each of which looks at all before it */
};

/* Items that have a place, by offset: a column for each of their numbers, which vectors run along.  Columns can be read
   for a whole chunk past the last item. */
typedef struct columns {
    uint64_t *offset, *end;
    int32_t *first, *last;
    uint32_t count;
} columns;

typedef struct search {
    const tq_arena_item *items;
    uint64_t looks;
    columns all;
    uint32_t *waiting, waiting_count; /* have a place, and are not in `all` yet */
    columns *blocks;                  /* what lives in each, and has a place */
    uint32_t block_count;             /* 0: there are none */
    int32_t start;                    /* of the first block */
    int shift;
} search;

/* ---- columns ---- */

/* The first item that begins behind `offset`. */
static uint32_t behind(const columns *c, uint64_t offset)
{
    uint32_t low = 0, high = c->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (c->offset[middle] > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void move_up(columns *c, uint32_t at, uint32_t count, uint32_t by)
{
    memmove(c->offset + at + by, c->offset + at, count * sizeof *c->offset);
    memmove(c->end + at + by, c->end + at, count * sizeof *c->end);
    memmove(c->first + at + by, c->first + at, count * sizeof *c->first);
    memmove(c->last + at + by, c->last + at, count * sizeof *c->last);
}

static void put(columns *c, uint32_t at, const tq_arena_item *it)
{
    c->offset[at] = it->offset, c->end[at] = it->offset + it->size;
    c->first[at] = it->first, c->last[at] = it->last;
}

static void insert(columns *c, const tq_arena_item *it)
{
    const uint32_t at = behind(c, it->offset);
    move_up(c, at, c->count++ - at, 1);
    put(c, at, it);
}

static bool by_offset(const void *items, uint32_t a, uint32_t b)
{
    return ((const tq_arena_item *)items)[a].offset < ((const tq_arena_item *)items)[b].offset;
}

/* Inserts the items that wait into `all`, the last first, so that what stands there moves only once. */
static void settle(search *s)
{
    columns *c = &s->all;
    const uint32_t total = c->count + s->waiting_count;
    tq_sort_indices(s->waiting, s->waiting_count, by_offset, s->items);
    while (s->waiting_count > 0) {
        const tq_arena_item *it = &s->items[s->waiting[--s->waiting_count]];
        const uint32_t at = behind(c, it->offset);
        move_up(c, at, c->count - at, s->waiting_count + 1);
        put(c, at + s->waiting_count, it);
        c->count = at;
    }
    c->count = total;
}

/* Which of the items from `begin` on live while `it` does: their places, and how many.  Without a branch for each: most
   do not, and which do follows no pattern. */
static uint32_t find_alive(const columns *c, uint32_t begin, const tq_arena_item *it, uint32_t found[CHUNK])
{
    const int32_t *first = c->first + begin, *last = c->last + begin;
    const int32_t from = it->first, to = it->last;
    uint8_t alive[CHUNK];
    for (int i = 0; i < CHUNK; i++)
        alive[i] = (first[i] <= to) & (last[i] >= from);
    uint32_t count = 0;
    for (uint32_t i = 0; i < CHUNK; i += 8) {
        uint64_t eight;
        memcpy(&eight, alive + i, sizeof eight);
        for (uint32_t k = 0; eight && k < 8; k++) {
            found[count] = begin + i + k;
            count += alive[i + k];
        }
    }
    while (count && found[count - 1] >= c->count)
        count--;
    return count;
}

/* ---- the smallest gap that fits ---- */

/* The search for a gap, while items come by in the order of their offsets. */
typedef struct gap {
    uint64_t size;            /* wanted */
    uint64_t free_from;       /* where the items so far end */
    uint64_t best, best_size; /* best: UINT64_MAX while there is none */
} gap;

static inline void pass(gap *g, uint64_t offset, uint64_t end)
{
    if (offset > g->free_from && offset - g->free_from >= g->size && offset - g->free_from < g->best_size) {
        g->best = g->free_from;
        g->best_size = offset - g->free_from;
    }
    g->free_from = end > g->free_from ? end : g->free_from;
}

static void pass_all(gap *g, const columns *c, const tq_arena_item *it)
{
    uint32_t found[CHUNK];
    for (uint32_t begin = 0; begin < c->count; begin += CHUNK) {
        const uint32_t count = find_alive(c, begin, it, found);
        for (uint32_t i = 0; i < count; i++)
            pass(g, c->offset[found[i]], c->end[found[i]]);
    }
}

/* A list's next item that lives while another does. */
typedef struct cursor {
    const columns *list;
    uint32_t begin, at, count, found[CHUNK];
} cursor;

/* The offset of what stands there; UINT64_MAX at the end. */
static uint64_t look(cursor *c, const tq_arena_item *it)
{
    while (c->at == c->count) {
        if (c->begin >= c->list->count)
            return UINT64_MAX;
        c->at = 0;
        c->count = find_alive(c->list, c->begin, it, c->found);
        c->begin += CHUNK;
    }
    return c->list->offset[c->found[c->at]];
}

/* The same for two lists, as if they were one.  An item that is in both comes by twice, which changes nothing. */
static void pass_both(gap *g, const columns lists[2], const tq_arena_item *it)
{
    cursor a = {.list = &lists[0]}, b = {.list = &lists[1]};
    uint64_t next_a = look(&a, it), next_b = look(&b, it);
    while (next_a != UINT64_MAX || next_b != UINT64_MAX)
        if (next_a < next_b) {
            pass(g, next_a, a.list->end[a.found[a.at++]]);
            next_a = look(&a, it);
        } else {
            pass(g, next_b, b.list->end[b.found[b.at++]]);
            next_b = look(&b, it);
        }
}

/* ---- blocks ---- */

static uint32_t block_of(const search *s, int32_t time)
{
    return ((uint32_t)time - (uint32_t)s->start) >> s->shift;
}

/* Counts what lives in each block; the entries of all lists. */
static uint64_t count_blocks(search *s, uint32_t count)
{
    uint64_t entries = 0;
    uint32_t alive = 0;
    memset(s->blocks, 0, (s->block_count + 1) * sizeof *s->blocks);
    for (uint32_t i = 0; i < count; i++) { /* changes: a negative one wraps, and so does its sum back */
        s->blocks[block_of(s, s->items[i].first)].count++;
        s->blocks[block_of(s, s->items[i].last) + 1].count--;
    }
    for (uint32_t i = 0; i < s->block_count; i++) {
        alive += s->blocks[i].count;
        s->blocks[i].count = alive;
        entries += alive;
    }
    return entries;
}

/* How many looks all items take together, if all were in their lists from the start.  Inserting an item moves half a
   list, which costs as much as a quarter of looking at it. */
static uint64_t count_looks(const search *s, uint32_t count)
{
    uint64_t looks = 0;
    for (uint32_t i = 0; i < s->block_count; i++)
        looks += (uint64_t)s->blocks[i].count * s->blocks[i].count / 4;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t first = block_of(s, s->items[i].first), last = block_of(s, s->items[i].last);
        looks += last - first > 1 ? count : s->blocks[first].count + (last != first ? s->blocks[last].count : 0);
    }
    return looks;
}

/* The length of blocks, a power of four, that saves most looks; none where it saves less than half of them. */
static void choose_blocks(search *s, uint32_t count, uint32_t span)
{
    uint64_t fewest = (uint64_t)count * count / 2;
    int best = 0;
    for (s->shift = LEAST_SHIFT; s->shift < 31 && (span >> s->shift) >= 4; s->shift += 2) {
        s->block_count = (span >> s->shift) + 1;
        if (s->block_count > count || count_blocks(s, count) > (uint64_t)ROOM * count)
            continue;
        const uint64_t looks = count_looks(s, count);
        best = looks < fewest ? s->shift : best;
        fewest = looks < fewest ? looks : fewest;
    }
    s->shift = best;
    s->block_count = best ? (span >> best) + 1 : 0;
}

/* ---- the whole ---- */

static bool by_size(const void *items, uint32_t a, uint32_t b)
{
    const tq_arena_item *x = (const tq_arena_item *)items + a, *y = (const tq_arena_item *)items + b;
    if (x->size != y->size)
        return x->size > y->size;
    return x->first != y->first ? x->first < y->first : a < b;
}

static void find_gap(search *s, const tq_arena_item *it, gap *g)
{
    const uint32_t first = block_of(s, it->first), more = block_of(s, it->last) - first;
    if (!s->block_count || more > 1) {
        settle(s);
        s->looks += s->all.count;
        pass_all(g, &s->all, it);
    } else if (more) {
        s->looks += s->blocks[first].count + s->blocks[first + 1].count;
        pass_both(g, &s->blocks[first], it);
    } else {
        s->looks += s->blocks[first].count;
        pass_all(g, &s->blocks[first], it);
    }
}

static void add(search *s, uint32_t item)
{
    const tq_arena_item *it = &s->items[item];
    s->waiting[s->waiting_count++] = item;
    for (uint32_t i = block_of(s, it->first); i < s->block_count && i <= block_of(s, it->last); i++)
        insert(&s->blocks[i], it);
}

static void place(search *s, tq_arena_item *items, const uint32_t *order, uint32_t count, uint64_t *total)
{
    uint64_t end = 0, looks = 0;
    for (uint32_t i = 0; i < count && !tq_stop_after((size_t)(s->looks - looks) / LOOKS); i++) {
        tq_arena_item *it = &items[order[i]];
        looks = s->looks;
        gap g = {.size = it->size, .free_from = end, .best = UINT64_MAX, .best_size = UINT64_MAX};
        const bool looks = s->looks <= MOST_LOOKS;
        if (looks) {
            g.free_from = 0;
            find_gap(s, it, &g);
        }
        it->offset = g.best == UINT64_MAX ? g.free_from : g.best;
        if (looks)
            add(s, order[i]);
        end = it->offset + it->size > end ? it->offset + it->size : end;
    }
    *total = end;
}

/* ---- memory ---- */

static tq_status open_columns(columns *c, uint64_t count, tq_pool *pool, tq_block **work, tq_error *error)
{
    const uint64_t room = count + CHUNK;
    char *data;
    TQ_TRY(tq_blocks_add(work, pool, room, 2 * (sizeof *c->offset + sizeof *c->first), &data, error));
    c->offset = (uint64_t *)(void *)data;
    c->end = c->offset + room;
    c->first = (int32_t *)(void *)(c->end + room);
    c->last = c->first + room;
    return TQ_OK;
}

/* Cuts time into blocks, where that helps, each with room for what lives in it. */
static tq_status open_blocks(search *s, uint32_t count, tq_pool *pool, tq_block **work, tq_error *error)
{
    columns room;
    int32_t end = s->items[0].last;
    uint64_t at = 0;
    s->start = s->items[0].first;
    for (uint32_t i = 1; i < count; i++) {
        s->start = s->items[i].first < s->start ? s->items[i].first : s->start;
        end = s->items[i].last > end ? s->items[i].last : end;
    }
    const uint32_t span = (uint32_t)end - (uint32_t)s->start, most = span >> LEAST_SHIFT;
    TQ_TRY(
        tq_blocks_add(work, pool, (uint64_t)(most < count ? most : count) + 2, sizeof *s->blocks, &s->blocks, error));
    choose_blocks(s, count, span);
    if (!s->block_count)
        return TQ_OK;
    TQ_TRY(open_columns(&room, count_blocks(s, count), pool, work, error));
    for (uint32_t i = 0; i < s->block_count; i++) {
        const uint32_t mine = s->blocks[i].count;
        s->blocks[i] = (columns){room.offset + at, room.end + at, room.first + at, room.last + at, 0};
        at += mine;
    }
    return TQ_OK;
}

static tq_status open_search(search *s, uint32_t count, uint32_t **order, tq_pool *pool, tq_block **work,
                             tq_error *error)
{
    TQ_TRY(open_columns(&s->all, count, pool, work, error));
    TQ_TRY(tq_blocks_add(work, pool, count, 2 * sizeof **order, order, error));
    s->waiting = *order + count;
    return count < LEAST_ITEMS ? TQ_OK : open_blocks(s, count, pool, work, error);
}

tq_status tq_arena_find_offsets(tq_arena_item *items, uint32_t count, tq_pool *pool, uint64_t *total, tq_error *error)
{
    search s = {.items = items};
    tq_block *work = NULL;
    uint32_t *order;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!tq_add_u64(sum, items[i].size, &sum) || sum > INT64_MAX)
            return tq_fail(error, TQ_MEMORY_LIMIT, TQ_NO_OFFSET,
                           "the tensors of the subgraph are larger than any memory");
    tq_status status = open_search(&s, count, &order, pool, &work, error);
    if (status == TQ_OK) {
        for (uint32_t i = 0; i < count; i++)
            order[i] = i;
        tq_sort_indices(order, count, by_size, items);
        place(&s, items, order, count, total);
    }
    tq_blocks_release(&work);
    return status;
}
