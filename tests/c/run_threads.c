/* SPDX-License-Identifier: Apache-2.0
 *
 * Under a race detector: `run_threads FILE...` opens each model once; several threads open, allocate, run and close
 * runs of it at the same time, under each numerics, so that they make and share prepacked constants.  All threads must
 * give the same outputs, bit for bit.  Prints how many runs succeeded.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "kernels/kernels.h"
#include "runtime/run.h"

enum { THREADS = 4, RUNS = 3 };

typedef struct caller {
    const tq_model *model;
    tq_numerics numerics;
    uint64_t sums[RUNS];
    int ended_well;
} caller;

static tq_bytes read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        exit(2);
    const long size = ftell(file);
    uint8_t *data = size > 0 ? malloc((size_t)size) : NULL;
    rewind(file);
    if (!data || fread(data, 1, (size_t)size, file) != (size_t)size)
        exit(2);
    fclose(file);
    return (tq_bytes){data, (size_t)size};
}

static tq_tensor *tensor_at(tq_graph_run *graph, const tq_vector *indices, uint32_t i)
{
    const int32_t index = tq_vector_i32(indices, i);
    if (index < 0 || (uint32_t)index >= graph->tensor_count || !graph->tensors[index].data)
        exit(3);
    return &graph->tensors[index];
}

static tq_status run_graph(tq_graph_run *graph, uint64_t *sum)
{
    const tq_subgraph *subgraph = &graph->subgraph;
    tq_status status = tq_graph_allocate(graph, NULL);
    for (uint32_t i = 0; status == TQ_OK && i < subgraph->inputs.count; i++) {
        tq_tensor *input = tensor_at(graph, &subgraph->inputs, i);
        memset(input->data, 1, input->bytes);
    }
    if (status == TQ_OK)
        status = tq_graph_invoke_range(graph, 0, graph->step_count, NULL);
    for (uint32_t i = 0; status == TQ_OK && i < subgraph->outputs.count; i++) {
        const tq_tensor *output = tensor_at(graph, &subgraph->outputs, i);
        for (size_t k = 0; k < output->bytes; k++)
            *sum = (*sum ^ ((const uint8_t *)output->data)[k]) * UINT64_C(0x100000001B3);
    }
    return status;
}

static void *call(void *context)
{
    caller *c = context;
    const tq_run_options options = {.numerics = c->numerics, .threads = 2};
    for (int k = 0; k < RUNS; k++) {
        tq_run *run;
        c->sums[k] = UINT64_C(0xCBF29CE484222325);
        if (tq_run_open(c->model, &options, &tq_default_allocator, &run, NULL) != TQ_OK)
            continue;
        c->ended_well += run->graph_count && run_graph(&run->graphs[0], &c->sums[k]) == TQ_OK;
        tq_run_close(run);
    }
    return NULL;
}

static int race(const tq_model *model, tq_numerics numerics)
{
    caller callers[THREADS];
    pthread_t threads[THREADS];
    int ended_well = 0;
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (caller){.model = model, .numerics = numerics};
        if (pthread_create(&threads[i], NULL, call, &callers[i]) != 0)
            exit(4);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ended_well += callers[i].ended_well;
        if (memcmp(callers[i].sums, callers[0].sums, sizeof callers[0].sums) != 0)
            exit(5);
    }
    return ended_well;
}

int main(int argc, char **argv)
{
    int ended_well = 0;
    tq_kernels_choose(tq_cpu_detect(getenv("TQ_DISABLE_CPU")));
    for (int i = 1; i < argc; i++) {
        const tq_bytes file = read_file(argv[i]);
        tq_model model;
        if (tq_model_open(file, &tq_default_allocator, &model, NULL) != TQ_OK)
            return 6;
        for (int n = TQ_NUMERICS_REFERENCE; n <= TQ_NUMERICS_XNNPACK; n++)
            ended_well += race(&model, (tq_numerics)n);
        tq_model_close(&model);
        free((void *)(uintptr_t)file.data);
    }
    printf("%d runs\n", ended_well);
    return 0;
}
