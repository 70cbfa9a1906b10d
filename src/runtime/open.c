/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a run: an instance of every subgraph, with the file's constants.  Errors of tensors and operators are
 * reported when their subgraph is allocated.
 */
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "model/quantization.h"
#include "model/sparsity.h"
#include "model/tensor.h"
#include "ops/check.h"
#include "runtime/operators.h"
#include "runtime/resources.h"
#include "runtime/begin.h"
#include "runtime/run.h"

/* ---- tensors ---- */

static tq_status read_shape(const tq_table *table, tq_shape *shape, tq_error *error)
{
    tq_vector dims = tq_get_vector(table, TQ_Tensor_shape);
    uint64_t count;
    TQ_TRY(tq_shape_count(&dims, &count, error));
    if (dims.count > TQ_DIMS)
        return tq_fail(error, TQ_UNSUPPORTED, TQ_NO_OFFSET, "has %u dimensions; tq runs tensors of up to %d",
                       dims.count, TQ_DIMS);
    *shape = (tq_shape){.rank = (int32_t)dims.count};
    for (uint32_t i = 0; i < dims.count; i++)
        shape->dims[i] = tq_vector_i32(&dims, i);
    return TQ_OK;
}

/* The axis of `count` scales: the file's or, where that does not fit (some converters' biases), the only dimension of
   that size.  -1: none.  A tensor without dimensions may get them later, and has the file's axis. */
static int32_t scale_axis(const tq_shape *shape, int32_t axis, uint32_t count)
{
    if (shape->rank == 0)
        return axis >= 0 && axis < TQ_DIMS ? axis : -1;
    if (axis >= 0 && axis < shape->rank && (uint32_t)shape->dims[axis] == count)
        return axis;
    int32_t found = -1;
    for (int32_t i = 0; i < shape->rank; i++)
        if ((uint32_t)shape->dims[i] == count)
            found = found == -1 ? i : -2;
    return found < 0 ? -1 : found;
}

static void load_scales(const uint8_t *restrict stored, size_t count, float *restrict out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = tq_load_f32(stored + i * sizeof *out);
}

/* One zero point for all scales, or one each; cut to 32 bits, as LiteRT does. */
static void load_zero_points(const uint8_t *restrict stored, size_t stored_count, size_t count, int32_t *restrict out)
{
    if (stored_count == 1) {
        const int32_t all = (int32_t)tq_load_u32(stored);
        for (size_t i = 0; i < count; i++)
            out[i] = all;
        return;
    }
    for (size_t i = 0; i < count; i++)
        out[i] = (int32_t)(uint32_t)tq_load_u64(stored + i * sizeof(int64_t));
}

/* Scales that do not fit the tensor are ignored; an operator that needs scales then fails. */
static tq_status read_quantization(tq_graph_run *graph, tq_tensor *tensor, tq_error *error)
{
    tq_quantization q = tq_tensor_quantization(&tensor->table);
    tq_affine *affine = &tensor->quantization;
    affine->block_scales = affine->block_zero_points = -1;
    if (q.kind == TQ_QUANTIZATION_BLOCKWISE) {
        affine->block_size = q.block_size;
        affine->block_scales = q.scales_tensor;
        affine->block_zero_points = q.zero_points_tensor;
    }
    uint32_t count = q.scale.count;
    int32_t axis = count == 1 ? 0 : scale_axis(&tensor->shape, q.quantized_dimension, count);
    if (count == 0 || axis < 0 || (q.zero_point.count != count && q.zero_point.count != 1))
        return TQ_OK;
    float *scale;
    int32_t *zero_point;
    TQ_TRY(tq_blocks_cut(&graph->memory, graph->run->pool, count, sizeof *scale + sizeof *zero_point, &scale, error));
    zero_point = (int32_t *)(void *)(scale + count);
    const uint8_t *scales = tq_vector_bytes(&q.scale, sizeof *scale).data;
    const uint8_t *zero_points = tq_vector_bytes(&q.zero_point, sizeof(int64_t)).data;
    load_scales(scales, count, scale);
    load_zero_points(zero_points, q.zero_point.count, count, zero_point);
    affine->count = count;
    affine->axis = axis;
    affine->scale = scale;
    affine->zero_point = zero_point;
    return TQ_OK;
}

/* ---- constants ---- */

static tq_status external_bytes(tq_graph_run *graph, int64_t external, tq_bytes *out, tq_error *error)
{
    const tq_run_hooks *hooks = &graph->run->options.hooks;
    if (!hooks->external)
        return tq_fail(error, TQ_UNSUPPORTED, TQ_NO_OFFSET, "lies in a file beside the model");
    return hooks->external(hooks->context, external, out, error);
}

static tq_status made(const tq_graph_run *graph, const tq_tensor *tensor, tq_status status)
{
    tq_shared_end(graph->slots[tensor->index].cached, status == TQ_OK);
    return status;
}

static tq_status load_copy(tq_graph_run *graph, const tq_tensor *tensor, const void *stored, size_t size,
                           tq_error *error)
{
    bool make;
    TQ_TRY(tq_slot_find_cached(graph, tensor->index, stored, size, &make, error));
    if (!make)
        return TQ_OK;
    memcpy(tensor->data, stored, size);
    return made(graph, tensor, TQ_OK);
}

static tq_status load_bits(tq_graph_run *graph, const tq_tensor *tensor, const void *stored, const tq_type_row *type,
                           tq_error *error)
{
    const uint64_t count = tq_tensor_count(tensor);
    bool make;
    TQ_TRY(tq_slot_find_cached(graph, tensor->index, stored, count, &make, error));
    if (!make)
        return TQ_OK;
    tq_unpack_bits(stored, type->bits, type->low < 0, count, tensor->data);
    return made(graph, tensor, TQ_OK);
}

static tq_status load_sparse(tq_graph_run *graph, tq_tensor *tensor, tq_bytes stored, uint64_t size, bool as_stored,
                             tq_error *error)
{
    if (as_stored) {
        tensor->packed = true;
        tensor->data = (void *)stored.data;
        tensor->bytes = stored.size;
        return tq_tensor_densify_check(&tensor->table, stored, error);
    }
    bool make;
    TQ_TRY(tq_slot_find_cached(graph, tensor->index, stored.data, size, &make, error));
    return make ? made(graph, tensor, tq_tensor_densify(&tensor->table, stored, tensor->data, size, error)) : TQ_OK;
}

static tq_status load_strings(tq_graph_run *graph, tq_tensor *tensor, tq_bytes stored, tq_error *error)
{
    tq_strings strings;
    TQ_TRY(tq_strings_open(stored, &strings, error));
    if (strings.count != tq_tensor_count(tensor))
        return tq_fail(error, TQ_BAD_STRINGS, TQ_NO_OFFSET, "%u strings for a shape of %llu elements", strings.count,
                       (unsigned long long)tq_tensor_count(tensor));
    return load_copy(graph, tensor, stored.data, stored.size, error);
}

/* Makes a constant of the tensor, if the file has data for it. */
static tq_status load_constant(tq_graph_run *graph, tq_tensor *tensor, bool as_stored, tq_error *error)
{
    const int64_t external = tq_get_int(&tensor->table, TQ_Tensor_external_buffer);
    tq_bytes stored = {NULL, 0};
    if (!external && (tq_tensor_bytes(graph->run->model, &tensor->table, &stored, NULL) != TQ_OK || !stored.data))
        return TQ_OK;
    const tq_type_row *type = tq_type(tensor->type);
    if (!type || type->kind == TQ_KIND_OPAQUE)
        return TQ_OK;
    if (external)
        TQ_TRY(external_bytes(graph, external, &stored, error));
    tensor->storage = TQ_STORAGE_CONSTANT;
    if (type->kind == TQ_KIND_STRING)
        return load_strings(graph, tensor, stored, error);

    uint64_t size;
    TQ_TRY(tq_tensor_size(&tensor->table, &size, error));
    if (tq_get_table(&tensor->table, TQ_Tensor_sparsity).at)
        return load_sparse(graph, tensor, stored, size, as_stored, error);
    if (stored.size < size)
        return tq_fail(error, TQ_DATA_SIZE, TQ_NO_OFFSET, "has %llu bytes of data; its shape and type need %llu",
                       (unsigned long long)stored.size, (unsigned long long)size);
    if (type->bits < 8 && !as_stored)
        return load_bits(graph, tensor, stored.data, type, error);
    tensor->packed = type->bits < 8;
    if ((uintptr_t)stored.data % tq_element_bytes(tensor->type) == 0) {
        tensor->data = (void *)stored.data; /* no operator writes to a constant */
        tensor->bytes = (size_t)size;
        return TQ_OK;
    }
    return load_copy(graph, tensor, stored.data, (size_t)size, error);
}

/* ---- a subgraph ---- */

static tq_status report_tensor(tq_graph_run *graph, const tq_tensor *tensor, const tq_error *error)
{
    char text[400];
    tq_bytes name = tq_get_string(&tensor->table, TQ_Tensor_name);
    snprintf(text, sizeof text, "tensor %u '%.*s': %s", tensor->index, name.size > 80 ? 80 : (int)name.size,
             name.data ? (const char *)name.data : "", error->text);
    tq_run_report(graph->run, text);
    return TQ_OK;
}

static tq_status open_tensor(tq_graph_run *graph, uint32_t i, bool as_stored, tq_error *error)
{
    tq_tensor *tensor = &graph->tensors[i];
    tq_slot *slot = &graph->slots[i];
    tq_error problem = {0};
    tensor->table = tq_vector_table(&graph->subgraph.tensors, i);
    tensor->index = i;
    tensor->type = (int32_t)tq_get_int(&tensor->table, TQ_Tensor_type);
    tensor->storage = tq_get_int(&tensor->table, TQ_Tensor_is_variable) ? TQ_STORAGE_VARIABLE : TQ_STORAGE_ARENA;
    slot->producer = -1;
    tq_status status = read_shape(&tensor->table, &tensor->shape, &problem);
    if (status == TQ_OK)
        status = read_quantization(graph, tensor, &problem);
    if (status == TQ_OK)
        status = load_constant(graph, tensor, as_stored, &problem);
    if (status == TQ_OK) {
        slot->file_constant = tensor->in_file = tq_is_constant(tensor);
        return TQ_OK;
    }
    if (tq_ends_the_pass(status)) {
        if (error)
            *error = problem;
        return status;
    }
    slot->broken = true;
    slot->problem = true;
    return report_tensor(graph, tensor, &problem);
}

/* marks[i] is 1 for a constant that all its readers read in the file's packed form; bit 2: another operator or a caller
   reads it too. */
static tq_status mark_packed(tq_graph_run *graph, uint8_t *marks, tq_error *error)
{
    for (uint32_t k = 0; k < graph->step_count; k++) {
        TQ_TRY(tq_run_poll(graph->run, error));
        const tq_step *step = &graph->steps[k];
        tq_vector inputs = tq_get_vector(&step->node.row.table, TQ_Operator_inputs);
        const int flags = step->node.op ? step->node.op->flags : 0;
        for (uint32_t i = 0; i < inputs.count; i++) {
            int32_t tensor = tq_vector_i32(&inputs, i);
            if (tensor < 0 || (uint32_t)tensor >= graph->tensor_count)
                continue;
            tq_table table = tq_vector_table(&graph->subgraph.tensors, (uint32_t)tensor);
            bool sparse = tq_get_table(&table, TQ_Tensor_sparsity).at;
            marks[tensor] |= flags & (sparse ? TQ_OP_SPARSE : TQ_OP_PACKED) ? 1 : 2;
        }
    }
    for (uint32_t i = 0; i < graph->subgraph.outputs.count; i++) {
        int32_t tensor = tq_vector_i32(&graph->subgraph.outputs, i);
        if (tensor >= 0 && (uint32_t)tensor < graph->tensor_count)
            marks[tensor] |= 2;
    }
    return TQ_OK;
}

static void find_operator(tq_graph_run *graph, uint32_t k)
{
    tq_run *run = graph->run;
    tq_step *step = &graph->steps[k];
    tq_node *node = &step->node;
    node->row = tq_model_operator(run->model, &graph->subgraph, k);
    node->options = tq_operator_options(&node->row);
    node->index = k;
    node->host = &graph->host;
    node->threads = run->options.threads;
    if (node->row.code != TQ_BuiltinOperator_CUSTOM) {
        node->op = tq_op_find(node->row.code);
        return;
    }
    const tq_run_hooks *hooks = &run->options.hooks;
    if (hooks->custom_op)
        node->op = hooks->custom_op(hooks->context, node->row.custom_name);
    if (!node->op)
        node->op = tq_custom_op_find(node->row.custom_name);
}

/* Sets `operands` to the tensors of `indices`; -1: NULL.  False: an index is out of range. */
static bool bind(tq_graph_run *graph, const tq_vector *indices, tq_tensor **operands)
{
    bool sound = true;
    for (uint32_t i = 0; i < indices->count; i++) {
        int32_t tensor = tq_vector_i32(indices, i);
        bool exists = tensor >= 0 && (uint32_t)tensor < graph->tensor_count;
        operands[i] = exists ? &graph->tensors[tensor] : NULL;
        sound &= exists || tensor == -1;
    }
    return sound;
}

static tq_status open_steps(tq_graph_run *graph, tq_error *error)
{
    uint64_t total = 0;
    for (uint32_t k = 0; k < graph->step_count; k++) {
        TQ_TRY(tq_run_poll(graph->run, error));
        find_operator(graph, k);
        const tq_table *row = &graph->steps[k].node.row.table;
        total += (uint64_t)tq_get_vector(row, TQ_Operator_inputs).count + tq_get_vector(row, TQ_Operator_outputs).count;
    }
    TQ_TRY(tq_blocks_add(&graph->memory, graph->run->pool, total, sizeof *graph->operands, &graph->operands, error));
    tq_tensor **next = graph->operands;
    for (uint32_t k = 0; k < graph->step_count; k++) {
        TQ_TRY(tq_run_poll(graph->run, error));
        tq_node *node = &graph->steps[k].node;
        tq_vector inputs = tq_get_vector(&node->row.table, TQ_Operator_inputs);
        tq_vector outputs = tq_get_vector(&node->row.table, TQ_Operator_outputs);
        node->in_count = (int)inputs.count;
        node->out_count = (int)outputs.count;
        node->in = next;
        node->out = next + inputs.count;
        next += (size_t)inputs.count + outputs.count;
        if (!bind(graph, &inputs, node->in) || !bind(graph, &outputs, node->out))
            graph->steps[k].unbound = true;
    }
    return TQ_OK;
}

/* Whether the caller registered the operator, which then has no arity here. */
static bool is_registered(const tq_node *node)
{
    return node->op && node->op->context;
}

/* Sets wrong_operands; prepare reports the reason. */
static tq_status mark_wrong_operands(tq_graph_run *graph, tq_error *error)
{
    for (uint32_t k = 0; k < graph->step_count; k++) {
        TQ_TRY(tq_run_poll(graph->run, error));
        tq_node *node = &graph->steps[k].node;
        bool fits = is_registered(node) || tq_check_operands(node, NULL) == TQ_OK;
        node->wrong_operands = graph->steps[k].unbound || !fits;
    }
    return TQ_OK;
}

static tq_status open_graph(tq_run *run, uint32_t index, tq_error *error)
{
    tq_graph_run *graph = &run->graphs[index];
    graph->run = run;
    graph->index = index;
    graph->subgraph = tq_model_subgraph(run->model, index);
    graph->tensor_count = graph->subgraph.tensors.count;
    graph->step_count = graph->subgraph.operators.count;
    uint8_t *marks;
    TQ_TRY(tq_run_poll(run, error));
    TQ_TRY(
        tq_blocks_add(&graph->memory, run->pool, graph->tensor_count, sizeof *graph->tensors, &graph->tensors, error));
    graph->host = (tq_host){.model = run->model,
                            .tensors = graph->tensors,
                            .tensor_count = graph->tensor_count,
                            .pool = run->pool,
                            .shape_changes = 1};
    TQ_TRY(tq_blocks_add(&graph->memory, run->pool, graph->tensor_count, sizeof *graph->slots, &graph->slots, error));
    TQ_TRY(tq_blocks_add(&graph->memory, run->pool, graph->tensor_count, 1, &marks, error));
    TQ_TRY(tq_blocks_add(&graph->memory, run->pool, graph->step_count, sizeof *graph->steps, &graph->steps, error));
    TQ_TRY(open_steps(graph, error));
    TQ_TRY(mark_wrong_operands(graph, error));
    TQ_TRY(mark_packed(graph, marks, error));
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        TQ_TRY(tq_run_poll(graph->run, error));
        TQ_TRY(open_tensor(graph, i, marks[i] == 1, error));
    }
    return tq_graph_choose_backends(graph, error);
}

/* ---- the run ---- */

tq_status tq_run_open(const tq_model *model, const tq_run_options *options, const tq_allocator *allocator, tq_run **out,
                      tq_error *error)
{
    tq_pool *pool;
    tq_block *memory = NULL;
    tq_run *run;
    TQ_TRY(tq_cpu_check_byte_order(TQ_IS_BIG_ENDIAN, error));
    TQ_TRY(tq_pool_open(allocator, options->max_memory, &pool, error));
    tq_status status = tq_blocks_add(&memory, pool, 1, sizeof *run, &run, error);
    if (status != TQ_OK) {
        tq_pool_close(pool);
        return status;
    }
    *run = (tq_run){.model = model, .options = *options, .pool = pool, .memory = memory};
    run->stop.ask = options->hooks.interrupted;
    run->stop.context = options->hooks.context;
    uint32_t count = model->subgraphs.count;
    status = tq_blocks_add(&run->memory, pool, count, sizeof *run->graphs, &run->graphs, error);
    for (; status == TQ_OK && run->graph_count < count; run->graph_count++)
        status = open_graph(run, run->graph_count, error);
    if (status == TQ_OK)
        status = tq_resources_open(run, &run->resources, error);
    if (status != TQ_OK) {
        /* the failed graph may hold shared items, too */
        run->graph_count += run->graph_count < count && run->graphs && run->graphs[run->graph_count].run ? 1 : 0;
        tq_run_close(run);
        return status;
    }
    run->report_base = run->report_size;
    *out = run;
    return TQ_OK;
}

static void close_graph(tq_graph_run *graph)
{
    for (uint32_t k = 0; graph->steps && k < graph->step_count; k++) {
        tq_blocks_release(&graph->steps[k].node.memory);
        tq_block_release(graph->steps[k].node.own_scratch);
        tq_step_drop_cached(graph, &graph->steps[k], false);
    }
    for (uint32_t i = 0; graph->slots && i < graph->tensor_count; i++) {
        tq_block_release(graph->tensors[i].block);
        tq_shared_drop(graph->run->model->shared, graph->slots[i].cached);
    }
    tq_block_release(graph->arena);
    tq_blocks_release(&graph->host.prepared);
    tq_blocks_release(&graph->memory);
}

void tq_run_close(tq_run *run)
{
    if (!run)
        return;
    for (uint32_t i = 0; i < run->graph_count; i++)
        close_graph(&run->graphs[i]);
    tq_resources_close(run->resources);
    tq_pool *pool = run->pool;
    tq_block *memory = run->memory; /* holds *run itself */
    tq_blocks_release(&memory);
    tq_pool_close(pool);
}
