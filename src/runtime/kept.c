/* SPDX-License-Identifier: Apache-2.0
 *
 * What is made of constants once for all interpreters of a model: packed weights, floats computed from weights of 16 bits
 * and sparse ones, and constants that do not stand in the file as operators read them.
 *
 * The model has the table of these parts (base/shared.h).  A part's key says what is made, and of what: the operator or
 * the tensor, what it asked for, and the addresses of the constants.  Addresses are enough: two interpreters that have a
 * constant at one address have the same constant, and whoever uses a part also holds the constants that it is made of, so
 * that nothing else can come to lie there while the part lives.
 *
 * New parts of a graph lie in one block, untouched until they are made.  The block belongs to the interpreter that came
 * first.  Those that borrow a part count its bytes too, so that what an interpreter may take depends on no other.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/scratch.h"
#include "runtime/run.h"

enum { OF_STEP, OF_TENSOR, OF_FOLDED };
enum { INPUTS = 8, HEAD = 8 };

typedef struct key {
    int64_t numbers[HEAD + TQ_FORM + INPUTS];
    size_t count;
} key;

static void put(key *k, int64_t number)
{
    k->numbers[k->count++] = number;
}

static void put_address(key *k, const void *address)
{
    put(k, (int64_t)(intptr_t)address);
}

static tq_bytes bytes_of(const key *k)
{
    return (tq_bytes){(const uint8_t *)k->numbers, k->count * sizeof *k->numbers};
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
    /* what depends on shapes, or on more inputs than a key has room for, is not shared */
    put_address(&k, node->foldable || node->in_count > INPUTS ? step : NULL);
    put_inputs(&k, node);
    for (int i = 0; i < node->request.form_count; i++)
        put(&k, node->request.form[i]);
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
        node->kept = step->part->data;
        return;
    }
    tq_tensor *out = node->out[0];
    out->data = step->part->data;
    tq_block_release(out->block);
    out->block = tq_block_retain(step->part->owner);
}

/* Whether a constant input has no address yet, since its part is new. */
static bool waits_for_new(const tq_graph_run *graph, const tq_step *step)
{
    for (int i = 0; i < step->node.in_count; i++) {
        const tq_tensor *in = step->node.in[i];
        const int32_t producer = in ? graph->slots[in->index].producer : -1;
        if (producer >= 0 && graph->steps[producer].phase == TQ_NODE_ONCE && !graph->steps[producer].part)
            return true;
    }
    return false;
}

/* Uses the part of the step's key, if the table has one. */
static tq_status borrow(tq_graph_run *graph, tq_step *step, uint64_t bytes, tq_error *error)
{
    if (tq_shared_is_empty(graph->run->model->shared))
        return TQ_OK;
    const key k = key_of(graph, step);
    tq_shared_item *part = tq_shared_find(graph->run->model->shared, bytes_of(&k));
    if (!part)
        return TQ_OK;
    if (((tq_block *)part->owner)->pool == graph->run->pool)
        bytes = 0; /* it was prepared before: the block is its own */
    tq_status status = tq_pool_borrow(graph->run->pool, bytes, error);
    if (status != TQ_OK) {
        tq_shared_drop(graph->run->model->shared, part);
        return status;
    }
    step->part = part;
    step->borrowed = bytes;
    bind(step);
    return TQ_OK;
}

/* Binds the operators to parts that are there; *missing: what the others need. */
static tq_status find_parts(tq_graph_run *graph, uint64_t *missing, tq_error *error)
{
    for (uint32_t i = 0; i < graph->step_count; i++) {
        tq_step *step = &graph->steps[i];
        if (!wants(step) || step->phase == TQ_NODE_LATE)
            continue;
        uint64_t bytes = 0;
        tq_scratch_part(&bytes, wanted(step), 1); /* as it counts in a block of parts */
        if (!waits_for_new(graph, step))
            TQ_TRY(borrow(graph, step, bytes, error));
        if (!step->part)
            tq_scratch_part(missing, bytes, 1);
    }
    return TQ_OK;
}

/* A part at `data` of the block, of which it takes a reference. */
static tq_status add_part(tq_graph_run *graph, tq_step *step, tq_block *block, void *data, tq_error *error)
{
    const key k = key_of(graph, step);
    tq_status status = tq_shared_add(graph->run->model->shared, bytes_of(&k), data, tq_block_retain(block),
                                     release_block, &step->part, error);
    if (status == TQ_OK)
        bind(step);
    else
        tq_block_release(block);
    return status;
}

tq_status tq_graph_give_kept(tq_graph_run *graph, tq_error *error)
{
    uint64_t missing = 0, at = 0;
    tq_block *block;
    TQ_TRY(find_parts(graph, &missing, error));
    TQ_TRY(tq_block_new(graph->run->pool, missing, &block, error));
    tq_status status = TQ_OK;
    for (uint32_t i = 0; i < graph->step_count && status == TQ_OK; i++) {
        tq_step *step = &graph->steps[i];
        if (!wants(step) || step->phase == TQ_NODE_LATE || step->part)
            continue;
        void *data = (char *)block->data + tq_scratch_part(&at, wanted(step), 1);
        status = add_part(graph, step, block, data, error);
    }
    tq_block_release(block);
    return status;
}

tq_status tq_step_give_kept(tq_graph_run *graph, tq_step *step, tq_error *error)
{
    tq_block *block;
    TQ_TRY(borrow(graph, step, wanted(step), error));
    if (step->part)
        return TQ_OK;
    TQ_TRY(tq_block_new(graph->run->pool, wanted(step), &block, error));
    tq_status status = add_part(graph, step, block, block->data, error);
    tq_block_release(block);
    return status;
}

tq_status tq_step_pack(tq_step *step, tq_error *error)
{
    tq_run *run = tq_graph_of(&step->node)->run;
    bool again = false;
    if (!step->to_pack)
        return TQ_OK;
    if (tq_shared_begin(step->part, &again)) {
        if (again)
            memset(step->node.kept, 0, (size_t)step->node.request.prepacked_bytes);
        step->node.request.pack(&step->node);
        tq_shared_end(step->part, tq_run_heard(run, TQ_OK, NULL) == TQ_OK);
    }
    TQ_TRY(tq_run_heard(run, TQ_OK, error));
    step->to_pack = false;
    return TQ_OK;
}

/* ---- preparing again ---- */

/* Whether the constants that the part is made of stay where they are. */
static bool stays(const tq_graph_run *graph, const tq_step *step)
{
    for (int i = 0; i < step->node.in_count; i++) {
        const tq_tensor *in = step->node.in[i];
        if (!in || !tq_is_constant(in) || graph->slots[in->index].file_constant)
            continue;
        const int32_t producer = graph->slots[in->index].producer;
        if (producer < 0 || !(graph->steps[producer].before || graph->steps[producer].part ||
                              graph->slots[in->index].part || graph->slots[in->index].before))
            return false;
    }
    return true;
}

void tq_step_drop_kept(tq_graph_run *graph, tq_step *step, bool hold)
{
    if (hold && step->part && !step->before && stays(graph, step))
        step->before = step->part;
    else
        tq_shared_drop(graph->run->model->shared, step->part);
    tq_pool_return(graph->run->pool, step->borrowed);
    step->borrowed = 0;
    step->part = NULL;
    step->to_pack = false;
}

void tq_step_drop_held(tq_graph_run *graph, tq_step *step)
{
    tq_shared_drop(graph->run->model->shared, step->before);
    step->before = NULL;
}

/* ---- what an operator computed in prepare ---- */

/* Whether it follows from the file alone, and what it was computed of stays where it is while it is used. */
static bool is_everybodys(const tq_graph_run *graph, const tq_node *node)
{
    for (int i = 0; i < node->in_count; i++)
        if (node->in[i] && !graph->slots[node->in[i]->index].file_constant && !graph->slots[node->in[i]->index].part)
            return false;
    return !node->foldable && node->in_count <= INPUTS;
}

/* The part that another interpreter has takes the place of the slot's block. */
static void exchange(tq_graph_run *graph, tq_slot *slot, tq_tensor *tensor)
{
    tq_block *theirs = slot->part->owner;
    const uint64_t bytes = theirs->size;
    tq_block_release(tensor->block);
    tensor->block = tq_block_retain(theirs);
    tensor->data = slot->part->data;
    if (theirs->pool != graph->run->pool && tq_pool_borrow(graph->run->pool, bytes, NULL) == TQ_OK)
        slot->borrowed = bytes; /* which was free just now */
}

void tq_step_share_folded(tq_graph_run *graph, tq_step *step)
{
    const tq_node *node = &step->node;
    for (int i = 0; i < node->out_count && is_everybodys(graph, node); i++) {
        tq_tensor *tensor = node->out[i];
        tq_slot *slot = tensor ? &graph->slots[tensor->index] : NULL;
        if (!slot || !tensor->block || slot->part)
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
        if (tq_shared_add(graph->run->model->shared, bytes_of(&k), tensor->data, mine, release_block, &slot->part,
                          NULL) != TQ_OK)
            tq_block_release(mine); /* then it is this interpreter's alone */
        else if (slot->part->owner != mine)
            exchange(graph, slot, tensor);
    }
}

void tq_slot_hold_folded(tq_graph_run *graph, tq_slot *slot)
{
    tq_pool_return(graph->run->pool, slot->borrowed);
    slot->borrowed = 0;
    slot->before = slot->part;
    slot->part = NULL;
}

void tq_slot_drop_held(tq_graph_run *graph, tq_slot *slot)
{
    tq_shared_drop(graph->run->model->shared, slot->before);
    slot->before = NULL;
}

/* ---- a constant ---- */

tq_status tq_slot_give_kept(tq_graph_run *graph, uint32_t tensor, const void *stored, uint64_t bytes, bool *make,
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
    slot->part = tq_shared_find(shared, bytes_of(&k)); /* the graph has it as long as it lives, and counts it so long */
    if (slot->part) {
        TQ_TRY(tq_pool_borrow(graph->run->pool, bytes, error));
    } else {
        TQ_TRY(tq_block_new(graph->run->pool, bytes, &block, error));
        tq_status status = tq_shared_add(shared, bytes_of(&k), block->data, block, release_block, &slot->part, error);
        if (status != TQ_OK) {
            tq_block_release(block);
            return status;
        }
    }
    graph->tensors[tensor].block = tq_block_retain(slot->part->owner);
    graph->tensors[tensor].data = slot->part->data;
    graph->tensors[tensor].bytes = (size_t)bytes;
    *make = tq_shared_begin(slot->part, &again);
    if (again && *make)
        memset(slot->part->data, 0, (size_t)bytes);
    return TQ_OK;
}
