/* SPDX-License-Identifier: Apache-2.0
 *
 * What many operators need: counts, types and shapes, and their own options.
 */
#include "delegate/needs.h"

static bool counts(const tq_node *node, int low, int high)
{
    return node->in_count >= low && node->in_count <= high && node->out_count == 1;
}

bool tq_need_one_input(const tq_node *node)
{
    return counts(node, 1, 1);
}

bool tq_need_two_inputs(const tq_node *node)
{
    return counts(node, 2, 2);
}

bool tq_need_three_inputs(const tq_node *node)
{
    return counts(node, 3, 3);
}

bool tq_need_two_or_three_inputs(const tq_node *node)
{
    return counts(node, 2, 3);
}

bool tq_need_three_or_four_inputs(const tq_node *node)
{
    return counts(node, 3, 4);
}

bool tq_need_up_to_five_inputs(const tq_node *node)
{
    return counts(node, 2, 5);
}

bool tq_need_up_to_four_outputs(const tq_node *node)
{
    return node->in_count == 2 && node->out_count >= 2 && node->out_count <= 4 &&
           option(node, TQ_SplitOptions_num_splits) == node->out_count;
}

static bool all(const tq_node *node, bool (*holds)(const tq_tensor *), bool outputs_too)
{
    for (int i = 0; i < node->in_count; i++)
        if (tq_seen_is_value(node, i) && !holds(node->in[i]))
            return false;
    for (int i = 0; outputs_too && i < node->out_count; i++)
        if (!holds(node->out[i]))
            return false;
    return true;
}

static bool fits(const tq_tensor *t)
{
    return has_dimensions(t, 0, XNNPACK_DIMENSIONS);
}

bool tq_need_up_to_six_dimensions(const tq_node *node)
{
    bool needs_one = node->row.code == TQ_BuiltinOperator_PAD || node->row.code == TQ_BuiltinOperator_TRANSPOSE;
    return all(node, fits, false) && (!needs_one || rank_of(input(node, 0)) >= 1);
}

bool tq_need_no_empty_output(const tq_node *node)
{
    return fits(output(node, 0));
}

bool tq_need_float_types(const tq_node *node)
{
    return all(node, is_float, true);
}

bool tq_need_float_or_codes(const tq_node *node)
{
    return all(node, is_float_or_codes, true);
}

static bool is_float_or_int8(const tq_tensor *t)
{
    return is_float_or_codes(t) && type_of(t) != TQ_TensorType_UINT8;
}

bool tq_need_float_or_int8(const tq_node *node)
{
    return all(node, is_float_or_int8, true);
}

bool tq_need_codes_to_float(const tq_node *node)
{
    return is_codes(input(node, 0)) && is_float(output(node, 0));
}

bool tq_need_same_types(const tq_node *node)
{
    return type_of(input(node, 0)) == type_of(output(node, 0)) && type_of(input(node, 1)) == type_of(output(node, 0));
}

bool tq_need_plain_activation(const tq_node *node)
{
    int64_t activation = tq_seen_activation(node);
    return activation >= TQ_ActivationFunctionType_NONE && activation <= TQ_ActivationFunctionType_RELU6;
}
