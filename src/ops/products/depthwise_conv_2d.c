/* SPDX-License-Identifier: Apache-2.0
 *
 * DEPTHWISE_CONV_2D: input [batch, height, width, depth], filter [1, filter height, filter width, depth * multiplier];
 * output channel c * multiplier + m reads input channel c.
 *
 * Arithmetic as in conv_2d.c, with these differences: the optimized kernel has the rule UP for INT8 only, in whole
 * blocks of 8 channels; an INT16 input needs an INT64 bias; zero points of filters other than UINT8 are ignored.  The
 * shapes give the depth multiplier, not the option depth_multiplier.
 *
 * Source: LiteRT f6745779, tflite/kernels/depthwise_conv.cc,
 * internal/reference/{depthwiseconv_uint8,depthwiseconv_float,integer_ops/depthwise_conv}.h.
 */
#include "kernels/depthwise/depthwise.h"
#include "ops/check.h"
#include "ops/products/convolution.h"
#include "ops/products/hybrid_depthwise_conv_2d.h"
#include "ops/quantized.h"

static tq_status check(const tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_rank(node, 0, 4, 4, error));
    TQ_TRY(tq_check_rank(node, 1, 4, 4, error));
    const int32_t *x = node->in[0]->shape.dims, *w = node->in[1]->shape.dims;
    if (w[0] != 1)
        return tq_input_fail(node, 1, error, "has a first dimension of %d; it needs to be 1", w[0]);
    if (x[3] <= 0 || w[3] <= 0 || w[3] % x[3])
        return tq_input_fail(node, 1, error, "has %d channels; they must be a multiple of the input's %d", w[3], x[3]);
    TQ_TRY(tq_check_product(node, (size_t)w[3], 3, TQ_SIGNED_UP_TO_8_BITS, error));
    if (node->in[0]->type != TQ_TensorType_FLOAT32 && node->in_count > 2 && node->in[2])
        TQ_TRY(tq_check_symmetric_input(node, 2, error));
    return node->in[0]->type == TQ_TensorType_UINT8 ? tq_check_bias_scale(node, error) : TQ_OK;
}

tq_status tq_prepare_depthwise_conv_2d(tq_node *node, tq_error *error)
{
    if (node->in[0]->type == TQ_TensorType_FLOAT32 && node->in[1]->type != TQ_TensorType_FLOAT32)
        return tq_prepare_depthwise_hybrid(node, error);
    TQ_TRY(check(node, error));
    const tq_table *options = &node->options.table;
    const int32_t *x = node->in[0]->shape.dims, *w = node->in[1]->shape.dims;
    const bool is_long = w[1] > TQ_DEPTHWISE_SIDE || w[2] > TQ_DEPTHWISE_SIDE;
    const bool rounds_up = node->numerics == TQ_NUMERICS_OPTIMIZED && node->in[0]->type == TQ_TensorType_INT8;
    tq_product_plan plan = {
        .channels = (size_t)w[3],
        .groups = 1,
        .depth = 1,
        .by_channel = x[3] > 1 || (w[3] == 1 && !is_long), /* else a convolution of one input channel */
        .multiplier = (size_t)(w[3] / x[3]),
        .channel_stride = 1,
        .k_stride = (size_t)w[3],
        .activation = tq_get_int(options, TQ_DepthwiseConv2DOptions_fused_activation_function),
        .rule = rounds_up                                  ? TQ_REQUANTIZE_UP
                : node->in[0]->type == TQ_TensorType_UINT8 ? TQ_REQUANTIZE_DOUBLE
                                                           : tq_reference_rule(node),
        .double_channels = rounds_up ? (size_t)w[3] % 8 : 0,
        .product_in_f32 = node->in[0]->type == TQ_TensorType_UINT8,
        .ignores_zero_point = node->in[0]->type != TQ_TensorType_UINT8,
    };
    tq_convolution_options convolution = {
        .padding = tq_get_int(options, TQ_DepthwiseConv2DOptions_padding),
        .stride_h = (int32_t)tq_get_int(options, TQ_DepthwiseConv2DOptions_stride_h),
        .stride_w = (int32_t)tq_get_int(options, TQ_DepthwiseConv2DOptions_stride_w),
        .dilation_h = (int32_t)tq_get_int(options, TQ_DepthwiseConv2DOptions_dilation_h_factor),
        .dilation_w = (int32_t)tq_get_int(options, TQ_DepthwiseConv2DOptions_dilation_w_factor),
    };
    TQ_TRY(tq_product_is_wide(node, TQ_TensorType_FLOAT32, &plan.wide, error));
    TQ_TRY(tq_convolution_fit(node, &convolution, &plan, error));
    return tq_prepare_product(node, &plan, error);
}
