/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fuzz targets share: everything of an open model is read, and memory is counted.
 */
#include "fuzz_model.h"

#include <stdio.h>
#include <stdlib.h>

#include "flatbuffer/flexbuffer.h"
#include "flatbuffer/verify.h"
#include "flatbuffer/writer.h"
#include "model/graph.h"
#include "model/quantization.h"
#include "model/sparsity.h"
#include "model/tensor.h"

void fuzz_broken(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, condition);
    abort();
}

/* ---- memory that is counted, and may run out ---- */

static void *heap_allocate(void *context, size_t size)
{
    fuzz_heap *h = context;
    if (h->until_failure-- <= 0)
        return NULL;
    void *memory = calloc(1, size);
    h->live += memory != NULL;
    return memory;
}

static void heap_release(void *context, void *memory)
{
    ((fuzz_heap *)context)->live -= memory != NULL;
    free(memory);
}

tq_allocator fuzz_allocator(fuzz_heap *heap)
{
    return (tq_allocator){.allocate = heap_allocate, .release = heap_release, .context = heap};
}

/* ---- everything of a model is read ---- */

/* An answer must reach somewhere, or the compiler drops the read behind it. */
typedef struct sink {
    uint64_t sum, steps;
} sink;

static void take(sink *s, uint64_t value)
{
    s->sum = (s->sum ^ value) * UINT64_C(0x9E3779B97F4A7C15);
}

/* Its bits; machines differ in those of NaN. */
static void take_float(sink *s, double value)
{
    uint64_t bits = 0;
    if (value == value)
        memcpy(&bits, &value, sizeof bits);
    take(s, bits);
}

static void take_value(sink *s, const tq_value *value)
{
    if (value->kind == TQ_VALUE_FLOAT)
        take_float(s, value->f);
    else
        take(s, value->u);
}

static void take_bytes(sink *s, tq_bytes bytes)
{
    take(s, bytes.size);
    PROMISE(bytes.data || !bytes.size);
    /* The ends tell whether the run lies inside; a stride keeps shared vectors cheap. */
    for (size_t i = 0; i < bytes.size; i += 1 + bytes.size / 64)
        take(s, bytes.data[i]);
    if (bytes.size)
        take(s, bytes.data[bytes.size - 1]);
}

static void take_name(sink *s, const char *name)
{
    for (; name && *name; name++)
        take(s, (unsigned char)*name);
}

/* ---- everything that the schema's rows reach ---- */

static void walk_table(sink *s, tq_table_id id, const tq_table *table);

/* Elements 0..63 and the last: enough to leave the vector if its bounds are wrong. */
static uint32_t next_index(uint32_t i, uint32_t count)
{
    return i < 63 || i + 2 >= count ? i + 1 : count - 1;
}

static void walk_scalars(sink *s, const tq_vector *vector, const tq_field *field)
{
    unsigned size = tq_scalar_size[field->scalar];
    take_bytes(s, tq_vector_bytes(vector, size));
    for (uint32_t i = 0; i < vector->count; i = next_index(i, vector->count)) {
        tq_value value = tq_load_scalar(vector->file.data + vector->at + (size_t)i * size, field->scalar);
        take_value(s, &value);
        if (field->scalar == TQ_I32)
            take(s, (uint64_t)tq_vector_i32(vector, i));
        if (field->scalar == TQ_I64)
            take(s, (uint64_t)tq_vector_i64(vector, i));
        if (field->scalar == TQ_F32)
            take_float(s, (double)tq_vector_f32(vector, i));
    }
    PROMISE(tq_vector_i32(vector, vector->count) == 0);
    PROMISE(tq_vector_i64(vector, SIZE_MAX) == 0);
}

static void walk_vector(sink *s, const tq_table *table, tq_field_id id)
{
    const tq_field *field = &tq_fields[id];
    tq_vector vector = tq_get_vector(table, id);
    take(s, vector.count);
    if (field->shape == TQ_SHAPE_VEC_SCALAR || field->shape == TQ_SHAPE_VEC_ENUM) {
        walk_scalars(s, &vector, field);
        return;
    }
    for (uint32_t i = 0; i < vector.count && s->steps; i++) {
        if (field->shape == TQ_SHAPE_VEC_TABLE) {
            tq_table element = tq_vector_table(&vector, i);
            walk_table(s, field->detail, &element);
        } else {
            s->steps--;
            take_bytes(s, tq_vector_string(&vector, i));
        }
    }
    PROMISE(tq_vector_table(&vector, vector.count).at == 0);
    PROMISE(tq_vector_string(&vector, vector.count).data == NULL);
}

static void walk_field(sink *s, const tq_table *table, tq_field_id id)
{
    const tq_field *field = &tq_fields[id];
    switch ((tq_field_shape)field->shape) {
    case TQ_SHAPE_ENUM: take_name(s, tq_enum_name(field->detail, tq_get_int(table, id))); break;
    case TQ_SHAPE_SCALAR: {
        tq_value value = tq_get_scalar(table, id);
        take_value(s, &value);
        break;
    }
    case TQ_SHAPE_STRING: take_bytes(s, tq_get_string(table, id)); break;
    case TQ_SHAPE_TABLE: {
        tq_table inner = tq_get_table(table, id);
        walk_table(s, field->detail, &inner);
        break;
    }
    case TQ_SHAPE_UNION: {
        tq_union inner = tq_get_union(table, id);
        tq_table_id member = tq_union_member(field->detail, inner.type);
        take(s, inner.type);
        take_name(s, tq_union_name(field->detail));
        if (member != TQ_TABLE_NONE)
            walk_table(s, member, &inner.value);
        break;
    }
    default: walk_vector(s, table, id);
    }
}

static void walk_table(sink *s, tq_table_id id, const tq_table *table)
{
    if (!s->steps || !table->at)
        return;
    s->steps--;
    take_name(s, tq_tables[id].name);
    for (unsigned i = tq_tables[id].first; i < tq_tables[id + 1].first; i++)
        walk_field(s, table, i);
}

/* ---- the views of src/model ---- */

static void walk_packed(sink *s, const tq_table *tensor, tq_bytes bytes)
{
    const tq_type_row *type = tq_type(tq_get_int(tensor, TQ_Tensor_type));
    uint64_t needed;
    if (!type || tq_tensor_size(tensor, &needed, NULL) != TQ_OK)
        return;
    take(s, needed);
    if ((type->bits == 4 || type->bits == 2) && bytes.size) {
        uint8_t values[256];
        uint64_t count = bytes.size * 8 / type->bits;
        tq_unpack_bits(bytes.data, type->bits, type->low < 0, count < 256 ? count : 256, values);
        take(s, values[0]);
    }
}

static void walk_strings(sink *s, tq_bytes bytes)
{
    tq_strings strings;
    tq_error error;
    if (tq_strings_open(bytes, &strings, &error) != TQ_OK) {
        PROMISE(error.status == TQ_BAD_STRINGS);
        return;
    }
    for (uint32_t i = 0; i < strings.count && s->steps; i++, s->steps--)
        take_bytes(s, tq_strings_item(&strings, i));
    PROMISE(tq_strings_item(&strings, strings.count).data == NULL);
}

static void walk_quantization(sink *s, const tq_table *tensor)
{
    tq_quantization q = tq_tensor_quantization(tensor);
    PROMISE((unsigned)q.kind < TQ_QUANTIZATION_KIND_COUNT);
    take_name(s, tq_quantization_kind_name(q.kind));
    take(s, q.scale.count + q.zero_point.count + q.min.count + q.max.count);
    take(s, (uint64_t)q.scales_tensor ^ (uint64_t)q.zero_points_tensor ^ (uint64_t)q.block_size);
    take(s, q.quantized_dimensions.count);
    take_bytes(s, q.custom);
}

/* A dense form of at most this many bytes is written: shapes in a file may name any size. */
enum { LARGEST_DENSE = 1 << 16 };

static void walk_sparsity(sink *s, const tq_table *tensor, tq_bytes stored)
{
    tq_sparsity sparsity;
    tq_error error;
    uint64_t size;
    tq_status status = tq_sparsity_open(tensor, &sparsity, &error);
    if (status != TQ_OK) {
        PROMISE(status == TQ_BAD_SPARSITY || status == TQ_BAD_SHAPE);
        return;
    }
    take(s, sparsity.dense_count + sparsity.stored_count);
    if (tq_tensor_size(tensor, &size, NULL) != TQ_OK || size > LARGEST_DENSE)
        return;
    uint8_t *dense = calloc(1, size ? size : 1);
    PROMISE(dense);
    if (tq_tensor_densify(tensor, stored, dense, size, NULL) == TQ_OK)
        take_bytes(s, (tq_bytes){dense, size});
    free(dense);
}

static void walk_tensor(sink *s, const tq_model *model, const tq_table *tensor)
{
    tq_bytes bytes = {NULL, 0};
    tq_error error;
    if (tq_tensor_bytes(model, tensor, &bytes, &error) == TQ_OK)
        take_bytes(s, bytes);
    else
        take(s, error.status);
    take(s, tq_tensor_is_constant(model, tensor));
    walk_packed(s, tensor, bytes);
    if (bytes.data)
        walk_strings(s, bytes); /* of any type: the more bytes, the better */
    walk_quantization(s, tensor);
    walk_sparsity(s, tensor, bytes);
    tq_table external = tq_model_external_buffer(model, tq_get_int(tensor, TQ_Tensor_external_buffer));
    walk_table(s, TQ_TABLE_ExternalBuffer, &external);
}

static void walk_flex(sink *s, tq_flex_reader *reader, const tq_flex *value)
{
    take(s, value->kind);
    if (value->kind == TQ_FLEX_KEY || value->kind == TQ_FLEX_STRING || value->kind == TQ_FLEX_BLOB) {
        take_bytes(s, tq_flex_bytes(reader, value));
    } else if (value->kind != TQ_FLEX_VECTOR && value->kind != TQ_FLEX_MAP) {
        tq_value number = tq_flex_scalar(reader, value);
        take_value(s, &number);
    } else {
        for (uint64_t i = 0; i < value->count; i++) {
            tq_flex item;
            tq_bytes key;
            if (value->kind == TQ_FLEX_MAP && tq_flex_map_key(reader, value, i, &key) == TQ_OK)
                take_bytes(s, key);
            if (tq_flex_item(reader, value, i, &item) != TQ_OK)
                return;
            walk_flex(s, reader, &item);
        }
    }
}

static void walk_custom_options(sink *s, tq_bytes bytes)
{
    tq_flex_reader reader;
    tq_flex root;
    tq_error error;
    take_bytes(s, bytes);
    take(s, tq_flex_is_options(bytes));
    if (tq_flex_open(bytes, &reader, &root, &error) == TQ_OK)
        walk_flex(s, &reader, &root);
    else
        PROMISE(error.status == TQ_BAD_FLEXBUFFER);
}

static void walk_operator(sink *s, const tq_model *model, const tq_subgraph *subgraph, uint32_t index)
{
    tq_operator op = tq_model_operator(model, subgraph, index);
    tq_options options = tq_operator_options(&op);
    tq_bytes custom;
    const tq_builtin_row *row = tq_builtin(op.code);
    take_name(s, row ? row->name : "?");
    take_bytes(s, op.custom_name);
    take(s, (uint64_t)op.version);
    if (options.id != TQ_TABLE_NONE)
        walk_table(s, options.id, &options.table);
    if (tq_operator_custom_options(&op, &custom, NULL) == TQ_OK)
        walk_custom_options(s, custom);
}

static void walk_graph(sink *s, const tq_subgraph *subgraph)
{
    tq_graph graph;
    tq_error error;
    tq_status status = tq_graph_build(subgraph, &tq_default_allocator, &graph, &error);
    if (status != TQ_OK) {
        PROMISE(status == TQ_NO_MEMORY || status == TQ_BYTE_BUDGET);
        return;
    }
    for (uint32_t i = 0; i < graph.tensor_count; i++) {
        uint32_t count;
        const uint32_t *consumers = tq_graph_consumers(&graph, i, &count);
        for (uint32_t j = 0; j < count; j++)
            take(s, consumers[j]);
        take(s, (uint64_t)tq_graph_producer(&graph, i));
    }
    PROMISE(tq_graph_producer(&graph, -1) == -1 && tq_graph_producer(&graph, graph.tensor_count) == -1);
    tq_graph_free(&graph);
}

static void walk_subgraph(sink *s, const tq_model *model, uint32_t index)
{
    tq_subgraph subgraph = tq_model_subgraph(model, index);
    take(s, subgraph.inputs.count + subgraph.outputs.count);
    for (uint32_t i = 0; i < subgraph.tensors.count && s->steps; i++, s->steps--) {
        tq_table tensor = tq_vector_table(&subgraph.tensors, i);
        walk_tensor(s, model, &tensor);
    }
    for (uint32_t i = 0; i < subgraph.operators.count && s->steps; i++, s->steps--)
        walk_operator(s, model, &subgraph, i);
    PROMISE(tq_model_operator(model, &subgraph, subgraph.operators.count).code == -1);
    walk_graph(s, &subgraph);
}

uint64_t fuzz_walk(const tq_model *model, uint64_t steps)
{
    sink s = {0, steps};
    take(&s, tq_model_has_identifier(model));
    walk_table(&s, TQ_TABLE_Model, &model->root);
    s.steps = steps;
    for (uint32_t i = 0; i < model->subgraphs.count && s.steps; i++, s.steps--)
        walk_subgraph(&s, model, i);
    for (uint32_t i = 0; i < model->buffers.count && s.steps; i++, s.steps--) {
        tq_bytes bytes;
        if (tq_model_buffer(model, i, &bytes, NULL) == TQ_OK)
            take_bytes(&s, bytes);
    }
    PROMISE(tq_model_subgraph(model, model->subgraphs.count).table.at == 0);
    return s.sum;
}
