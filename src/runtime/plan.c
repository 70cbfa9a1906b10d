/* SPDX-License-Identifier: Apache-2.0
 *
 * The arena: every tensor whose size is known gets a place, such that two that live at the same time do not
 * overlap.  Greedy by size: the largest first, each at the lowest offset that is free for its whole life
 * (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020).
 *
 * The output of an operator that changes no byte (TQ_OP_SAME) takes over the place of an input that nothing reads after
 * it, so that there is nothing to copy.
 */
#include <string.h>

#include "base/checked.h"
#include "base/sort.h"
#include "ops/check.h"
#include "runtime/run.h"

typedef struct item {
    uint64_t size, offset;
    int32_t first, last;
    uint32_t index; /* a tensor, or tensor_count + a step whose scratch it is */
} item;

/* Placing takes time in the square of the number of items.  Beyond so many, which no real subgraph has, the
   smaller ones stand behind the others and share nothing. */
enum { PLANNED_ITEMS = 16384 };

static uint64_t align(uint64_t size)
{
    return (size + TQ_ALIGNMENT - 1) & ~(uint64_t)(TQ_ALIGNMENT - 1);
}

static void find_lifetimes(tq_graph_run *graph)
{
    int32_t end = (int32_t)graph->step_count;
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        tq_slot *slot = &graph->slots[i];
        bool whole = slot->is_input || slot->is_output || slot->is_orphan || graph->run->options.preserve_all;
        slot->first = slot->is_input ? -1 : slot->producer;
        slot->last = whole ? end : slot->producer;
    }
    for (uint32_t k = 0; k < graph->step_count; k++) {
        const tq_node *node = &graph->steps[k].node;
        for (int i = 0; i < node->in_count; i++)
            if (node->in[i] && graph->slots[node->in[i]->index].last < (int32_t)k)
                graph->slots[node->in[i]->index].last = (int32_t)k;
    }
}

static bool is_planned(const tq_graph_run *graph, const tq_tensor *tensor)
{
    return tensor && tensor->storage == TQ_STORAGE_ARENA && tensor->has_shape && !graph->slots[tensor->index].is_orphan;
}

/* What a caller sets stays where it is: the inputs of the graph. */
static bool takes_over(const tq_graph_run *graph, uint32_t k)
{
    const tq_step *step = &graph->steps[k];
    const tq_node *node = &step->node;
    if (step->phase != TQ_NODE_READY || !(node->op->flags & TQ_OP_SAME) || !is_planned(graph, node->in[0]) ||
        !is_planned(graph, node->out[0]) || node->in[0]->bytes != node->out[0]->bytes)
        return false;
    const tq_slot *in = &graph->slots[node->in[0]->index], *out = &graph->slots[node->out[0]->index];
    return !in->is_input && in->last == (int32_t)k && out->first == (int32_t)k;
}

/* lives: of the tensor that has a place, the last operator for which the place is taken. */
static void share_places(tq_graph_run *graph, int32_t *lives)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        graph->slots[i].place = i;
        lives[i] = graph->slots[i].last;
    }
    for (uint32_t k = 0; k < graph->step_count; k++) {
        if (!takes_over(graph, k))
            continue;
        const tq_node *node = &graph->steps[k].node;
        tq_slot *out = &graph->slots[node->out[0]->index];
        out->place = graph->slots[node->in[0]->index].place;
        lives[out->place] = out->last;
    }
}

static uint32_t collect(tq_graph_run *graph, item *items, const int32_t *lives)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        tq_tensor *tensor = &graph->tensors[i];
        tq_slot *slot = &graph->slots[i];
        if (tensor->storage != TQ_STORAGE_ARENA || !tensor->has_shape)
            continue;
        slot->in_arena = true;
        if (slot->place == i)
            items[count++] = (item){align(tensor->bytes), 0, slot->first, lives[i], i};
    }
    for (uint32_t k = 0; k < graph->step_count; k++) {
        const tq_step *step = &graph->steps[k];
        if (step->phase == TQ_NODE_READY && step->scratch_bytes && step->scratch_bytes < UINT64_MAX - TQ_ALIGNMENT)
            items[count++] = (item){align(step->scratch_bytes), 0, (int32_t)k, (int32_t)k, graph->tensor_count + k};
    }
    return count;
}

/* Larger first; of equal ones the earlier. */
static bool by_size(const void *context, uint32_t a, uint32_t b)
{
    const item *x = (const item *)context + a, *y = (const item *)context + b;
    if (x->size != y->size)
        return x->size > y->size;
    return x->first != y->first ? x->first < y->first : a < b;
}

enum { CHUNK = 32 }; /* items whose lifetimes are looked at in one go */

/* Items that have a place, by offset: a column for each of their numbers, which vectors run along.  Columns have room
   for a whole chunk past the last item. */
typedef struct placed {
    uint64_t *offset, *end;
    int32_t *first, *last;
    uint32_t count;
} placed;

/* Which of the items from `begin` on live while `it` does: their places, and how many.  Without a branch for each: most
   do not, and which do follows no pattern. */
static uint32_t find_alive(const placed *p, uint32_t begin, const item *it, uint32_t found[CHUNK])
{
    const int32_t *first = p->first + begin, *last = p->last + begin;
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
    while (count && found[count - 1] >= p->count)
        count--;
    return count;
}

/* The start of the smallest gap that fits between items that live while `it` does. */
static uint64_t find_gap(const item *it, const placed *p)
{
    uint64_t free_from = 0, best = UINT64_MAX, best_gap = UINT64_MAX;
    uint32_t found[CHUNK];
    for (uint32_t begin = 0; begin < p->count; begin += CHUNK) {
        const uint32_t count = find_alive(p, begin, it, found);
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t offset = p->offset[found[i]], end = p->end[found[i]];
            if (offset > free_from && offset - free_from >= it->size && offset - free_from < best_gap) {
                best = free_from;
                best_gap = offset - free_from;
            }
            free_from = end > free_from ? end : free_from;
        }
    }
    return best == UINT64_MAX ? free_from : best;
}

/* The first item that begins behind `offset`. */
static uint32_t behind(const placed *p, uint64_t offset)
{
    uint32_t low = 0, high = p->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (p->offset[middle] > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void insert(placed *p, const item *it)
{
    const uint32_t at = behind(p, it->offset), rest = p->count++ - at;
    memmove(p->offset + at + 1, p->offset + at, rest * sizeof *p->offset);
    memmove(p->end + at + 1, p->end + at, rest * sizeof *p->end);
    memmove(p->first + at + 1, p->first + at, rest * sizeof *p->first);
    memmove(p->last + at + 1, p->last + at, rest * sizeof *p->last);
    p->offset[at] = it->offset, p->end[at] = it->offset + it->size;
    p->first[at] = it->first, p->last[at] = it->last;
}

static tq_status plan(item *items, uint32_t *order, uint32_t count, placed *placed, uint64_t *total, tq_error *error)
{
    uint64_t sum = 0, end = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!tq_add_u64(sum, items[i].size, &sum) || sum > INT64_MAX)
            return tq_fail(error, TQ_MEMORY_LIMIT, TQ_NO_OFFSET, "the tensors of the subgraph are larger than any memory");
    uint32_t planned = count < PLANNED_ITEMS ? count : PLANNED_ITEMS;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    tq_sort_places(order, count, by_size, items);
    for (uint32_t i = 0; i < planned; i++) {
        item *it = &items[order[i]];
        it->offset = find_gap(it, placed);
        insert(placed, it);
        end = it->offset + it->size > end ? it->offset + it->size : end;
    }
    for (uint32_t i = planned; i < count; i++) {
        items[order[i]].offset = end;
        end += items[order[i]].size;
    }
    *total = end;
    return TQ_OK;
}

static void bind(tq_graph_run *graph, const item *items, uint32_t count)
{
    char *base = graph->arena->data;
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].index < graph->tensor_count) {
            graph->slots[items[i].index].offset = items[i].offset;
            graph->tensors[items[i].index].data = base + items[i].offset;
        } else {
            tq_step *step = &graph->steps[items[i].index - graph->tensor_count];
            step->scratch_offset = items[i].offset;
            step->node.scratch = base + items[i].offset;
        }
    }
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        tq_slot *slot = &graph->slots[i];
        if (slot->in_arena && slot->place != i) {
            slot->offset = graph->slots[slot->place].offset;
            graph->tensors[i].data = base + slot->offset;
        }
    }
}

static tq_status make_columns(placed *p, uint64_t most, tq_pool *pool, tq_block **work, tq_error *error)
{
    const uint64_t room = (most < PLANNED_ITEMS ? most : PLANNED_ITEMS) + CHUNK;
    TQ_TRY(tq_blocks_add(work, pool, room, sizeof *p->offset, &p->offset, error));
    TQ_TRY(tq_blocks_add(work, pool, room, sizeof *p->end, &p->end, error));
    TQ_TRY(tq_blocks_add(work, pool, room, sizeof *p->first, &p->first, error));
    return tq_blocks_add(work, pool, room, sizeof *p->last, &p->last, error);
}

tq_status tq_graph_plan(tq_graph_run *graph, tq_error *error)
{
    tq_block *work = NULL;
    item *items;
    placed placed = {.count = 0};
    uint32_t *order;
    int32_t *lives;
    uint64_t most = (uint64_t)graph->tensor_count + graph->step_count;
    find_lifetimes(graph);
    tq_status status = tq_blocks_add(&work, graph->run->pool, most, sizeof *items, &items, error);
    if (status == TQ_OK)
        status = make_columns(&placed, most, graph->run->pool, &work, error);
    if (status == TQ_OK)
        status = tq_blocks_add(&work, graph->run->pool, most, sizeof *order, &order, error);
    if (status == TQ_OK)
        status = tq_blocks_add(&work, graph->run->pool, most, sizeof *lives, &lives, error);
    if (status == TQ_OK) {
        share_places(graph, lives);
        uint32_t count = collect(graph, items, lives);
        status = plan(items, order, count, &placed, &graph->arena_bytes, error);
        if (status == TQ_OK)
            status = tq_block_new(graph->run->pool, graph->arena_bytes, &graph->arena, error);
        if (status == TQ_OK)
            bind(graph, items, count);
    }
    tq_blocks_release(&work);
    return status;
}

bool tq_graph_keeps(const tq_graph_run *graph, uint32_t tensor)
{
    const tq_slot *mine = &graph->slots[tensor];
    const int32_t done = (int32_t)graph->end;
    if (!mine->in_arena || graph->run->options.preserve_all)
        return true;
    if (mine->first >= done)
        return false;
    uint64_t begin = mine->offset, end = begin + graph->tensors[tensor].bytes;
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        const tq_slot *other = &graph->slots[i];
        if (i != tensor && other->in_arena && other->first > mine->last && other->first < done && other->offset < end &&
            begin < other->offset + graph->tensors[i].bytes)
            return false;
    }
    for (uint32_t k = 0; k < graph->step_count; k++) {
        const tq_step *step = &graph->steps[k];
        if (step->phase == TQ_NODE_READY && step->scratch_bytes && (int32_t)k > mine->last && (int32_t)k < done &&
            step->scratch_offset < end && begin < step->scratch_offset + step->scratch_bytes)
            return false;
    }
    return true;
}
