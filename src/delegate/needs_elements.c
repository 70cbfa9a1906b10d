/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators need that work element by element.
 */
#include <math.h>

#include "delegate/needs.h"

static bool is_ratio(float ratio, float low, float high)
{
    return !(ratio < low) && !(ratio >= high);
}

bool tq_need_sum_ratios(const tq_node *node)
{
    for (int i = 0; i < 2 && is_byte(output(node, 0)); i++)
        if (!is_ratio(scale_of(node->in[i]) / scale_of(node->out[0]), 1.0f / 1024, 256))
            return false;
    return true;
}

bool tq_need_product_ratio(const tq_node *node)
{
    if (!is_byte(output(node, 0)))
        return true;
    float product = scale_of(node->in[0]) * scale_of(node->in[1]);
    return is_ratio(product / scale_of(node->out[0]), 1.0f / 65536, 256);
}

bool tq_need_constant_slope(const tq_node *node)
{
    return is_static(input(node, 1));
}

bool tq_need_slope(const tq_node *node)
{
    float alpha = real_option(node, TQ_LeakyReluOptions_alpha);
    if (!isnormal(alpha))
        return false;
    const tq_tensor *x = input(node, 0), *y = output(node, 0);
    if (!is_codes(x) || !is_codes(y) || !isnormal(scale_of(x)) || !isnormal(scale_of(y)))
        return true;
    float positive = scale_of(x) / scale_of(y), negative = positive * alpha;
    return !(positive < 1.0f / 256 || positive > 128) &&
           !(negative < -127.99609375f || negative > 128 || fabsf(negative) < 1.0f / 256);
}

bool tq_need_conversion(const tq_node *node)
{
    const tq_tensor *x = input(node, 0), *y = output(node, 0);
    if (is_float(x))
        return true;
    float ratio = scale_of(x) / scale_of(y);
    return type_of(x) == type_of(y) && is_sound(x) && is_sound(y) && !(ratio < 1.0f / 256 || ratio > 128);
}
