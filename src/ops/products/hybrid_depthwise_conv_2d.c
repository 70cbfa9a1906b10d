/* SPDX-License-Identifier: Apache-2.0
 *
 * DEPTHWISE_CONV_2D of float32 activations with int8 weights: input [n, h, w, c], filter [1, kh, kw, c * m].
 *
 * Each image is quantized separately, asymmetrically (ops/products/hybrid.h):
 *     out = act(f32(acc) * f32(s_w[o] * s_x) + bias), acc = sum (q - z) * w, o = c * m + i
 *     optimized: f32(f32(f32(acc) * s_w[o]) * s_x) in whole blocks of 4 channels; in the remaining channels s_x comes
 *     first
 * Padding is the real value 0.
 *
 * Source: LiteRT f6745779, tflite/kernels/depthwise_conv.cc, internal/reference/integer_ops/depthwise_conv.h,
 * internal/optimized/integer_ops/depthwise_conv_hybrid.h.
 * LiteRT reads past the end of a filter's single scale.
 */
#include "ops/products/hybrid_depthwise_conv_2d.h"

#include "kernels/depthwise/depthwise.h"
#include "ops/check.h"
#include "ops/products/convolution.h"
#include "ops/products/hybrid.h"
#include "ops/quantized.h"
#include "ops/scratch.h"

typedef struct depthwise {
    tq_scan scan;
    size_t batches, in_pixels, out_pixels; /* of an image */
    size_t channels, out_channels;
    float low, high;
    tq_depthwise plan;
    bool constant; /* node->prepacked has `packed` at its front */
    uint64_t packed_at, quantized_at, padding_at, work_at; /* in scratch */
} depthwise;

/* The packed filter, with the sums of the channels' weights and then their packed form behind it. */
typedef struct packed {
    tq_depthwise kernel;
    int32_t sums[];
} packed;

static uint64_t packed_bytes(const depthwise *d, uint64_t *weights_at)
{
    uint64_t total = 0;
    tq_scratch_part(&total, 1, sizeof(packed) + (uint64_t)d->out_channels * sizeof(int32_t));
    *weights_at = tq_scratch_part(&total, d->plan.packed_bytes, 1);
    return total;
}

static void pack(const depthwise *d, const tq_tensor *filter, packed *to)
{
    const int8_t *w = filter->data;
    const tq_gemm_weights weights = {.data = w, .type = TQ_i8, .channel_stride = 1, .k_stride = d->out_channels};
    uint64_t weights_at;
    packed_bytes(d, &weights_at);
    to->kernel = d->plan;
    tq_depthwise_pack(&to->kernel, &weights, (char *)to + weights_at);
    for (size_t o = 0; o < d->out_channels && !tq_stop_after(d->plan.taps); o++) {
        uint32_t sum = 0;
        for (size_t t = 0; t < d->plan.taps; t++)
            sum += (uint32_t)w[t * d->out_channels + o];
        to->sums[o] = (int32_t)sum;
    }
}

static void prepack(tq_node *node)
{
    pack(node->state, node->in[1], node->prepacked);
}

/* Integer sums are stored in the output, and scaled in place. */
static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    const depthwise *d = node->state;
    const tq_tensor *bias = node->in_count > 2 ? node->in[2] : NULL;
    const bool optimized = node->numerics == TQ_NUMERICS_OPTIMIZED;
    const size_t size = d->in_pixels * d->channels;
    const tq_gemm_store store = {.out = TQ_i32};
    const packed *filter = node->prepacked;
    if (d->out_pixels == 0)
        return TQ_OK;
    if (!d->constant) {
        pack(d, node->in[1], tq_scratch_at(node, d->packed_at));
        filter = tq_scratch_at(node, d->packed_at);
    }
    int8_t *quantized = tq_scratch_at(node, d->quantized_at);
    tq_gemm_scaling scaling = tq_hybrid_scaling(optimized ? TQ_SCALE_ROW_LAST : TQ_SCALE_PLAIN, node->in[1], bias, 0);
    scaling.weight_sums = filter->sums;
    for (size_t b = 0; b < d->batches && !tq_stop_after(size); b++) {
        const float *image = (const float *)node->in[0]->data + b * size;
        const tq_hybrid_row row = tq_hybrid_asymmetric(image, size, node->threads, quantized);
        const tq_depthwise padded =
            tq_depthwise_with_padding(&filter->kernel, (int8_t)row.zero_point, tq_scratch_at(node, d->padding_at));
        const tq_gemm_rows rows = {quantized, d->out_pixels, d->channels, &d->scan};
        float *out = (float *)node->out[0]->data + b * d->out_pixels * d->out_channels;
        const size_t remainder = optimized ? d->out_channels % 4 : 0;
        const tq_hybrid_pixels to = {d->out_pixels, d->out_channels, remainder, d->low, d->high, out};
        tq_depthwise_run(&padded, &rows, &store, out, d->out_channels, tq_scratch_at(node, d->work_at), node->threads);
        scaling.row = &row;
        tq_hybrid_scale_pixels(&scaling, &to, node->threads);
    }
    return TQ_OK;
}

static tq_status check(const tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(INT8), error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, 0, 4, 4, error));
    TQ_TRY(tq_check_rank(node, 1, 4, 4, error));
    const int32_t *x = node->in[0]->shape.dims, *w = node->in[1]->shape.dims;
    if (w[0] != 1)
        return tq_input_fail(node, 1, error, "has a first dimension of %d; it must be 1", w[0]);
    if (x[3] <= 0 || w[3] <= 0 || w[3] % x[3])
        return tq_input_fail(node, 1, error, "gives %d channels; a positive multiple of the input's %d is needed", w[3],
                             x[3]);
    if (node->in_count > 2 && node->in[2]) {
        TQ_TRY(tq_check_input(node, 2, TQ_T(FLOAT32), error));
        if (tq_tensor_count(node->in[2]) != (size_t)w[3])
            return tq_input_fail(node, 2, error, "has %zu elements; the filter gives %d channels",
                                 tq_tensor_count(node->in[2]), w[3]);
    }
    return tq_check_weight_scales(node, 1, 3, error);
}

static tq_status fit(tq_node *node, depthwise *d, tq_error *error)
{
    const tq_table *options = &node->options.table;
    const int32_t *x = node->in[0]->shape.dims, *w = node->in[1]->shape.dims;
    int64_t padding = tq_get_int(options, TQ_DepthwiseConv2DOptions_padding);
    tq_window down = {x[1],
                      w[1],
                      (int32_t)tq_get_int(options, TQ_DepthwiseConv2DOptions_stride_h),
                      (int32_t)tq_get_int(options, TQ_DepthwiseConv2DOptions_dilation_h_factor),
                      0,
                      0};
    tq_window right = {x[2],
                       w[2],
                       (int32_t)tq_get_int(options, TQ_DepthwiseConv2DOptions_stride_w),
                       (int32_t)tq_get_int(options, TQ_DepthwiseConv2DOptions_dilation_w_factor),
                       0,
                       0};
    TQ_TRY(tq_window_fit(node, "height", padding, &down, error));
    TQ_TRY(tq_window_fit(node, "width", padding, &right, error));
    d->scan = tq_scan_of(&down, &right);
    d->batches = (size_t)x[0];
    d->in_pixels = (size_t)x[1] * (size_t)x[2];
    d->out_pixels = (size_t)down.out * (size_t)right.out;
    d->channels = (size_t)x[3];
    d->out_channels = (size_t)w[3];
    tq_shape out = {4, {x[0], down.out, right.out, w[3]}};
    return tq_output_shape(node, 0, &out, error);
}

static tq_status request_prepack(tq_node *node, const depthwise *d, uint64_t bytes, tq_error *error)
{
    const tq_scan *s = &d->scan; /* weights are packed for it */
    const int64_t key[] = {(intptr_t)d->plan.kernel,
                           (int64_t)d->channels,
                           (int64_t)d->out_channels,
                           s->filter_h,
                           s->filter_w,
                           s->in_h,
                           s->in_w,
                           s->out_h,
                           s->out_w,
                           s->stride_h,
                           s->stride_w,
                           s->dilation_h,
                           s->dilation_w,
                           s->pad_h,
                           s->pad_w};
    return tq_node_prepack(node, bytes, prepack, key, (int)(sizeof key / sizeof *key), error);
}

tq_status tq_prepare_depthwise_hybrid(tq_node *node, tq_error *error)
{
    TQ_TRY(check(node, error));
    depthwise *d;
    uint64_t total = 0, weights_at;
    TQ_TRY(tq_node_state(node, sizeof *d, &d, error));
    TQ_TRY(fit(node, d, error));
    tq_activation_range_f32(node, tq_get_int(&node->options.table, TQ_DepthwiseConv2DOptions_fused_activation_function),
                            &d->low, &d->high);
    TQ_TRY(tq_depthwise_plan(&d->plan, TQ_i8, d->out_channels, d->out_channels / d->channels, 1, &d->scan, 0, error));
    const uint64_t bytes = packed_bytes(d, &weights_at);
    d->constant = tq_is_constant(node->in[1]);
    d->work_at = tq_scratch_part(&total, tq_depthwise_scratch_bytes(&d->plan, d->in_pixels, node->threads), 1);
    d->packed_at = tq_scratch_part(&total, d->constant ? 0 : bytes, 1);
    d->quantized_at = tq_scratch_part(&total, d->in_pixels * d->channels, 1);
    d->padding_at = tq_scratch_part(&total, tq_depthwise_padding_bytes(&d->plan), 1);
    node->eval = eval;
    if (d->constant)
        TQ_TRY(request_prepack(node, d, bytes, error));
    return tq_node_scratch(node, total, error);
}
