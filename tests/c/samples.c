/* SPDX-License-Identifier: Apache-2.0 */
#include "samples.h"

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof *(array))

static size_t make_indices(maker *m, unsigned width, uint32_t count, const int64_t *values)
{
    tq_table_id id = width == 4 ? TQ_TABLE_Int32Vector : width == 2 ? TQ_TABLE_Uint16Vector : TQ_TABLE_Uint8Vector;
    size_t table = make_table(m, id);
    set_link(m, table, (tq_field_id)tq_tables[id].first, make_integers(m, width, count, values));
    return table;
}

static size_t make_level(maker *m, const sample_level *from)
{
    unsigned type = from->width == 4   ? TQ_SparseIndexVector_Int32Vector
                    : from->width == 2 ? TQ_SparseIndexVector_Uint16Vector
                                       : TQ_SparseIndexVector_Uint8Vector;
    size_t level = make_table(m, TQ_TABLE_DimensionMetadata);
    set_integer(m, level, TQ_DimensionMetadata_format, from->format);
    set_integer(m, level, TQ_DimensionMetadata_dense_size, from->dense_size);
    if (from->width) {
        set_union(m, level, TQ_DimensionMetadata_array_segments, type,
                  make_indices(m, from->width, from->segment_count, from->segments));
        set_union(m, level, TQ_DimensionMetadata_array_indices, type,
                  make_indices(m, from->width, from->index_count, from->indices));
    }
    return level;
}

size_t make_sparse_tensor(maker *m, const sample_sparsity *from)
{
    size_t tensor = make_table(m, TQ_TABLE_Tensor), sparsity = make_table(m, TQ_TABLE_SparsityParameters);
    set_integer(m, tensor, TQ_Tensor_type, from->type);
    set_link(m, tensor, TQ_Tensor_shape, make_integers(m, 4, from->rank, from->shape));
    set_link(m, tensor, TQ_Tensor_sparsity, sparsity);
    set_link(m, sparsity, TQ_SparsityParameters_traversal_order, make_integers(m, 4, from->order_count, from->order));
    if (from->block_count)
        set_link(m, sparsity, TQ_SparsityParameters_block_map, make_integers(m, 4, from->block_count, from->block_map));
    size_t levels = make_vector(m, from->level_count, 4);
    set_link(m, sparsity, TQ_SparsityParameters_dim_metadata, levels);
    for (uint32_t i = 0; i < from->level_count; i++)
        set_element(m, levels, i, make_level(m, &from->levels[i]));
    return tensor;
}

static size_t make_quantization(maker *m)
{
    static const int64_t scales[] = {0x3f000000, 0x3e800000}, zero_points[] = {-3, 1};
    size_t table = make_table(m, TQ_TABLE_QuantizationParameters);
    set_link(m, table, TQ_QuantizationParameters_scale, make_integers(m, 4, COUNT(scales), scales));
    set_link(m, table, TQ_QuantizationParameters_zero_point, make_integers(m, 8, COUNT(zero_points), zero_points));
    size_t details = make_table(m, TQ_TABLE_BlockwiseQuantization);
    set_integer(m, details, TQ_BlockwiseQuantization_block_size, 32);
    set_union(m, table, TQ_QuantizationParameters_details, TQ_QuantizationDetails_BlockwiseQuantization, details);
    return table;
}

static size_t make_tensors(maker *m)
{
    static const sample_sparsity sparse = {
        .rank = 1,
        .shape = {4},
        .order_count = 1,
        .order = {0},
        .type = TQ_TensorType_INT8,
        .level_count = 1,
        .levels = {{.format = TQ_DimensionType_SPARSE_CSR,
                    .segment_count = 2,
                    .segments = {0, 2},
                    .index_count = 2,
                    .indices = {1, 3},
                    .width = 1}},
    };
    static const int64_t shape[] = {2, 3};
    size_t tensors = make_vector(m, 2, 4);
    size_t tensor = make_table(m, TQ_TABLE_Tensor);
    set_element(m, tensors, 0, tensor);
    set_integer(m, tensor, TQ_Tensor_type, TQ_TensorType_INT8);
    set_integer(m, tensor, TQ_Tensor_buffer, 1);
    set_integer(m, tensor, TQ_Tensor_is_variable, 1);
    set_link(m, tensor, TQ_Tensor_shape, make_integers(m, 4, COUNT(shape), shape));
    set_link(m, tensor, TQ_Tensor_name, make_string(m, "x"));
    set_link(m, tensor, TQ_Tensor_quantization, make_quantization(m));
    set_element(m, tensors, 1, make_sparse_tensor(m, &sparse));
    return tensors;
}

static size_t make_operators(maker *m)
{
    static const int64_t inputs[] = {0, -1};
    size_t operators = make_vector(m, 1, 4), op = make_table(m, TQ_TABLE_Operator);
    set_element(m, operators, 0, op);
    set_link(m, op, TQ_Operator_inputs, make_integers(m, 4, COUNT(inputs), inputs));
    size_t options = make_table(m, TQ_TABLE_Conv2DOptions);
    set_integer(m, options, TQ_Conv2DOptions_stride_w, 2);
    set_union(m, op, TQ_Operator_builtin_options, TQ_BuiltinOptions_Conv2DOptions, options);
    return operators;
}

static void make_buffers(maker *m, size_t model)
{
    static const int64_t data[] = {1, 2, 3, 4, 5, 6}, ids[] = {7, 3};
    size_t buffers = make_vector(m, 2, 4), constant;
    set_link(m, model, TQ_Model_buffers, buffers);
    set_element(m, buffers, 0, make_table(m, TQ_TABLE_Buffer));
    set_element(m, buffers, 1, constant = make_table(m, TQ_TABLE_Buffer));
    set_link(m, constant, TQ_Buffer_data, make_integers(m, 1, COUNT(data), data));
    size_t external = make_vector(m, COUNT(ids), 4);
    set_link(m, model, TQ_Model_external_buffers, external);
    for (uint32_t i = 0; i < COUNT(ids); i++) {
        size_t buffer = make_table(m, TQ_TABLE_ExternalBuffer);
        set_element(m, external, i, buffer);
        set_integer(m, buffer, TQ_ExternalBuffer_id, ids[i]);
        set_integer(m, buffer, TQ_ExternalBuffer_length, 100 + ids[i]);
    }
}

void make_sample_model(maker *m)
{
    make_start(m, TQ_TABLE_Model);
    size_t model = make_table(m, TQ_TABLE_Model);
    set_integer(m, model, TQ_Model_version, 3);
    set_link(m, model, TQ_Model_description, make_string(m, "sample"));
    size_t codes = make_vector(m, 1, 4), code = make_table(m, TQ_TABLE_OperatorCode);
    set_link(m, model, TQ_Model_operator_codes, codes);
    set_element(m, codes, 0, code);
    set_integer(m, code, TQ_OperatorCode_builtin_code, TQ_BuiltinOperator_CONV_2D);
    size_t subgraphs = make_vector(m, 1, 4), subgraph = make_table(m, TQ_TABLE_SubGraph);
    set_link(m, model, TQ_Model_subgraphs, subgraphs);
    set_element(m, subgraphs, 0, subgraph);
    set_link(m, subgraph, TQ_SubGraph_tensors, make_tensors(m));
    set_link(m, subgraph, TQ_SubGraph_operators, make_operators(m));
    make_buffers(m, model);
}
