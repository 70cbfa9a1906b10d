/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions on elementwise operators.
 */
#include <math.h>

#include "delegate/conditions.h"

static bool is_ratio(float ratio, float low, float high)
{
    return !(ratio < low) && !(ratio >= high);
}

bool tq_condition_sum_ratios(const tq_node *node)
{
    for (int i = 0; i < 2 && tq_view_is_8_bit(tq_view_output(node, 0)); i++)
        if (!is_ratio(tq_view_scale(node->in[i]) / tq_view_scale(node->out[0]), 1.0f / 1024, 256))
            return false;
    return true;
}

bool tq_condition_product_ratio(const tq_node *node)
{
    if (!tq_view_is_8_bit(tq_view_output(node, 0)))
        return true;
    float product = tq_view_scale(node->in[0]) * tq_view_scale(node->in[1]);
    return is_ratio(product / tq_view_scale(node->out[0]), 1.0f / 65536, 256);
}

bool tq_condition_constant_slope(const tq_node *node)
{
    return tq_view_is_static(tq_view_input(node, 1));
}

bool tq_condition_slope(const tq_node *node)
{
    float alpha = tq_view_float_option(node, TQ_LeakyReluOptions_alpha);
    if (!isnormal(alpha))
        return false;
    const tq_tensor *x = tq_view_input(node, 0), *y = tq_view_output(node, 0);
    if (!tq_view_is_quantized(x) || !tq_view_is_quantized(y) || !isnormal(tq_view_scale(x)) ||
        !isnormal(tq_view_scale(y)))
        return true;
    float positive = tq_view_scale(x) / tq_view_scale(y), negative = positive * alpha;
    return !(positive < 1.0f / 256 || positive > 128) &&
           !(negative < -127.99609375f || negative > 128 || fabsf(negative) < 1.0f / 256);
}

bool tq_condition_conversion(const tq_node *node)
{
    const tq_tensor *x = tq_view_input(node, 0), *y = tq_view_output(node, 0);
    if (tq_view_is_float(x))
        return true;
    float ratio = tq_view_scale(x) / tq_view_scale(y);
    return tq_view_type(x) == tq_view_type(y) && tq_view_is_valid_quantized(x) && tq_view_is_valid_quantized(y) &&
           !(ratio < 1.0f / 256 || ratio > 128);
}
