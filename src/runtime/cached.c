/* SPDX-License-Identifier: Apache-2.0
 *
 * Values made of constants, once for all interpreters of a model: prepacked weights, floats computed from weights of 16
 * bits and from sparse ones, and constants that operators read in another form than the file's.
 *
 * The model has a table of shared items (base/shared.h).  An item's key has everything that the value depends on: the
 * operator or the tensor, the key that it asked for, and the addresses of the constants.  Addresses suffice: two
 * interpreters with a constant at one address have the same constant, and a user of an item also holds the item's
 * constants, so that no other constant can have the address while the item lives.
 *
 * New items of a graph lie in one block, untouched until they are filled.  The block belongs to the first interpreter.
 * Interpreters that borrow an item count its bytes too, so that no interpreter's limit of memory depends on others.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/scratch.h"
#include "runtime/begin.h"
#include "runtime/node_call.h"
#include "runtime/run.h"

enum { OF_STEP, OF_TENSOR, OF_FOLDED };
enum { INPUTS = 8, HEAD = 8 };

typedef struct key {
    int64_t values[HEAD + TQ_PREPACK_KEY + INPUTS];
    size_t count;
} key;

static void put(key *k, int64_t value)
{
    k->values[k->count++] = value;
}

static void put_address(key *k, const void *address)
{
    put(k, (int64_t)(intptr_t)address);
}

static tq_bytes bytes_of(const key *k)
{
    return (tq_bytes){(const uint8_t *)k->values, k->count * sizeof *k->values};
}

static uint64_t wanted(const tq_step *step)
{
    return step->phase == TQ_NODE_ONCE ? step->node.out[0]->bytes : step->node.request.prepacked_bytes;
}

static bool wants(const tq_step *step)
{
    const bool prepared = step->phase == TQ_NODE_READY || step->phase == TQ_NODE_LATE;
    return step->phase == TQ_NODE_ONCE || (prepared && step->node.request.pack);
}

static void put_inputs(key *k, const tq_node *node)
{
    for (int i = 0; i < node->in_count && i < INPUTS; i++)
        put_address(k, node->in[i] && tq_is_constant(node->in[i]) ? node->in[i]->data : NULL);
}

static key key_of(const tq_graph_run *graph, const tq_step *step)
{
    const tq_node *node = &step->node;
    key k = {.count = 0};
    put(&k, OF_STEP);
    put(&k, graph->index);
    put(&k, node->index);
    put(&k, step->phase == TQ_NODE_ONCE);
    put(&k, (int64_t)wanted(step));
    put(&k, node->numerics);
    /* not shared: values that depend on shapes, or on more inputs than a key has room for */
    put_address(&k, node->foldable || node->in_count > INPUTS ? step : NULL);
    put_inputs(&k, node);
    for (int i = 0; i < node->request.key_count; i++)
        put(&k, node->request.key[i]);
    return k;
}

/* ---- an operator ---- */

static void release_block(void *block)
{
    tq_block_release(block);
}

static void bind(tq_step *step)
{
    tq_node *node = &step->node;
    step->to_pack = true;
    if (step->phase != TQ_NODE_ONCE) {
        node->prepacked = step->cached->data;
        return;
    }
    tq_tensor *out = node->out[0];
    out->data = step->cached->data;
    tq_block_release(out->block);
    out->block = tq_block_retain(step->cached->owner);
}

/* Whether a constant input has no address yet, since its item is new. */
static bool waits_for_new(const tq_graph_run *graph, const tq_step *step)
{
    for (int i = 0; i < step->node.in_count; i++) {
        const tq_tensor *in = step->node.in[i];
        const int32_t producer = in ? graph->slots[in->index].producer : -1;
        if (producer >= 0 && graph->steps[producer].phase == TQ_NODE_ONCE && !graph->steps[producer].cached)
            return true;
    }
    return false;
}

/* Uses the item of the step's key, if the table has one. */
static tq_status borrow(tq_graph_run *graph, tq_step *step, uint64_t bytes, tq_error *error)
{
    if (tq_shared_is_empty(graph->run->model->shared))
        return TQ_OK;
    const key k = key_of(graph, step);
    tq_shared_item *found = tq_shared_find(graph->run->model->shared, bytes_of(&k));
    if (!found)
        return TQ_OK;
    if (((tq_block *)found->owner)->pool == graph->run->pool)
        bytes = 0; /* prepared before: the block belongs to this interpreter */
    tq_status status = tq_pool_borrow(graph->run->pool, bytes, error);
    if (status != TQ_OK) {
        tq_shared_drop(graph->run->model->shared, found);
        return status;
    }
    step->cached = found;
    step->borrowed = bytes;
    bind(step);
    return TQ_OK;
}

/* Binds operators to existing items; *missing: the bytes of all other operators. */
static tq_status find_entries(tq_graph_run *graph, uint64_t *missing, tq_error *error)
{
    for (uint32_t i = 0; i < graph->step_count; i++) {
        tq_step *step = &graph->steps[i];
        if (!wants(step) || step->phase == TQ_NODE_LATE)
            continue;
        uint64_t bytes = 0;
        tq_scratch_part(&bytes, wanted(step), 1); /* its part of a block of items */
        if (!waits_for_new(graph, step))
            TQ_TRY(borrow(graph, step, bytes, error));
        if (!step->cached)
            tq_scratch_part(missing, bytes, 1);
    }
    return TQ_OK;
}

/* Adds an item at `data` of the block, of which the item takes a reference. */
static tq_status add_entry(tq_graph_run *graph, tq_step *step, tq_block *block, void *data, tq_error *error)
{
    const key k = key_of(graph, step);
    tq_status status = tq_shared_add(graph->run->model->shared, bytes_of(&k), data, tq_block_retain(block),
                                     release_block, &step->cached, error);
    if (status == TQ_OK)
        bind(step);
    else
        tq_block_release(block);
    return status;
}

tq_status tq_graph_find_cached(tq_graph_run *graph, tq_error *error)
{
    uint64_t missing = 0, at = 0;
    tq_block *block;
    TQ_TRY(find_entries(graph, &missing, error));
    TQ_TRY(tq_block_new(graph->run->pool, missing, &block, error));
    tq_status status = TQ_OK;
    for (uint32_t i = 0; i < graph->step_count && status == TQ_OK; i++) {
        tq_step *step = &graph->steps[i];
        if (!wants(step) || step->phase == TQ_NODE_LATE || step->cached)
            continue;
        void *data = (char *)block->data + tq_scratch_part(&at, wanted(step), 1);
        status = add_entry(graph, step, block, data, error);
    }
    tq_block_release(block);
    return status;
}

tq_status tq_step_find_cached(tq_graph_run *graph, tq_step *step, tq_error *error)
{
    tq_block *block;
    TQ_TRY(borrow(graph, step, wanted(step), error));
    if (step->cached)
        return TQ_OK;
    TQ_TRY(tq_block_new(graph->run->pool, wanted(step), &block, error));
    tq_status status = add_entry(graph, step, block, block->data, error);
    tq_block_release(block);
    return status;
}

tq_status tq_step_prepack(tq_step *step, tq_error *error)
{
    tq_run *run = tq_graph_of(&step->node)->run;
    bool again = false;
    tq_run_flush(run, false);
    if (tq_shared_begin(step->cached, &again)) {
        if (again)
            memset(step->node.prepacked, 0, (size_t)step->node.request.prepacked_bytes);
        tq_node_pack(&step->node);
        tq_shared_end(step->cached, tq_run_heard(run, TQ_OK, NULL) == TQ_OK);
    }
    TQ_TRY(tq_run_heard(run, TQ_OK, error));
    step->to_pack = false;
    return TQ_OK;
}

/* ---- preparing again ---- */

/* Whether the item's constants stay at their addresses. */
static bool stays(const tq_graph_run *graph, const tq_step *step)
{
    for (int i = 0; i < step->node.in_count; i++) {
        const tq_tensor *in = step->node.in[i];
        if (!in || !tq_is_constant(in) || graph->slots[in->index].file_constant)
            continue;
        const int32_t producer = graph->slots[in->index].producer;
        if (producer < 0 || !(graph->steps[producer].earlier || graph->steps[producer].cached ||
                              graph->slots[in->index].cached || graph->slots[in->index].earlier))
            return false;
    }
    return true;
}

void tq_step_drop_cached(tq_graph_run *graph, tq_step *step, bool hold)
{
    if (hold && step->cached && !step->earlier && stays(graph, step))
        step->earlier = step->cached;
    else
        tq_shared_drop(graph->run->model->shared, step->cached);
    tq_pool_return(graph->run->pool, step->borrowed);
    step->borrowed = 0;
    step->cached = NULL;
    step->to_pack = false;
}

void tq_step_drop_earlier(tq_graph_run *graph, tq_step *step)
{
    tq_shared_drop(graph->run->model->shared, step->earlier);
    step->earlier = NULL;
}

/* ---- constants that an operator computed in prepare ---- */

/* Whether the outputs depend on the file alone, and the inputs stay at their addresses while the outputs are used. */
static bool is_shareable(const tq_graph_run *graph, const tq_node *node)
{
    for (int i = 0; i < node->in_count; i++)
        if (node->in[i] && !graph->slots[node->in[i]->index].file_constant && !graph->slots[node->in[i]->index].cached)
            return false;
    return !node->foldable && node->in_count <= INPUTS;
}

/* Replaces the slot's block by the item of another interpreter. */
static void exchange(tq_graph_run *graph, tq_slot *slot, tq_tensor *tensor)
{
    tq_block *theirs = slot->cached->owner;
    const uint64_t bytes = theirs->size;
    tq_block_release(tensor->block);
    tensor->block = tq_block_retain(theirs);
    tensor->data = slot->cached->data;
    if (theirs->pool != graph->run->pool && tq_pool_borrow(graph->run->pool, bytes, NULL) == TQ_OK)
        slot->borrowed = bytes; /* the released block's bytes, which are free now */
}

void tq_step_share_folded(tq_graph_run *graph, tq_step *step)
{
    const tq_node *node = &step->node;
    for (int i = 0; i < node->out_count && is_shareable(graph, node); i++) {
        tq_tensor *tensor = node->out[i];
        tq_slot *slot = tensor ? &graph->slots[tensor->index] : NULL;
        if (!slot || !tensor->block || slot->cached)
            continue;
        key k = {.count = 0};
        put(&k, OF_FOLDED);
        put(&k, graph->index);
        put(&k, node->index);
        put(&k, i);
        put(&k, (int64_t)tensor->bytes);
        put(&k, node->numerics);
        put_inputs(&k, node);
        tq_block *mine = tq_block_retain(tensor->block);
        if (tq_shared_add(graph->run->model->shared, bytes_of(&k), tensor->data, mine, release_block, &slot->cached,
                          NULL) != TQ_OK)
            tq_block_release(mine); /* the constant stays this interpreter's own */
        else if (slot->cached->owner != mine)
            exchange(graph, slot, tensor);
    }
}

void tq_slot_hold_earlier(tq_graph_run *graph, tq_slot *slot)
{
    tq_pool_return(graph->run->pool, slot->borrowed);
    slot->borrowed = 0;
    slot->earlier = slot->cached;
    slot->cached = NULL;
}

void tq_slot_drop_earlier(tq_graph_run *graph, tq_slot *slot)
{
    tq_shared_drop(graph->run->model->shared, slot->earlier);
    slot->earlier = NULL;
}

/* ---- a constant ---- */

tq_status tq_slot_find_cached(tq_graph_run *graph, uint32_t tensor, const void *stored, uint64_t bytes, bool *make,
                              tq_error *error)
{
    tq_shared *shared = graph->run->model->shared;
    tq_slot *slot = &graph->slots[tensor];
    tq_block *block;
    bool again = false;
    key k = {.count = 0};
    put(&k, OF_TENSOR);
    put(&k, graph->index);
    put(&k, tensor);
    put(&k, (int64_t)bytes);
    put_address(&k, stored);
    slot->cached = tq_shared_find(shared, bytes_of(&k)); /* the graph holds and counts it until it closes */
    if (slot->cached) {
        TQ_TRY(tq_pool_borrow(graph->run->pool, bytes, error));
    } else {
        TQ_TRY(tq_block_new(graph->run->pool, bytes, &block, error));
        tq_status status = tq_shared_add(shared, bytes_of(&k), block->data, block, release_block, &slot->cached, error);
        if (status != TQ_OK) {
            tq_block_release(block);
            return status;
        }
    }
    graph->tensors[tensor].block = tq_block_retain(slot->cached->owner);
    graph->tensors[tensor].data = slot->cached->data;
    graph->tensors[tensor].bytes = (size_t)bytes;
    *make = tq_shared_begin(slot->cached, &again);
    if (again && *make)
        memset(slot->cached->data, 0, (size_t)bytes);
    return TQ_OK;
}
