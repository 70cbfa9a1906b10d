/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/products/product_plan.h"

#include <math.h>

#include "ops/quantized.h"

/* sum * multiplier = output - zero point. */
double tq_product_multiplier(const tq_node *node, const tq_product_plan *plan, size_t channel)
{
    const float in = tq_scale_of(node->in[0]), weight = tq_scale_at(node->in[1], channel);
    const float out = tq_scale_of(node->out[0]);
    double real = (plan->product_in_f32 ? (double)(in * weight) : (double)in * (double)weight) / (double)out;
    if (node->numerics == TQ_NUMERICS_XNNPACK)
        real = (double)tq_even_multiplier(in, weight, out);
    return isfinite((float)real) ? real : 0;
}
