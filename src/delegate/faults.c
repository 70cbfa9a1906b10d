/* SPDX-License-Identifier: Apache-2.0
 *
 * What keeps LiteRT from running a node with the kernels that it chooses for it.
 */
#include "model/quantization.h"
#include "delegate/needs.h"

bool tq_fault_no_kernel(const tq_node *node)
{
    (void)node;
    return true;
}

bool tq_fault_no_bias(const tq_node *node)
{
    return !input(node, 2);
}

bool tq_fault_one_bias_scale(const tq_node *node)
{
    const tq_tensor *w = input(node, 1), *bias = input(node, 2);
    if (type_of(w) != TQ_TensorType_INT8 || type_of(bias) != TQ_TensorType_INT32)
        return false;
    return tq_tensor_quantization(&w->table).scale.count > 1 && tq_tensor_quantization(&bias->table).scale.count == 1;
}

bool tq_fault_large_multiplier(const tq_node *node)
{
    if (!is_codes(input(node, 0)) || !is_codes(output(node, 0)))
        return false;
    const tq_quantization q = tq_tensor_quantization(&node->in[1]->table);
    const uint8_t *scales = tq_vector_bytes(&q.scale, sizeof(float)).data;
    const float in = scale_of(node->in[0]), out = scale_of(node->out[0]);
    bool large = false;
    for (uint32_t c = 0; c < q.scale.count; c++)
        large |= in * tq_load_f32(scales + 4 * c) / out >= 256;
    return large;
}

/* Whether one of the last dimensions is 0. */
static bool ends_in_nothing(const tq_tensor *t, int count)
{
    int rank = rank_of(t);
    for (int i = rank > count ? rank - count : 0; i < rank; i++)
        if (dimension(t, i) == 0)
            return true;
    return false;
}

bool tq_fault_empty_rows(const tq_node *node)
{
    return ends_in_nothing(input(node, 0), 1);
}

bool tq_fault_empty_matrices(const tq_node *node)
{
    return ends_in_nothing(input(node, 0), 2) || ends_in_nothing(input(node, 1), 2);
}

bool tq_fault_unsigned_codes(const tq_node *node)
{
    return type_of(input(node, 0)) == TQ_TensorType_UINT8;
}

/* Codes that XNNPACK takes by their type, and cannot describe. */
bool tq_fault_unsound_codes(const tq_node *node)
{
    for (int i = 0; i < node->in_count; i++)
        if (is_codes(node->in[i]) && tq_seen_is_value(node, i) && !is_sound(node->in[i]))
            return true;
    for (int i = 0; i < node->out_count; i++)
        if (is_codes(node->out[i]) && !is_sound(node->out[i]))
            return true;
    return false;
}

bool tq_fault_many_dimensions(const tq_node *node)
{
    for (int i = 0; i < node->in_count; i++)
        if (rank_of(node->in[i]) > XNNPACK_DIMENSIONS)
            return true;
    for (int i = 0; i < node->out_count; i++)
        if (rank_of(node->out[i]) > XNNPACK_DIMENSIONS)
            return true;
    return false;
}
