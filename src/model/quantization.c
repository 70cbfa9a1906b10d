/* SPDX-License-Identifier: Apache-2.0 */
#include "model/quantization.h"

static void read_details(tq_quantization *q)
{
    tq_union details = tq_get_union(&q->table, TQ_QuantizationParameters_details);
    const tq_table *t = &details.value;
    switch (details.type) {
    case TQ_QuantizationDetails_BlockwiseQuantization:
        q->kind = TQ_QUANTIZATION_BLOCKWISE;
        q->scales_tensor = (int32_t)tq_get_int(t, TQ_BlockwiseQuantization_scales);
        q->zero_points_tensor = (int32_t)tq_get_int(t, TQ_BlockwiseQuantization_zero_points);
        q->block_size = (int32_t)tq_get_int(t, TQ_BlockwiseQuantization_block_size);
        break;
    case TQ_QuantizationDetails_MultiAxisQuantization:
        q->kind = TQ_QUANTIZATION_MULTI_AXIS;
        q->scales_tensor = (int32_t)tq_get_int(t, TQ_MultiAxisQuantization_scales);
        q->zero_points_tensor = (int32_t)tq_get_int(t, TQ_MultiAxisQuantization_zero_points);
        q->block_size = (int32_t)tq_get_int(t, TQ_MultiAxisQuantization_block_size);
        q->quantized_dimensions = tq_get_vector(t, TQ_MultiAxisQuantization_quantized_dimensions);
        break;
    case TQ_QuantizationDetails_CustomQuantization: {
        tq_vector custom = tq_get_vector(t, TQ_CustomQuantization_custom);
        q->custom = tq_vector_bytes(&custom, 1);
        if (q->kind == TQ_QUANTIZATION_NONE) /* LiteRT ignores custom details beside scales */
            q->kind = TQ_QUANTIZATION_CUSTOM;
        break;
    }
    }
}

tq_quantization tq_tensor_quantization(const tq_table *tensor)
{
    tq_table table = tq_get_table(tensor, TQ_Tensor_quantization);
    if (table.vtable_size <= 4) /* absent, or without fields, as float tensors have it */
        return (tq_quantization){.table = table, .scales_tensor = -1, .zero_points_tensor = -1};
    tq_quantization q = {
        .table = table,
        .scale = tq_get_vector(&table, TQ_QuantizationParameters_scale),
        .zero_point = tq_get_vector(&table, TQ_QuantizationParameters_zero_point),
        .min = tq_get_vector(&table, TQ_QuantizationParameters_min),
        .max = tq_get_vector(&table, TQ_QuantizationParameters_max),
        .quantized_dimension = (int32_t)tq_get_int(&table, TQ_QuantizationParameters_quantized_dimension),
        .scales_tensor = -1,
        .zero_points_tensor = -1,
    };
    if (q.scale.count)
        q.kind = q.scale.count == 1 ? TQ_QUANTIZATION_PER_TENSOR : TQ_QUANTIZATION_PER_AXIS;
    read_details(&q);
    return q;
}

const char *tq_quantization_kind_name(tq_quantization_kind kind)
{
    static const char *const names[] = {"none", "per-tensor", "per-axis", "blockwise", "multi-axis", "custom"};
    return (unsigned)kind < TQ_QUANTIZATION_KIND_COUNT ? names[kind] : "?";
}
