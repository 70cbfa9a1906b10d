/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions on which LiteRT fails at a node with the kernels that it chooses.
 */
#include <string.h>

#include "model/quantization.h"
#include "delegate/conditions.h"

bool tq_litert_failure_no_kernel(const tq_node *node)
{
    (void)node;
    return true;
}

bool tq_litert_failure_only_delegate(const tq_node *node)
{
    return node->op && !strcmp(node->op->name, "moe");
}

bool tq_litert_failure_no_bias(const tq_node *node)
{
    return !tq_view_input(node, 2);
}

bool tq_litert_failure_no_shuffled_bias(const tq_node *node)
{
    const int64_t format = tq_get_int(&node->options.table, TQ_FullyConnectedOptions_weights_format);
    return format == TQ_FullyConnectedOptionsWeightsFormat_SHUFFLED4x16INT8 && !tq_view_input(node, 2) &&
           tq_view_type(tq_view_input(node, 1)) == TQ_TensorType_UINT8;
}

bool tq_litert_failure_no_wide_bias(const tq_node *node)
{
    return tq_view_type(tq_view_input(node, 0)) == TQ_TensorType_UINT8 && !tq_view_input(node, 2) &&
           tq_view_type(tq_view_output(node, 0)) == TQ_TensorType_INT16;
}

bool tq_litert_failure_one_bias_scale(const tq_node *node)
{
    const tq_tensor *w = tq_view_input(node, 1), *bias = tq_view_input(node, 2);
    if (tq_view_type(w) != TQ_TensorType_INT8 || tq_view_type(bias) != TQ_TensorType_INT32)
        return false;
    return tq_tensor_quantization(&w->table).scale.count > 1 && tq_tensor_quantization(&bias->table).scale.count == 1;
}

bool tq_litert_failure_many_bias_scales(const tq_node *node)
{
    const tq_tensor *w = tq_view_input(node, 1), *bias = tq_view_input(node, 2);
    if (!tq_view_is_8_bit(w) || tq_view_type(bias) != TQ_TensorType_INT32)
        return false;
    return tq_tensor_quantization(&w->table).scale.count == 1 && tq_tensor_quantization(&bias->table).scale.count > 1;
}

/* XNNPACK reads 4 bits beside this zero point as unsigned. */
enum { MIDDLE_OF_4_BITS = 8 };

static bool has_channel_zero_point(const tq_tensor *t)
{
    const tq_quantization q = tq_tensor_quantization(&t->table);
    for (uint32_t c = 0; q.scale.count > 1 && c < q.zero_point.count; c++)
        if (tq_vector_i64(&q.zero_point, c) != 0 &&
            !(tq_view_type(t) == TQ_TensorType_INT4 && tq_vector_i64(&q.zero_point, c) == MIDDLE_OF_4_BITS))
            return true;
    return false;
}

bool tq_litert_failure_channel_zero_points(const tq_node *node)
{
    const tq_tensor *w = tq_view_input(node, 1), *bias = tq_view_input(node, 2);
    return has_channel_zero_point(w) || (tq_view_type(bias) == TQ_TensorType_INT32 && has_channel_zero_point(bias));
}

bool tq_litert_failure_float_zero_points(const tq_node *node)
{
    const tq_tensor *w = tq_view_input(node, 1);
    return tq_view_is_float(tq_view_input(node, 0)) && !tq_view_is_float(w) && tq_view_zero_point(w) != 0;
}

bool tq_litert_failure_unequal_quantization(const tq_node *node)
{
    const tq_tensor *x = tq_view_input(node, tq_view_is_data(node, 0) ? 0 : 1);
    for (int i = 0; tq_view_is_quantized(x) && i < node->out_count; i++)
        if (tq_view_is_quantized(node->out[i]) && (tq_view_scale(x) != tq_view_scale(node->out[i]) ||
                                                   tq_view_zero_point(x) != tq_view_zero_point(node->out[i])))
            return true;
    return false;
}

bool tq_litert_failure_large_multiplier(const tq_node *node)
{
    if (!tq_view_is_quantized(tq_view_input(node, 0)) || !tq_view_is_quantized(tq_view_output(node, 0)))
        return false;
    const tq_quantization q = tq_tensor_quantization(&node->in[1]->table);
    const uint8_t *scales = tq_vector_bytes(&q.scale, sizeof(float)).data;
    const float in = tq_view_scale(node->in[0]), out = tq_view_scale(node->out[0]);
    bool large = false;
    for (uint32_t c = 0; c < q.scale.count; c++)
        large |= in * tq_load_f32(scales + 4 * c) / out >= 256;
    return large;
}

/* Whether one of the last `count` dimensions is 0. */
static bool has_empty_end(const tq_tensor *t, int count)
{
    int rank = tq_view_rank(t);
    for (int i = rank > count ? rank - count : 0; i < rank; i++)
        if (tq_view_dimension(t, i) == 0)
            return true;
    return false;
}

bool tq_litert_failure_empty_rows(const tq_node *node)
{
    return has_empty_end(tq_view_input(node, 0), 1);
}

bool tq_litert_failure_empty_matrices(const tq_node *node)
{
    return has_empty_end(tq_view_input(node, 0), 2) || has_empty_end(tq_view_input(node, 1), 2);
}

bool tq_litert_failure_uint8_matrices(const tq_node *node)
{
    return tq_view_type(tq_view_input(node, 0)) == TQ_TensorType_UINT8;
}

static bool is_invalid(const tq_tensor *t)
{
    return tq_view_is_quantized(t) && !tq_view_is_valid_quantized(t);
}

bool tq_litert_failure_invalid_conversion(const tq_node *node)
{
    const tq_tensor *x = tq_view_input(node, 0), *y = tq_view_output(node, 0);
    return tq_view_is_float_or_quantized(x) && tq_view_is_float_or_quantized(y) && (is_invalid(x) || is_invalid(y));
}

bool tq_litert_failure_invalid_factor(const tq_node *node)
{
    return tq_view_type(tq_view_input(node, 0)) == tq_view_type(tq_view_input(node, 1)) &&
           is_invalid(tq_view_input(node, 0));
}

bool tq_litert_failure_large_factors(const tq_node *node)
{
    return tq_view_is_in_file(tq_view_input(node, 1)) && tq_view_is_valid_quantized(tq_view_output(node, 0)) &&
           tq_litert_failure_large_multiplier(node);
}

/* Quantized tensors that the delegate accepts by type, and XNNPACK refuses to define. */
bool tq_litert_failure_invalid_quantization(const tq_node *node)
{
    for (int i = 0; i < node->in_count; i++)
        if (tq_view_is_quantized(node->in[i]) && tq_view_is_data(node, i) && !tq_view_is_valid_quantized(node->in[i]))
            return true;
    for (int i = 0; i < node->out_count; i++)
        if (tq_view_is_quantized(node->out[i]) && !tq_view_is_valid_quantized(node->out[i]))
            return true;
    return false;
}

bool tq_litert_failure_many_dimensions(const tq_node *node)
{
    for (int i = 0; i < node->in_count; i++)
        if (tq_view_rank(node->in[i]) > TQ_XNNPACK_DIMENSIONS)
            return true;
    for (int i = 0; i < node->out_count; i++)
        if (tq_view_rank(node->out[i]) > TQ_XNNPACK_DIMENSIONS)
            return true;
    return false;
}
