/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flatbuffer/verify.h"
#include "model/filetypes.h"

static int compare_u64(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Ids are not indices.  Without this index, each search would read all buffers, and a walk over tensors would be
   quadratic. */
static tq_status index_external_buffers(tq_model *model, tq_error *error)
{
    size_t count = model->external_buffers.count;
    if (!count)
        return TQ_OK;
    tq_status status =
        tq_allocate(&model->allocator, count, sizeof *model->external_index, &model->external_index, error);
    if (status != TQ_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        tq_table buffer = tq_vector_table(&model->external_buffers, i);
        model->external_index[i] = (uint64_t)tq_get_int(&buffer, TQ_ExternalBuffer_id) << 32 | i;
    }
    qsort(model->external_index, count, sizeof *model->external_index, compare_u64);
    return TQ_OK;
}

/* Adds to a refusal's text what the file is in place of a model. */
static void name_filetype(tq_bytes file, tq_error *error)
{
    const char *found = tq_filetype(file);
    if (!found || !error)
        return;
    const size_t length = strlen(error->text);
    snprintf(error->text + length, sizeof error->text - length, "; this is %s, not a TFLite model", found);
}

tq_status tq_model_open(tq_bytes file, const tq_allocator *allocator, tq_model *model, tq_error *error)
{
    tq_table root;
    tq_status status = tq_verify(file, TQ_TABLE_Model, NULL, &root, error);
    if (status != TQ_OK) {
        name_filetype(file, error);
        return status;
    }
    tq_model opened = {
        .file = file,
        .root = root,
        .operator_codes = tq_get_vector(&root, TQ_Model_operator_codes),
        .subgraphs = tq_get_vector(&root, TQ_Model_subgraphs),
        .buffers = tq_get_vector(&root, TQ_Model_buffers),
        .metadata = tq_get_vector(&root, TQ_Model_metadata),
        .signatures = tq_get_vector(&root, TQ_Model_signature_defs),
        .external_groups = tq_get_vector(&root, TQ_Model_external_buffer_groups),
        .external_buffers = tq_get_vector(&root, TQ_Model_external_buffers),
        .allocator = *allocator,
    };
    status = index_external_buffers(&opened, error);
    if (status == TQ_OK)
        status = tq_shared_open(allocator, &opened.shared, error);
    if (status == TQ_OK)
        *model = opened;
    else
        tq_release(allocator, opened.external_index);
    return status;
}

void tq_model_close(tq_model *model)
{
    tq_shared_close(model->shared);
    model->shared = NULL;
    tq_release(&model->allocator, model->external_index);
    model->external_index = NULL;
}

bool tq_model_has_identifier(const tq_model *model)
{
    return memcmp(model->file.data + 4, TQ_MODEL_IDENTIFIER, 4) == 0; /* the verifier requires 8 bytes */
}

tq_subgraph tq_model_subgraph(const tq_model *model, size_t index)
{
    tq_table table = tq_vector_table(&model->subgraphs, index);
    return (tq_subgraph){
        .table = table,
        .tensors = tq_get_vector(&table, TQ_SubGraph_tensors),
        .operators = tq_get_vector(&table, TQ_SubGraph_operators),
        .inputs = tq_get_vector(&table, TQ_SubGraph_inputs),
        .outputs = tq_get_vector(&table, TQ_SubGraph_outputs),
    };
}

int64_t tq_operator_code_builtin(const tq_table *operator_code)
{
    int64_t old = tq_get_int(operator_code, TQ_OperatorCode_deprecated_builtin_code);
    int64_t new = tq_get_int(operator_code, TQ_OperatorCode_builtin_code);
    return old > new ? old : new;
}

tq_operator tq_model_operator(const tq_model *model, const tq_subgraph *subgraph, size_t index)
{
    tq_operator op = {.table = tq_vector_table(&subgraph->operators, index), .code = -1, .version = 1};
    tq_table code = tq_vector_table(&model->operator_codes, (size_t)tq_get_int(&op.table, TQ_Operator_opcode_index));
    if (op.table.at && code.at) {
        op.code = tq_operator_code_builtin(&code);
        op.version = (int32_t)tq_get_int(&code, TQ_OperatorCode_version);
        if (op.code == TQ_BuiltinOperator_CUSTOM)
            op.custom_name = tq_get_string(&code, TQ_OperatorCode_custom_code);
    }
    return op;
}

const tq_option_union tq_option_unions[TQ_OPTION_UNIONS] = {
    {TQ_Operator_builtin_options, TQ_UNION_BuiltinOptions},
    {TQ_Operator_builtin_options_2, TQ_UNION_BuiltinOptions2},
};

tq_options tq_operator_options(const tq_operator *op)
{
    for (int i = 0; i < TQ_OPTION_UNIONS; i++) {
        tq_union options = tq_get_union(&op->table, tq_option_unions[i].field);
        tq_table_id id = tq_union_member(tq_option_unions[i].members, options.type);
        if (id != TQ_TABLE_NONE && options.value.at)
            return (tq_options){id, options.value};
    }
    return (tq_options){.id = TQ_TABLE_NONE};
}

/* Bytes that the file holds outside the flatbuffer. */
static tq_status outside_bytes(tq_bytes file, uint64_t offset, uint64_t size, tq_bytes *out, tq_error *error)
{
    if (!tq_bytes_hold(file, offset, size))
        return tq_fail(error, TQ_DATA_RANGE, offset, "%llu bytes pass the end of the file (%llu bytes)",
                       (unsigned long long)size, (unsigned long long)file.size);
    *out = (tq_bytes){file.data + offset, (size_t)size};
    return TQ_OK;
}

tq_status tq_operator_custom_options(const tq_operator *op, tq_bytes *out, tq_error *error)
{
    uint64_t offset = tq_get_u64(&op->table, TQ_Operator_large_custom_options_offset);
    if (offset >= TQ_FIRST_OUTSIDE_OFFSET) {
        uint64_t size = tq_get_u64(&op->table, TQ_Operator_large_custom_options_size);
        return outside_bytes(op->table.file, offset, size, out, error);
    }
    tq_vector vector = tq_get_vector(&op->table, TQ_Operator_custom_options);
    *out = tq_vector_bytes(&vector, 1);
    return TQ_OK;
}

/* Buffer.data, which the verifier did not check. */
static tq_status inside_bytes(const tq_table *buffer, size_t field_at, tq_bytes *out, tq_error *error)
{
    size_t at;
    tq_vector vector;
    tq_status status = tq_offset_follow(buffer->file, field_at, &at, error);
    if (status == TQ_OK)
        status = tq_vector_find(buffer->file, at, 1, &vector, error);
    if (status == TQ_OK)
        *out = tq_vector_bytes(&vector, 1);
    return status;
}

tq_status tq_model_buffer(const tq_model *model, uint64_t index, tq_bytes *out, tq_error *error)
{
    size_t at;
    tq_table buffer;
    if (index >= model->buffers.count) {
        *out = (tq_bytes){NULL, 0};
        return TQ_OK;
    }
    tq_status status = tq_offset_follow(model->file, model->buffers.at + 4 * (size_t)index, &at, error);
    if (status == TQ_OK)
        status = tq_table_find(model->file, at, &buffer, error);
    if (status != TQ_OK)
        return status;
    size_t data_at = tq_slot_at(&buffer, tq_fields[TQ_Buffer_data].slot);
    uint64_t offset = tq_get_u64(&buffer, TQ_Buffer_offset);
    if (data_at)
        return inside_bytes(&buffer, data_at, out, error);
    if (offset >= TQ_FIRST_OUTSIDE_OFFSET)
        return outside_bytes(model->file, offset, tq_get_u64(&buffer, TQ_Buffer_size), out, error);
    *out = (tq_bytes){NULL, 0};
    return TQ_OK;
}

tq_table tq_model_external_buffer(const tq_model *model, int64_t id)
{
    size_t low = 0, high = model->external_buffers.count; /* the first index whose id is >= `id` */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((int64_t)(model->external_index[middle] >> 32) < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == model->external_buffers.count || (int64_t)(model->external_index[low] >> 32) != id)
        return (tq_table){model->file, 0, 0, 0};
    return tq_vector_table(&model->external_buffers, (uint32_t)model->external_index[low]);
}
