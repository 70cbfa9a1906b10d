/* SPDX-License-Identifier: Apache-2.0
 *
 * CONV_2D: input [batch, height, width, depth], filter [channels, filter height, filter width, depth / groups].
 *
 *     integers   acc = sum (x - z_x) * (w - z_w) + bias; out = clamp(MBQM(acc, s_x * s_w / s_out) + z_out); s_w is one
 *                scale, or one a channel; UINT8: s_x * s_w is a float32 product; other types: z_w = 0
 *     optimized  the rule UP in place of MBQM (quant/rounding.def)
 *     INT16      as above with an INT32 bias; with an INT64 bias acc and multiplication have 64 bits
 *     float      sums in the order of kernels/gemm/gemm.h
 *
 * Source: LiteRT f6745779, tflite/kernels/conv.cc, internal/reference/{conv,integer_ops/conv}.h; ruy 2af88863,
 * ruy/kernel_avx2_fma.cc.  LiteRT requires a bias; here it is optional.
 */
#include "ops/check.h"
#include "ops/products/convolution.h"
#include "ops/products/hybrid_conv_2d.h"
#include "ops/quantized.h"

static tq_status check(const tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_rank(node, 0, 4, 4, error));
    TQ_TRY(tq_check_rank(node, 1, 4, 4, error));
    const int32_t *x = node->in[0]->shape.dims, *w = node->in[1]->shape.dims;
    if (x[3] <= 0 || w[3] <= 0 || x[3] % w[3])
        return tq_input_fail(node, 1, error, "has %d input channels; they must divide the input's %d", w[3], x[3]);
    if (w[0] <= 0 || w[0] % (x[3] / w[3]))
        return tq_input_fail(node, 1, error, "has %d output channels; they must be a multiple of the %d groups", w[0],
                             x[3] / w[3]);
    TQ_TRY(tq_check_product(node, (size_t)w[0], 0, TQ_SIGNED_UP_TO_8_BITS, error));
    const tq_affine *q = &node->in[1]->quantization;
    for (uint32_t c = 0; node->in[0]->type != TQ_TensorType_UINT8 && c < q->count; c++)
        if (q->zero_point[c] != 0 && node->in[0]->type != TQ_TensorType_FLOAT32)
            return tq_input_fail(node, 1, error, "has the zero point %d; filters that are not UINT8 need 0",
                                 q->zero_point[c]);
    if (node->in[0]->type != TQ_TensorType_FLOAT32 && node->in_count > 2 && node->in[2])
        TQ_TRY(tq_check_symmetric_input(node, 2, error));
    return node->in[0]->type == TQ_TensorType_UINT8 ? tq_check_bias_scale(node, error) : TQ_OK;
}

/* The optimized kernel has no groups, and for INT16 an INT32 bias only. */
static tq_requantize_rule rule_of(const tq_node *node)
{
    bool grouped = node->in[0]->shape.dims[3] != node->in[1]->shape.dims[3];
    bool wide = node->in[0]->type == TQ_TensorType_INT16 &&
                tq_get_int(&node->options.table, TQ_Conv2DOptions_quantized_bias_type) != TQ_TensorType_INT32;
    return node->numerics == TQ_NUMERICS_OPTIMIZED && !grouped && !wide ? TQ_REQUANTIZE_UP : tq_reference_rule(node);
}

/* A filter as wide as the image, without padding, reads contiguous pixels: its windows are rows of a product without
   taps.  Windows of different images begin at the same distance only where each image has one. */
static void read_whole_lines(const tq_node *node, tq_product_plan *plan)
{
    const tq_scan *s = &plan->scan;
    const bool across = s->filter_w == s->in_w && s->pad_w == 0 && (s->dilation_w == 1 || s->filter_w == 1);
    const bool down = s->pad_h == 0 && (s->dilation_h == 1 || s->filter_h == 1) &&
                      (int64_t)(s->out_h - 1) * s->stride_h + s->filter_h <= s->in_h;
    const bool alike = node->in[0]->shape.dims[0] == 1 || s->out_h == 1;
    if (!across || !down || !alike || s->out_w != 1 || plan->groups != 1 || plan->taps == 1)
        return;
    const size_t lines = s->out_h == 1 ? (size_t)s->in_h : (size_t)s->stride_h;
    plan->row_stride *= (size_t)s->in_w * lines;
    plan->depth *= plan->taps;
    plan->taps = 1;
    plan->scans = false;
}

tq_status tq_prepare_conv_2d(tq_node *node, tq_error *error)
{
    const bool quantized = node->in[1]->type != TQ_TensorType_FLOAT32;
    if (node->in[0]->type == TQ_TensorType_FLOAT32 && quantized)
        return tq_prepare_conv_2d_hybrid(node, error);
    TQ_TRY(check(node, error));
    const tq_table *options = &node->options.table;
    const int32_t *x = node->in[0]->shape.dims, *w = node->in[1]->shape.dims;
    tq_product_plan plan = {
        .channels = (size_t)w[0],
        .groups = (size_t)(x[3] / w[3]),
        .depth = (size_t)w[3],
        .activation = tq_get_int(options, TQ_Conv2DOptions_fused_activation_function),
        .rule = rule_of(node),
        .product_in_f32 = node->in[0]->type == TQ_TensorType_UINT8,
        .wraps_zero_points = rule_of(node) == TQ_REQUANTIZE_UP,
    };
    tq_convolution_options convolution = {
        .padding = tq_get_int(options, TQ_Conv2DOptions_padding),
        .stride_h = (int32_t)tq_get_int(options, TQ_Conv2DOptions_stride_h),
        .stride_w = (int32_t)tq_get_int(options, TQ_Conv2DOptions_stride_w),
        .dilation_h = (int32_t)tq_get_int(options, TQ_Conv2DOptions_dilation_h_factor),
        .dilation_w = (int32_t)tq_get_int(options, TQ_Conv2DOptions_dilation_w_factor),
    };
    TQ_TRY(tq_product_is_wide(node, tq_get_int(options, TQ_Conv2DOptions_quantized_bias_type), &plan.wide, error));
    TQ_TRY(tq_convolution_fit(node, &convolution, &plan, error));
    read_whole_lines(node, &plan);
    plan.channel_stride = plan.taps * plan.depth;
    plan.k_stride = 1;
    /* depthwise; a long filter of one channel is faster as rows, and XNNPACK sums it row by row (product.c) */
    const bool few = node->in[0]->type == TQ_TensorType_FLOAT32 && plan.groups > 1 &&
                     tq_depthwise_takes_depth(&plan.scan, plan.channels / plan.groups, plan.depth);
    if (few || (plan.depth == 1 && (plan.groups > 1 || (plan.channels == 1 && plan.taps <= 25)))) {
        plan.by_channel = true;
        plan.multiplier = plan.channels / plan.groups;
        plan.groups = 1;
    }
    return tq_prepare_product(node, &plan, error);
}
