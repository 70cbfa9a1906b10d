/* SPDX-License-Identifier: Apache-2.0
 *
 * A libFuzzer target for running models.
 *
 * One input is one file.  Under each of the three numerics it is opened, allocated, fed, invoked twice, resized,
 * allocated and invoked again, and every tensor is read; a second run of one in sixteen finds no memory at some block.
 * The file's own bytes choose threads, preserved tensors, values and shapes, so that a file does the same wherever it
 * is run. Sanitizers watch; abort() reports promises that they cannot check: a failure has a message, no block is left,
 * every tensor that a caller reads has memory.
 */
#include "fuzz_model.h"

#include <stdlib.h>

#include "base/cpu.h"
#include "kernels/kernels.h"
#include "runtime/run.h"

enum {
    MEMORY = 4 << 20, /* bytes: the limit of a run */
    ASKS = 3,         /* calls of `ask` before it says stop; 20 ms or more apart */
    GRAPHS = 4,       /* graphs that are run by themselves, at most */
    NEVER = 1 << 30
};

typedef struct session {
    uint64_t draws; /* state of `draw` */
    int asks;       /* since the last call began */
    uint64_t sum;   /* of bytes read */
} session;

/* xorshift64*: the same for a file on every machine. */
static uint64_t draw(session *s)
{
    s->draws ^= s->draws >> 12;
    s->draws ^= s->draws << 25;
    s->draws ^= s->draws >> 27;
    return s->draws * UINT64_C(0x2545F4914F6CDD1D) >> 16;
}

static uint64_t seed_of(tq_bytes file)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < file.size; i++)
        hash = (hash ^ file.data[i]) * UINT64_C(0x100000001B3);
    return hash | 1;
}

static bool interrupted(void *context)
{
    return ++((session *)context)->asks > ASKS;
}

/* A failure has a status and a message. */
static bool holds(session *s, tq_status status, const tq_error *error)
{
    s->asks = 0;
    if (status != TQ_OK)
        PROMISE(error->status == status && memchr(error->text, 0, sizeof error->text) && error->text[0]);
    return status == TQ_OK;
}

/* ---- values ---- */

/* Text in the file's format: `count` strings of one letter. */
static void fill_strings(tq_graph_run *graph, tq_tensor *tensor)
{
    const uint64_t count = tq_tensor_count(tensor), head = 4 * (count + 2);
    if (count > MEMORY / 8 || tq_tensor_allocate(tensor, graph->run->pool, head + count, NULL) != TQ_OK)
        return;
    int32_t *text = tensor->data;
    *text++ = (int32_t)count;
    for (uint64_t i = 0; i <= count; i++)
        *text++ = (int32_t)(head + i);
    memset(text, 'a', count);
}

static void fill_small(tq_tensor *tensor, size_t element, session *s)
{
    uint8_t *at = tensor->data;
    for (size_t i = 0; i + element <= tensor->bytes; i += element) {
        const int64_t value = (int64_t)(draw(s) % 8) - 2;
        const float real = (float)value / 2;
        if (tensor->type == TQ_TensorType_FLOAT32)
            memcpy(at + i, &real, sizeof real);
        else
            memcpy(at + i, &value, element < sizeof value ? element : sizeof value);
    }
}

static void fill_wild(tq_tensor *tensor, session *s)
{
    uint8_t *at = tensor->data;
    for (size_t i = 0; i < tensor->bytes; i++)
        at[i] = (uint8_t)draw(s);
}

/* Replaces values that no caller can set: booleans above 1, and values that do not fit 4 or 2 bits. */
static void limit_values(tq_tensor *tensor, const tq_type_row *row)
{
    uint8_t *at = tensor->data;
    if (row->kind == TQ_KIND_BOOLEAN)
        for (size_t i = 0; i < tensor->bytes; i++)
            at[i] &= 1;
    else if (row->bits && row->bits < 8)
        for (size_t i = 0; i < tensor->bytes; i++)
            at[i] = (uint8_t)((int)row->low + at[i] % (1 << row->bits));
}

static void fill(tq_graph_run *graph, session *s)
{
    const bool wild = draw(s) % 4 == 0;
    for (uint32_t i = 0; i < graph->subgraph.inputs.count; i++) {
        const int32_t index = tq_vector_i32(&graph->subgraph.inputs, i);
        if (index < 0 || (uint32_t)index >= graph->tensor_count)
            continue;
        tq_tensor *tensor = &graph->tensors[index];
        const size_t element = tq_element_bytes(tensor->type);
        if (tq_is_constant(tensor))
            continue;
        if (tensor->type == TQ_TensorType_STRING) {
            fill_strings(graph, tensor);
        } else if (tensor->data && element && tq_type(tensor->type)->kind != TQ_KIND_OPAQUE) {
            PROMISE(tensor->bytes == element * tq_tensor_count(tensor));
            wild ? fill_wild(tensor, s) : fill_small(tensor, element, s);
            limit_values(tensor, tq_type(tensor->type));
        }
    }
}

/* Reads every byte that a caller can read. */
static void look(tq_graph_run *graph, session *s)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        const tq_tensor *tensor = &graph->tensors[i];
        const size_t element = tensor->packed ? 0 : tq_element_bytes(tensor->type);
        if (!tensor->data || !graph->ready || !tq_graph_holds(graph, i))
            continue;
        if (element && tensor->has_shape && !graph->slots[i].file_constant)
            PROMISE(tensor->bytes == element * tq_tensor_count(tensor));
        const uint8_t *bytes = tensor->data;
        for (size_t k = 0; k < tensor->bytes; k++)
            s->sum += bytes[k];
    }
    for (uint32_t k = 0; k < graph->step_count; k++)
        s->sum += tq_step_litert_failure(graph, &graph->steps[k]) != NULL;
}

/* ---- one graph ---- */

static bool run(tq_graph_run *graph, session *s)
{
    tq_error error;
    if (!holds(s, tq_graph_allocate(graph, &error), &error))
        return false;
    for (int n = 0; n < 2; n++) {
        fill(graph, s);
        holds(s, tq_graph_invoke_range(graph, 0, graph->step_count, &error), &error);
        look(graph, s);
    }
    return true;
}

/* One input, to a shape of the same rank or another. */
static bool resize(tq_graph_run *graph, session *s)
{
    const uint32_t count = graph->subgraph.inputs.count;
    const int32_t index = count ? tq_vector_i32(&graph->subgraph.inputs, draw(s) % count) : -1;
    tq_error error;
    if (index < 0 || (uint32_t)index >= graph->tensor_count)
        return false;
    tq_shape shape = graph->tensors[index].shape;
    if (draw(s) % 8 == 0)
        shape.rank = (int32_t)(draw(s) % (TQ_DIMS + 1));
    for (int i = 0; i < TQ_DIMS; i++)
        if (i >= shape.rank)
            shape.dims[i] = 0;
        else if (draw(s) % 2)
            shape.dims[i] = draw(s) % 64 ? (int32_t)(draw(s) % 7) : INT32_MAX;
    return holds(s, tq_graph_resize(graph, (uint32_t)index, &shape, &error), &error);
}

static void use(tq_graph_run *graph, session *s)
{
    if (draw(s) % 8 == 0) /* before anything is allocated */
        resize(graph, s);
    if (!run(graph, s) || !resize(graph, s))
        return;
    look(graph, s);
    run(graph, s);
    tq_graph_reset_variables(graph);
}

/* ---- one input ---- */

static void run_model(const tq_model *model, tq_numerics numerics, uint64_t seed, fuzz_heap *heap)
{
    session s = {.draws = seed};
    const uint64_t how = draw(&s);
    const tq_allocator allocator = fuzz_allocator(heap);
    const tq_run_options options = {.numerics = numerics,
                                    .threads = 1 + how % 2,
                                    .preserve_all = how & 2,
                                    .profile = how & 4,
                                    .max_memory = MEMORY,
                                    .max_multiply_adds = how & 8 ? 1 << how / 16 % 24 : 0,
                                    .hooks = {.context = &s, .interrupted = interrupted}};
    tq_run *made = NULL;
    tq_error error;
    if (!holds(&s, tq_run_open(model, &options, &allocator, &made, &error), &error)) {
        PROMISE(!made);
        return;
    }
    for (uint32_t i = 0; i < made->graph_count && i < GRAPHS; i++)
        use(&made->graphs[i], &s);
    tq_run_close(made);
}

static void open_and_run(tq_bytes file, tq_numerics numerics, uint64_t seed, fuzz_heap *heap)
{
    const tq_allocator allocator = fuzz_allocator(heap);
    tq_model model;
    if (tq_model_open(file, &allocator, &model, NULL) == TQ_OK) {
        run_model(&model, numerics, seed, heap);
        PROMISE(tq_shared_is_empty(model.shared));
        tq_model_close(&model);
    }
    PROMISE(heap->live == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const tq_bytes file = {data, size};
    const uint64_t seed = seed_of(file);
    static bool chosen;
    if (!chosen)
        tq_kernels_choose(tq_cpu_detect(getenv("TQ_DISABLE_CPU")));
    chosen = true;
    for (int numerics = TQ_NUMERICS_REFERENCE; numerics <= TQ_NUMERICS_XNNPACK; numerics++) {
        fuzz_heap heap = {0, NEVER};
        open_and_run(file, (tq_numerics)numerics, seed, &heap);
        const long needed = NEVER - heap.until_failure;
        heap.until_failure = (long)(seed / 16 % (uint64_t)(needed ? needed : 1));
        if (seed % 16 == 1)
            open_and_run(file, (tq_numerics)numerics, seed, &heap);
    }
    return 0;
}
