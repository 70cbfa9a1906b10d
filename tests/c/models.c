/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs models on generated inputs, to compare machines: `models FILE...` prints a line for each, with a checksum of its
 * outputs, or the status with which it fails.
 */
#include <inttypes.h>
#include <math.h>

#include "check.h"

#include "base/cpu.h"
#include "kernels/kernels.h"
#include "runtime/run.h"

unsigned checks_made, checks_failed;

static tq_bytes read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        exit(2);
    const long size = ftell(file);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    rewind(file);
    if (!data || size < 0 || fread(data, 1, (size_t)size, file) != (size_t)size)
        exit(2);
    fclose(file);
    return (tq_bytes){data, (size_t)size};
}

/* Floats between -4 and 4, or small integers. */
static void fill(tq_tensor *tensor)
{
    const size_t size = tq_element_bytes(tensor->type);
    uint32_t state = 1;
    for (size_t i = 0; size && i < tensor->bytes / size; i++) {
        state = state * 1664525u + 1013904223u;
        const float real = (float)(state >> 8) * 0x1p-21f - 4;
        const int64_t whole = (int64_t)(state >> 24) % 100 - (size == 1 ? 50 : 0);
        if (tensor->type == TQ_TensorType_FLOAT32)
            memcpy((uint8_t *)tensor->data + i * size, &real, size);
        else if (tensor->type == TQ_TensorType_BOOL)
            ((uint8_t *)tensor->data)[i] = state >> 31;
        else if (size <= 8) /* the low bytes: models run on little-endian machines alone */
            memcpy((uint8_t *)tensor->data + i * size, &whole, size);
    }
}

static uint64_t add(uint64_t sum, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ data[i]) * UINT64_C(0x100000001B3);
    return sum;
}

/* The NaN of an invalid operation is negative on x86 and positive elsewhere: all NaNs count as one. */
static bool is_nan(const tq_tensor *tensor, const uint8_t *at)
{
    float real = 0;
    double wide = 0;
    if (tensor->type == TQ_TensorType_FLOAT32)
        memcpy(&real, at, sizeof real);
    else if (tensor->type == TQ_TensorType_FLOAT64)
        memcpy(&wide, at, sizeof wide);
    else if (tensor->type == TQ_TensorType_FLOAT16)
        return (at[1] & 0x7C) == 0x7C && ((at[1] & 3) || at[0]);
    else if (tensor->type == TQ_TensorType_BFLOAT16)
        return (at[1] & 0x7F) == 0x7F && (at[0] & 0x80) && (at[0] & 0x7F);
    return isnan(real) || isnan(wide);
}

static uint64_t digest(uint64_t sum, const tq_tensor *tensor)
{
    static const uint8_t nan[16] = {'N', 'a', 'N'};
    const size_t size = tq_element_bytes(tensor->type);
    const uint8_t *data = tensor->data;
    if (!data || !size || size > sizeof nan)
        return data ? add(sum, data, tensor->bytes) : sum;
    for (size_t i = 0; i + size <= tensor->bytes; i += size)
        sum = add(sum, is_nan(tensor, data + i) ? nan : data + i, size);
    return sum;
}

static tq_status run_graph(tq_graph_run *graph, uint64_t *sum, tq_error *error)
{
    const tq_subgraph *subgraph = &graph->subgraph;
    tq_status status = tq_graph_allocate(graph, error);
    if (status != TQ_OK)
        return status;
    for (uint32_t i = 0; i < subgraph->inputs.count; i++) {
        const int64_t at = tq_vector_i32(&subgraph->inputs, i);
        if (at >= 0 && at < graph->tensor_count && graph->tensors[at].data)
            fill(&graph->tensors[at]);
    }
    status = tq_graph_invoke_range(graph, 0, graph->step_count, error);
    for (uint32_t i = 0; status == TQ_OK && i < subgraph->outputs.count; i++) {
        const int64_t at = tq_vector_i32(&subgraph->outputs, i);
        if (at >= 0 && at < graph->tensor_count)
            *sum = digest(*sum, &graph->tensors[at]);
    }
    return status;
}

static tq_status run_model(const tq_model *model, tq_numerics numerics, uint64_t *sum, tq_error *error)
{
    const tq_run_options options = {.numerics = numerics, .threads = 2};
    tq_run *run;
    tq_status status = tq_run_open(model, &options, &tq_default_allocator, &run, error);
    if (status != TQ_OK)
        return status;
    status = run->graph_count ? run_graph(&run->graphs[0], sum, error) : TQ_OK;
    tq_run_close(run);
    return status;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int main(int argc, char **argv)
{
    tq_kernels_choose(tq_cpu_detect(getenv("TQ_DISABLE_CPU")));
    for (int i = 1; i < argc; i++) {
        const tq_bytes file = read_file(argv[i]);
        tq_model model;
        tq_error error = {0};
        tq_status status = tq_model_open(file, &tq_default_allocator, &model, &error);
        if (status != TQ_OK) {
            printf("%s %s\n", name_of(argv[i]), tq_status_name(status));
        } else {
            for (int n = TQ_NUMERICS_REFERENCE; n <= TQ_NUMERICS_XNNPACK; n++) {
                uint64_t sum = UINT64_C(0xCBF29CE484222325);
                status = run_model(&model, (tq_numerics)n, &sum, &error);
                printf("%s %d %s %016" PRIx64 "\n", name_of(argv[i]), n, tq_status_name(status), sum);
            }
            tq_model_close(&model);
        }
        free_copy(file);
    }
    return 0;
}
