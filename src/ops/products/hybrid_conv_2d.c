/* SPDX-License-Identifier: Apache-2.0
 *
 * CONV_2D of float32 activations with weights of 8 or 4 bits: input [n, h, w, c], filter [o, kh, kw, c / groups].
 * A UINT8 filter holds int8 values (ops/products/hybrid.h).
 *
 * Each image is quantized separately (ops/products/hybrid.h), acc = sum (q - z) * w:
 *     symmetric     where all filter scales are equal and there is one group: act(f32(acc) * f32(s_x * s_w) + bias)
 *     asymmetric    else: act(f32(f32(acc) * s_w[o]) * s_x + bias)
 *     optimized     with one group: f32(acc) * f32(s_x * s_w[o]) in both
 *     XNNPACK       always asymmetric: fma(f32(f32(acc) * s_x), s_w[o], bias).  XNNPACK runs filters of 1x1 as fully
 *                   connected layers, which quantize each pixel separately.
 * Padding is the real value 0.
 *
 * Source: LiteRT f6745779, tflite/kernels/conv.cc (EvalHybrid, EvalHybridPerChannel),
 * internal/reference/conv.h.  LiteRT reads past the one scale of a grouped filter, and uses the first scale of a
 * UINT8 filter for all channels: here the scales must be equal.
 */
#include "ops/products/hybrid_conv_2d.h"

#include "kernels/gemm/gemm.h"
#include "ops/check.h"
#include "ops/products/convolution.h"
#include "ops/products/groups.h"
#include "ops/products/hybrid.h"
#include "ops/products/hybrid_fully_connected.h"
#include "ops/quantized.h"
#include "ops/scratch.h"

typedef struct convolution {
    tq_scan scan;
    size_t batches, in_pixels, out_pixels; /* of an image */
    size_t together; /* images of a product: 1, or all where these are small and no window reads padding */
    size_t channels, out_channels, groups, depth; /* depth: channels of a group */
    size_t merged; /* groups of the file in one of these */
    tq_hybrid_rule rule;
    float low, high;
    tq_gemm plan;  /* of each group */
    tq_gemm *gemm; /* [groups]: at the front of node->prepacked; for weights that are not constant, in node memory */
    bool constant, grouped; /* grouped: the file has several groups */
    uint64_t quantized_at, rows_at, padding_at, work_at; /* offsets in scratch */
    uint64_t packed_at, spread_at;              /* constant: offsets in node->prepacked; else in scratch */
    /* set by eval */
    const tq_node *node;
    tq_scale_order order;
    const tq_hybrid_row *rows; /* of an image: one; of several: one for each output pixel */
    size_t each; /* channels of a group */
    float *out;  /* of an image */
} convolution;

static uint64_t packed_bytes(const convolution *c)
{
    return (c->plan.packed_bytes + 63) / 64 * 64;
}

/* memory: that of packed_at and spread_at. */
static void pack(const convolution *c, const tq_tensor *filter, tq_gemm *gemm, char *memory)
{
    const size_t taps = tq_scan_taps(&c->scan), each = c->out_channels / c->groups, depth = c->depth / c->merged;
    const size_t patch = taps * depth;
    const tq_merged_shape shape = {c->merged, each, taps, depth};
    for (size_t g = 0; g < c->groups; g++) {
        tq_gemm_weights weights = {.data = (const int8_t *)filter->data + g * each * patch,
                                   .type = TQ_i8,
                                   .channel_stride = patch,
                                   .k_stride = 1};
        if (c->merged > 1)
            tq_spread_groups(&shape, &weights, (uint8_t *)memory + c->spread_at);
        gemm[g] = c->plan;
        tq_gemm_pack(&gemm[g], &weights, memory + c->packed_at + g * packed_bytes(c));
    }
}

static void prepack(tq_node *node)
{
    const convolution *c = node->state;
    pack(c, node->in[1], node->prepacked, node->prepacked);
}

static tq_status request_prepack(tq_node *node, const convolution *c, uint64_t bytes, tq_error *error)
{
    const int64_t key[] = {(intptr_t)c->plan.kernel,
                           (int64_t)c->out_channels,
                           (int64_t)c->groups,
                           (int64_t)tq_scan_taps(&c->scan),
                           (int64_t)c->depth,
                           (int64_t)c->plan.length,
                           (int64_t)c->plan.image_bytes + c->plan.image};
    return tq_node_prepack(node, bytes, prepack, key, (int)(sizeof key / sizeof *key), error);
}

static void eval_group(const convolution *c, const int8_t *quantized, size_t group)
{
    const tq_node *node = c->node;
    const size_t first = group * c->each;
    tq_gemm padded =
        tq_gemm_with_padding(&c->gemm[group], (int8_t)c->rows->zero_point, tq_scratch_at(node, c->padding_at));
    tq_gemm_rows rows = {quantized + group * c->depth, c->together * c->out_pixels, c->channels, &c->scan};
    tq_gemm_scaling scaling = tq_hybrid_scaling(c->order, node->in[1], node->in_count > 2 ? node->in[2] : NULL, first);
    scaling.row = c->rows;
    scaling.row_step = c->together > 1;
    scaling.weight_sums = tq_gemm_weight_sums(&padded);
    const tq_gemm_store store = {.out = TQ_f32, .floor = c->low, .ceiling = c->high, .scaling = &scaling};
    tq_gemm_run(&padded, &rows, &store, c->out + first, c->out_channels, tq_scratch_at(node, c->work_at),
                node->threads);
}

/* The optimized kernel has no groups. */
static bool has_optimized_kernel(const tq_node *node, const convolution *c)
{
    return node->numerics == TQ_NUMERICS_OPTIMIZED && !c->grouped;
}

/* Quantizes `together` images from image b on. */
static void quantize_images(convolution *c, size_t b, int8_t *quantized)
{
    const size_t size = c->in_pixels * c->channels;
    const float *values = (const float *)c->node->in[0]->data + b * size;
    tq_hybrid_row *rows = tq_scratch_at(c->node, c->rows_at), *images = rows + c->together * c->out_pixels;
    c->rows = rows;
    if (c->together == 1) {
        *rows = c->rule(values, size, c->node->threads, quantized);
        return;
    }
    tq_hybrid_quantize(c->rule, values, c->together, size, c->node->threads, quantized, images);
    for (size_t i = 0; i < c->together; i++)
        for (size_t k = 0; k < c->out_pixels; k++)
            *rows++ = images[i];
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    convolution c = *(const convolution *)node->state;
    int8_t *quantized = tq_scratch_at(node, c.quantized_at);
    if (c.out_pixels == 0)
        return TQ_OK;
    if (c.constant)
        c.gemm = node->prepacked;
    else
        pack(&c, node->in[1], c.gemm, tq_scratch_at(node, 0));
    c.node = node;
    c.order = c.rule == tq_hybrid_even                                           ? TQ_SCALE_FUSED
              : c.rule != tq_hybrid_symmetric && !has_optimized_kernel(node, &c) ? TQ_SCALE_ROW_LAST
                                                                                 : TQ_SCALE_PLAIN;
    c.each = c.out_channels / c.groups;
    for (size_t b = 0; b < c.batches; b += c.together) {
        quantize_images(&c, b, quantized);
        c.out = (float *)node->out[0]->data + b * c.out_pixels * c.out_channels;
        for (size_t g = 0; g < c.groups && !tq_stop_after(1); g++)
            eval_group(&c, quantized, g);
    }
    return TQ_OK;
}

static bool scales_differ(const tq_affine *q)
{
    for (uint32_t c = 1; c < q->count; c++)
        if (q->scale[c] != q->scale[0])
            return true;
    return false;
}

static tq_status check(const tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_input(node, 1, TQ_HYBRID_WEIGHTS | TQ_T(INT4), error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, 0, 4, 4, error));
    TQ_TRY(tq_check_rank(node, 1, 4, 4, error));
    const int32_t *x = node->in[0]->shape.dims, *w = node->in[1]->shape.dims;
    if (w[3] <= 0 || x[3] <= 0 || x[3] % w[3])
        return tq_input_fail(node, 1, error, "takes %d channels; the input's %d must be a multiple", w[3], x[3]);
    if (w[0] <= 0 || w[0] % (x[3] / w[3]))
        return tq_input_fail(node, 1, error, "gives %d channels; a positive multiple of its %d groups is needed", w[0],
                             x[3] / w[3]);
    if (node->in_count > 2 && node->in[2]) {
        TQ_TRY(tq_check_input(node, 2, TQ_T(FLOAT32), error));
        if (tq_tensor_count(node->in[2]) != (size_t)w[0])
            return tq_input_fail(node, 2, error, "has %zu elements; the filter gives %d channels",
                                 tq_tensor_count(node->in[2]), w[0]);
    }
    TQ_TRY(tq_check_weight_scales(node, 1, 0, error));
    if (node->in[1]->type == TQ_TensorType_UINT8 && (w[3] != x[3] || scales_differ(&node->in[1]->quantization)))
        return tq_input_fail(node, 1, error, "is UINT8; with a FLOAT32 input it needs one scale and one group");
    return TQ_OK;
}

static tq_status fit(tq_node *node, convolution *c, tq_error *error)
{
    const tq_table *options = &node->options.table;
    const int32_t *x = node->in[0]->shape.dims, *w = node->in[1]->shape.dims;
    int64_t padding = tq_get_int(options, TQ_Conv2DOptions_padding);
    tq_window down = {x[1],
                      w[1],
                      (int32_t)tq_get_int(options, TQ_Conv2DOptions_stride_h),
                      (int32_t)tq_get_int(options, TQ_Conv2DOptions_dilation_h_factor),
                      0,
                      0};
    tq_window right = {x[2],
                       w[2],
                       (int32_t)tq_get_int(options, TQ_Conv2DOptions_stride_w),
                       (int32_t)tq_get_int(options, TQ_Conv2DOptions_dilation_w_factor),
                       0,
                       0};
    TQ_TRY(tq_window_fit(node, "height", padding, &down, error));
    TQ_TRY(tq_window_fit(node, "width", padding, &right, error));
    c->scan = tq_scan_of(&down, &right);
    tq_shape out = {4, {x[0], down.out, right.out, w[0]}};
    TQ_TRY(tq_output_shape(node, 0, &out, error));
    c->batches = (size_t)x[0];
    c->in_pixels = (size_t)x[1] * (size_t)x[2];
    c->out_pixels = (size_t)down.out * (size_t)right.out;
    c->channels = (size_t)x[3];
    c->depth = (size_t)w[3];
    c->out_channels = (size_t)w[0];
    c->groups = (size_t)(x[3] / w[3]);
    return TQ_OK;
}

/* Whether XNNPACK runs the node as a fully connected layer. */
static bool is_fully_connected(const tq_node *node, const convolution *c)
{
    return node->numerics == TQ_NUMERICS_XNNPACK && c->scan.filter_h == 1 && c->scan.filter_w == 1 &&
           c->scan.stride_h == 1 && c->scan.stride_w == 1 && c->groups == 1 && c->channels + c->out_channels > 2;
}

/* Images of a product; a pixel's parameters take as long as those of a small image. */
static size_t together_of(const tq_node *node, const convolution *c)
{
    enum { SMALL = 64 };
    const bool pads = tq_get_int(&node->options.table, TQ_Conv2DOptions_padding) != TQ_Padding_VALID;
    return pads || c->out_pixels > SMALL || c->batches == 0 ? 1 : c->batches;
}

/* Plans the product of a group, or of merged ones. */
static tq_status plan_group(convolution *c, tq_error *error)
{
    const size_t taps = tq_scan_taps(&c->scan), each = c->out_channels / c->groups;
    TQ_TRY(tq_gemm_plan(&c->plan, TQ_i8, each, taps, c->depth, 0, error));
    c->merged = tq_merged_groups(c->groups, each, c->plan.lanes);
    c->groups /= c->merged, c->depth *= c->merged;
    if (c->merged > 1)
        TQ_TRY(tq_gemm_plan(&c->plan, TQ_i8, each * c->merged, taps, c->depth, 0, error));
    tq_gemm_plan_windows(&c->plan, &c->scan, c->channels, c->together);
    return TQ_OK;
}

tq_status tq_prepare_conv_2d_hybrid(tq_node *node, tq_error *error)
{
    TQ_TRY(check(node, error));
    convolution *c, shape = {0};
    int64_t activation = tq_get_int(&node->options.table, TQ_Conv2DOptions_fused_activation_function);
    TQ_TRY(fit(node, &shape, error));
    if (is_fully_connected(node, &shape))
        return tq_prepare_hybrid_rows(node, shape.batches * shape.out_pixels, shape.channels, shape.out_channels,
                                      activation, true, error);
    TQ_TRY(tq_node_state(node, sizeof *c, &c, error));
    *c = shape;
    tq_activation_range_f32(node, activation, &c->low, &c->high);
    c->rule = tq_hybrid_rule_of(node, c->groups != 1 || scales_differ(&node->in[1]->quantization));
    c->grouped = c->groups != 1;
    c->together = together_of(node, c);
    TQ_TRY(plan_group(c, error));
    c->constant = tq_is_constant(node->in[1]);
    uint64_t total = 0, prepacked = 0;
    if (c->constant)
        tq_scratch_part(&prepacked, c->groups, sizeof *c->gemm);
    else
        TQ_TRY(tq_node_memory(node, c->groups, sizeof *c->gemm, &c->gemm, error));
    c->work_at = tq_scratch_part(&total, tq_gemm_scratch_bytes(&c->plan, node->threads), 1);
    c->quantized_at = tq_scratch_part(&total, c->together * c->in_pixels, c->channels);
    c->rows_at = tq_scratch_part(&total, c->together * (c->out_pixels + 1), sizeof(tq_hybrid_row));
    uint64_t *of_weights = c->constant ? &prepacked : &total;
    c->packed_at = tq_scratch_part(of_weights, c->groups, packed_bytes(c));
    if (c->merged > 1)
        c->spread_at = tq_scratch_part(of_weights, c->out_channels / c->groups * tq_scan_taps(&c->scan), c->depth);
    c->padding_at = tq_scratch_part(&total, tq_gemm_padding_bytes(&c->plan), 1);
    node->eval = eval;
    if (c->constant)
        TQ_TRY(request_prepack(node, c, prepacked, error));
    return tq_node_scratch(node, total, error);
}
