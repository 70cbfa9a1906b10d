/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions that several families share: counts, types, shapes, the fused activation.
 */
#include "delegate/conditions.h"

static bool counts(const tq_node *node, int low, int high)
{
    return node->in_count >= low && node->in_count <= high && node->out_count == 1;
}

bool tq_condition_one_input(const tq_node *node)
{
    return counts(node, 1, 1);
}

bool tq_condition_two_inputs(const tq_node *node)
{
    return counts(node, 2, 2);
}

bool tq_condition_three_inputs(const tq_node *node)
{
    return counts(node, 3, 3);
}

bool tq_condition_two_or_three_inputs(const tq_node *node)
{
    return counts(node, 2, 3);
}

bool tq_condition_three_or_four_inputs(const tq_node *node)
{
    return counts(node, 3, 4);
}

bool tq_condition_up_to_five_inputs(const tq_node *node)
{
    return counts(node, 2, 5);
}

bool tq_condition_up_to_four_outputs(const tq_node *node)
{
    return node->in_count == 2 && node->out_count >= 2 && node->out_count <= 4 &&
           tq_view_int_option(node, TQ_SplitOptions_num_splits) == node->out_count;
}

static bool all(const tq_node *node, bool (*holds)(const tq_tensor *), bool outputs_too)
{
    for (int i = 0; i < node->in_count; i++)
        if (tq_view_is_data(node, i) && !holds(node->in[i]))
            return false;
    for (int i = 0; outputs_too && i < node->out_count; i++)
        if (!holds(node->out[i]))
            return false;
    return true;
}

static bool fits(const tq_tensor *t)
{
    return tq_view_has_dimensions(t, 0, TQ_XNNPACK_DIMENSIONS);
}

bool tq_condition_up_to_six_dimensions(const tq_node *node)
{
    bool needs_one = node->row.code == TQ_BuiltinOperator_PAD || node->row.code == TQ_BuiltinOperator_TRANSPOSE;
    return all(node, fits, false) && (!needs_one || tq_view_rank(tq_view_input(node, 0)) >= 1);
}

bool tq_condition_no_empty_output(const tq_node *node)
{
    return fits(tq_view_output(node, 0));
}

bool tq_condition_float_types(const tq_node *node)
{
    return all(node, tq_view_is_float, true);
}

bool tq_condition_float_or_quantized(const tq_node *node)
{
    return all(node, tq_view_is_float_or_quantized, true);
}

static bool is_float_or_int8(const tq_tensor *t)
{
    return tq_view_is_float_or_quantized(t) && tq_view_type(t) != TQ_TensorType_UINT8;
}

bool tq_condition_float_or_int8(const tq_node *node)
{
    return all(node, is_float_or_int8, true);
}

bool tq_condition_quantized_to_float(const tq_node *node)
{
    return tq_view_is_quantized(tq_view_input(node, 0)) && tq_view_is_float(tq_view_output(node, 0));
}

bool tq_condition_same_types(const tq_node *node)
{
    return tq_view_type(tq_view_input(node, 0)) == tq_view_type(tq_view_output(node, 0)) &&
           tq_view_type(tq_view_input(node, 1)) == tq_view_type(tq_view_output(node, 0));
}

bool tq_condition_clamping_activation(const tq_node *node)
{
    int64_t activation = tq_view_activation(node);
    return activation >= TQ_ActivationFunctionType_NONE && activation <= TQ_ActivationFunctionType_RELU6;
}
