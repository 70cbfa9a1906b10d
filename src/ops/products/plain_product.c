/* SPDX-License-Identifier: Apache-2.0
 *
 * A product of integers whose zero points lie outside their types: the kernels' padding and lanes cannot hold such zero
 * points, and files that have them are rare, so this is a plain loop.  Padding is skipped, as in TFLite's reference
 * kernels.
 */
#include "ops/products/plain_product.h"

#include <string.h>

#include "base/stop.h"
#include "ops/check.h"
#include "ops/products/dot.h"
#include "ops/quantized.h"
#include "ops/scratch.h"

typedef struct plain_product {
    tq_product_plan plan;
    tq_multiplier *multiplier; /* [channels] */
    int32_t low, high;
    uint64_t pixels_at; /* [taps] pointers to input pixels; NULL: padding */
} plain_product;

static bool is_outside(const tq_tensor *tensor)
{
    int32_t low, high, zero_point = tq_zero_point_of(tensor);
    tq_quantized_range(tensor->type, &low, &high);
    return zero_point < low || zero_point > high;
}

bool tq_product_is_plain(const tq_node *node, const tq_product_plan *plan)
{
    if (node->in[0]->type == TQ_TensorType_FLOAT32 || plan->wraps_zero_points)
        return false;
    return is_outside(node->in[0]) || is_outside(node->out[0]) ||
           (!plan->ignores_zero_point && is_outside(node->in[1]));
}

static int32_t value_at(const void *data, int32_t type, size_t at)
{
    switch (type) {
    case TQ_TensorType_UINT8: return ((const uint8_t *)data)[at];
    case TQ_TensorType_INT16: return ((const int16_t *)data)[at];
    default: return ((const int8_t *)data)[at]; /* INT4 and INT2 take a byte each */
    }
}

/* Exact: |x - z| < 2^17 and |w - z| < 2^17 (tq_zero_point_fits), and a row has less than 2^29 elements. */
static int64_t sum_at(const tq_node *node, const plain_product *p, const void *const *pixels, size_t channel)
{
    const tq_product_plan *plan = &p->plan;
    const tq_tensor *x = node->in[0], *w = node->in[1];
    const size_t first =
        plan->by_channel ? channel / plan->multiplier : channel / (plan->channels / plan->groups) * plan->depth;
    const int32_t zero_x = tq_zero_point_of(x), zero_w = plan->ignores_zero_point ? 0 : tq_zero_point_of(w);
    int64_t sum = 0;
    for (size_t t = 0; t < plan->taps; t++)
        for (size_t k = 0; pixels[t] && k < plan->depth; k++) {
            size_t at = channel * plan->channel_stride + (t * plan->depth + k) * plan->k_stride;
            sum +=
                (int64_t)(value_at(pixels[t], x->type, first + k) - zero_x) * (value_at(w->data, w->type, at) - zero_w);
        }
    return sum;
}

static void find_pixels(const tq_node *node, const tq_product_plan *plan, size_t row, const void **pixels)
{
    const size_t stride = plan->row_stride * tq_element_bytes(node->in[0]->type);
    if (plan->scans)
        tq_scan_pixels(&plan->scan, node->in[0]->data, stride, row, 1, NULL, pixels, 1);
    else
        *pixels = (const char *)node->in[0]->data + row * stride;
}

static void store(tq_tensor *out, size_t at, int32_t value)
{
    if (out->type == TQ_TensorType_INT16)
        ((int16_t *)out->data)[at] = (int16_t)value;
    else
        ((uint8_t *)out->data)[at] = (uint8_t)value;
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    const plain_product *p = node->state;
    const tq_tensor *bias = node->in_count > 2 ? node->in[2] : NULL;
    const void **pixels = tq_scratch_at(node, p->pixels_at);
    const int32_t zero_point = tq_zero_point_of(node->out[0]);
    size_t work = 0;
    for (size_t row = 0; row < p->plan.rows; row++) {
        find_pixels(node, &p->plan, row, pixels);
        for (size_t c = 0; c < p->plan.channels && !tq_stop_count(&work, p->plan.taps * p->plan.depth); c++) {
            const tq_multiplier *m = &p->multiplier[c];
            const int64_t sum =
                (int64_t)((uint64_t)sum_at(node, p, pixels, c) + (uint64_t)(bias ? tq_integer_at(bias, c) : 0));
            int32_t q = p->plan.wide ? tq_requantize_i64(sum, m, p->plan.rule, zero_point, p->low, p->high)
                                     : tq_requantize(tq_wrap_i32(sum), m, m->rule, zero_point, p->low, p->high);
            store(node->out[0], row * p->plan.channels + c, q);
        }
    }
    return TQ_OK;
}

/* Whether whole blocks of the kernel have an upper bound cut to the type, which lies below it. */
static bool cuts_bound(const tq_node *node, const tq_product_plan *plan)
{
    int32_t low, high;
    tq_quantized_range(node->out[0]->type, &low, &high);
    return plan->by_channel && node->numerics != TQ_NUMERICS_REFERENCE &&
           plan->activation != TQ_ActivationFunctionType_RELU && tq_zero_point_of(node->out[0]) < low;
}

tq_status tq_prepare_plain_product(tq_node *node, const tq_product_plan *plan, tq_error *error)
{
    plain_product *p;
    uint64_t total = 0;
    TQ_TRY(tq_node_state(node, sizeof *p, &p, error));
    p->plan = *plan;
    TQ_TRY(tq_check_activation_scale(node, plan->activation, error));
    TQ_TRY(tq_check_activation_bounds(node, plan->activation, cuts_bound(node, plan), error));
    tq_activation_range(node, plan->activation, &p->low, &p->high);
    TQ_TRY(tq_node_memory(node, plan->channels, sizeof *p->multiplier, &p->multiplier, error));
    for (size_t c = 0; c < plan->channels; c++) {
        const bool last = c + plan->double_channels >= plan->channels;
        p->multiplier[c] =
            tq_multiplier_of(tq_product_multiplier(node, plan, c), last ? TQ_REQUANTIZE_DOUBLE : plan->rule);
    }
    p->pixels_at = tq_scratch_part(&total, plan->taps, sizeof(void *));
    node->eval = eval;
    return tq_node_scratch(node, total, error);
}
