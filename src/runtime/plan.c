/* SPDX-License-Identifier: Apache-2.0
 *
 * The arena: offsets for all tensors of known size, such that tensors that live at the same time do not overlap
 * (arena_offsets.h).
 *
 * Operators run one after the other, so small scratch of all of them is one piece of memory, which no tensor shares. It
 * stays in the caches; with several threads, each thread's share of it in those of its core.  A core that writes lines
 * which another one wrote last takes several times as long.
 *
 * The output of an operator that changes no byte (TQ_OP_SAME) takes over the memory of an input that no later operator
 * reads, so that no copy is needed.  So does that of an elementwise operator (node->in_place): a loop that writes the
 * lines that it reads takes two thirds of the time where they come from memory, and leaves more of a cache to others.
 */
#include "ops/check.h"
#include "runtime/arena_offsets.h"
#include "runtime/begin.h"
#include "runtime/run.h"

/* Of a thread.  Second-level caches have room for it. */
#define COMMON_SCRATCH (512 << 10)

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
        if (graph->steps[k].looked_up)
            graph->slots[graph->steps[k].looked_up->index].last = (int32_t)k;
    }
}

static bool is_planned(const tq_graph_run *graph, const tq_tensor *tensor)
{
    return tensor && tensor->storage == TQ_STORAGE_ARENA && tensor->has_shape && !graph->slots[tensor->index].is_orphan;
}

/* Whether the output of step k may take over the memory of input i.  Not that of a graph's input: a caller sets it. */
static bool may_take_over(const tq_graph_run *graph, uint32_t k, int i)
{
    const tq_node *node = &graph->steps[k].node;
    const tq_tensor *from = node->in[i], *to = node->out[0];
    if (!is_planned(graph, from) || !is_planned(graph, to) || from->bytes != to->bytes ||
        (node->in_place && tq_tensor_count(from) != tq_tensor_count(to))) /* bytes compared with a broadcast float */
        return false;
    const tq_slot *in = &graph->slots[from->index], *out = &graph->slots[to->index];
    return !in->is_input && in->last == (int32_t)k && out->first == (int32_t)k;
}

/* The input whose memory the output of step k takes over; NULL: none. */
static const tq_tensor *taken_over(const tq_graph_run *graph, uint32_t k)
{
    const tq_step *step = &graph->steps[k];
    const tq_node *node = &step->node;
    if (step->phase != TQ_NODE_READY)
        return NULL;
    const int inputs = node->in_place ? node->in_count : node->op->flags & TQ_OP_SAME ? 1 : 0;
    for (int i = 0; i < inputs; i++)
        if (may_take_over(graph, k, i))
            return node->in[i];
    return NULL;
}

/* lives[i]: the last operator that uses the memory of tensor i, as tensor i or as a tensor that took it over. */
static void find_aliases(tq_graph_run *graph, int32_t *lives)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        graph->slots[i].alias_of = i;
        graph->slots[i].overwrites = false;
        lives[i] = graph->slots[i].last;
    }
    for (uint32_t k = 0; k < graph->step_count; k++) {
        const tq_tensor *in = taken_over(graph, k);
        if (!in)
            continue;
        const tq_node *node = &graph->steps[k].node;
        tq_slot *out = &graph->slots[node->out[0]->index];
        out->alias_of = graph->slots[in->index].alias_of;
        out->overwrites = node->in_place;
        lives[out->alias_of] = out->last;
    }
}

static bool has_common_scratch(const tq_step *step)
{
    const uint64_t bytes = step->node.request.scratch_bytes;
    return step->phase == TQ_NODE_READY && bytes && bytes <= (uint64_t)step->node.threads * COMMON_SCRATCH;
}

/* Of the item of common scratch. */
static uint32_t common_index(const tq_graph_run *graph)
{
    return graph->tensor_count + graph->step_count;
}

static uint32_t collect(tq_graph_run *graph, tq_arena_item *items, const int32_t *lives)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        tq_tensor *tensor = &graph->tensors[i];
        tq_slot *slot = &graph->slots[i];
        if (tensor->storage != TQ_STORAGE_ARENA || !tensor->has_shape)
            continue;
        slot->in_arena = true;
        if (slot->alias_of == i)
            items[count++] = (tq_arena_item){align(tensor->bytes), 0, slot->first, lives[i], i};
    }
    uint64_t common = 0;
    for (uint32_t k = 0; k < graph->step_count; k++) {
        const tq_step *step = &graph->steps[k];
        const uint64_t scratch = step->node.request.scratch_bytes;
        if (has_common_scratch(step))
            common = scratch > common ? scratch : common;
        else if (step->phase == TQ_NODE_READY && scratch && scratch < UINT64_MAX - TQ_ALIGNMENT)
            items[count++] = (tq_arena_item){align(scratch), 0, (int32_t)k, (int32_t)k, graph->tensor_count + k};
    }
    if (common)
        items[count++] = (tq_arena_item){align(common), 0, 0, (int32_t)graph->step_count, common_index(graph)};
    return count;
}

static void bind_scratch(tq_graph_run *graph, tq_step *step, uint64_t offset)
{
    step->scratch_offset = offset;
    step->node.scratch = (char *)graph->arena->data + offset;
}

static void bind(tq_graph_run *graph, const tq_arena_item *items, uint32_t count)
{
    char *base = graph->arena->data;
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].index < graph->tensor_count) {
            graph->slots[items[i].index].offset = items[i].offset;
            graph->tensors[items[i].index].data = base + items[i].offset;
        } else if (items[i].index < common_index(graph)) {
            bind_scratch(graph, &graph->steps[items[i].index - graph->tensor_count], items[i].offset);
        } else {
            for (uint32_t k = 0; k < graph->step_count; k++)
                if (has_common_scratch(&graph->steps[k]))
                    bind_scratch(graph, &graph->steps[k], items[i].offset);
        }
    }
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        tq_slot *slot = &graph->slots[i];
        if (slot->in_arena && slot->alias_of != i) {
            slot->offset = graph->slots[slot->alias_of].offset;
            graph->tensors[i].data = base + slot->offset;
        }
    }
}

tq_status tq_graph_plan(tq_graph_run *graph, tq_error *error)
{
    tq_block *work = NULL;
    tq_arena_item *items;
    int32_t *lives;
    find_lifetimes(graph);
    tq_status status = tq_blocks_add(&work, graph->run->pool, (uint64_t)graph->tensor_count + graph->step_count + 1,
                                     sizeof *items, &items, error);
    if (status == TQ_OK)
        status = tq_blocks_add(&work, graph->run->pool, graph->tensor_count, sizeof *lives, &lives, error);
    if (status == TQ_OK) {
        find_aliases(graph, lives);
        uint32_t count = collect(graph, items, lives);
        status = tq_arena_find_offsets(items, count, graph->run->pool, &graph->arena_bytes, error);
        status = tq_run_heard(graph->run, status, error);
        if (status == TQ_OK)
            status = tq_block_new(graph->run->pool, graph->arena_bytes, &graph->arena, error);
        if (status == TQ_OK)
            bind(graph, items, count);
    }
    tq_blocks_release(&work);
    return status;
}

bool tq_graph_holds(const tq_graph_run *graph, uint32_t tensor)
{
    const tq_slot *mine = &graph->slots[tensor];
    const int32_t done = (int32_t)graph->end;
    if (!mine->in_arena || graph->run->options.preserve_all)
        return true;
    if (mine->first >= done || (graph->host.runs_all && mine->producer >= 0 && graph->steps[mine->producer].in_table))
        return false;
    if (mine->last >= done) /* as a graph's output: no operator ran after its last reader */
        return true;
    uint64_t begin = mine->offset, end = begin + graph->tensors[tensor].bytes;
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        const tq_slot *other = &graph->slots[i];
        if (i != tensor && other->in_arena && other->first + other->overwrites > mine->last && other->first < done &&
            other->offset < end && begin < other->offset + graph->tensors[i].bytes)
            return false;
    }
    for (uint32_t k = 0; k < graph->step_count; k++) {
        const tq_step *step = &graph->steps[k];
        const uint64_t scratch = step->node.request.scratch_bytes;
        if (step->phase == TQ_NODE_READY && scratch && (int32_t)k > mine->last && (int32_t)k < done &&
            step->scratch_offset < end && begin < step->scratch_offset + scratch)
            return false;
    }
    return true;
}
