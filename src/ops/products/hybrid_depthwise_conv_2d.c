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

#include <string.h>

#include "base/threads.h"
#include "kernels/isa.h"
#include "ops/check.h"
#include "ops/products/dot.h"
#include "ops/products/hybrid.h"
#include "ops/quantized.h"
#include "ops/scratch.h"
#include "ops/products/window.h"

/* Products of a pixel, some milliseconds, above which eval hears Ctrl-C within the pixel. */
enum { LARGE = 1 << 20 };

typedef struct depthwise {
    tq_window y, x;
    size_t batches, channels, out_channels;
    size_t tasks;
    float low, high;
    uint64_t images_at, quantized_at, sums_at; /* in scratch */
    /* set by eval */
    const tq_node *node;
    const int8_t *quantized;
    const tq_hybrid_row *image;
    int32_t *sums; /* out_channels for each task */
} depthwise;

/* sums[o] += (cell[o / m] - z) * w[o], modulo 2^32 as in the reference.  |product| < 2^16, so a sum of fewer
   than 2^15 taps does not wrap. */
TQ_BODY void add_tap(const int8_t *cell, const int8_t *w, size_t channels, size_t multiplier, int32_t zero_point,
                     int32_t *sums)
{
    if (multiplier == 1) {
        for (size_t c = 0; c < channels; c++)
            sums[c] = (int32_t)((uint32_t)sums[c] + (uint32_t)((cell[c] - zero_point) * w[c]));
        return;
    }
    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < multiplier; i++, sums++, w++)
            *sums = (int32_t)((uint32_t)*sums + (uint32_t)((cell[c] - zero_point) * *w));
}

TQ_BODY void eval_pixel(const depthwise *d, size_t batch, int32_t out_y, int32_t out_x, int32_t *sums)
{
    const int8_t *filter = d->node->in[1]->data;
    const int8_t *image = d->quantized + batch * (size_t)d->y.in * (size_t)d->x.in * d->channels;
    int32_t y0, y1, x0, x1;
    tq_window_taps(&d->y, out_y, &y0, &y1);
    tq_window_taps(&d->x, out_x, &x0, &x1);
    memset(sums, 0, d->out_channels * sizeof *sums);
    const size_t row = y0 < y1 && x0 < x1 ? (size_t)(x1 - x0) * d->out_channels : 0;
    const bool large = row * (size_t)(y1 - y0) > LARGE;
    for (int32_t ky = y0; ky < y1 && !(large && tq_stop_after(row / 4)); ky++)
        for (int32_t kx = x0; kx < x1; kx++) {
            size_t y = (size_t)(tq_window_origin(&d->y, out_y) + (int64_t)ky * d->y.dilation);
            size_t x = (size_t)(tq_window_origin(&d->x, out_x) + (int64_t)kx * d->x.dilation);
            add_tap(image + (y * (size_t)d->x.in + x) * d->channels,
                    filter + ((size_t)ky * (size_t)d->x.filter + (size_t)kx) * d->out_channels, d->channels,
                    d->out_channels / d->channels, d->image[batch].zero_point, sums);
        }
}

TQ_BODY float scaled(bool optimized, size_t o, size_t channels, float sum, float weight, float image)
{
    if (!optimized)
        return sum * (weight * image);
    return o < channels - channels % 4 ? sum * weight * image : sum * image * weight;
}

TQ_BODY void store(const depthwise *d, size_t batch, const int32_t *sums, float *out)
{
    const tq_tensor *bias = d->node->in_count > 2 ? d->node->in[2] : NULL;
    const tq_affine *q = &d->node->in[1]->quantization;
    const float *added = bias ? bias->data : NULL, *weight = q->scale;
    const bool optimized = d->node->numerics == TQ_NUMERICS_OPTIMIZED, many = q->count > 1;
    const float low = d->low, high = d->high, image = d->image[batch].scale;
    const size_t channels = d->out_channels;
    for (size_t o = 0; o < channels; o++) {
        float y = scaled(optimized, o, channels, (float)sums[o], weight[many ? o : 0], image);
        y = added ? y + added[o] : y;
        y = y < low ? low : y;
        out[o] = y > high ? high : y;
    }
}

TQ_BODY void eval_range(const depthwise *d, size_t begin, size_t end)
{
    size_t height = (size_t)d->y.out, rows = d->batches * height;
    float *out = d->node->out[0]->data;
    size_t work = 0;
    for (size_t task = begin; task < end; task++) {
        int32_t *sums = d->sums + task * d->out_channels;
        for (size_t row = task; row < rows; row += d->tasks)
            for (int32_t x = 0; x < d->x.out && !tq_stop_count(&work, d->out_channels); x++) {
                eval_pixel(d, row / height, (int32_t)(row % height), x, sums);
                store(d, row / height, sums, out + (row * (size_t)d->x.out + (size_t)x) * d->out_channels);
            }
    }
}

#define EVAL_TASKS(isa, target)                                                  \
    static target void eval_tasks_##isa(void *context, size_t begin, size_t end) \
    {                                                                            \
        eval_range(context, begin, end);                                         \
    }
TQ_EVERY_ISA(EVAL_TASKS)

static tq_status eval(tq_node *node, tq_error *error)
{
    static void (*const tasks[TQ_ISAS])(void *, size_t, size_t) = TQ_ISA_FUNCTIONS(eval_tasks);
    (void)error;
    depthwise d = *(const depthwise *)node->state;
    tq_hybrid_row *image = tq_scratch_at(node, d.images_at);
    int8_t *quantized = tq_scratch_at(node, d.quantized_at);
    size_t size = (size_t)d.y.in * (size_t)d.x.in * d.channels;
    for (size_t b = 0; b < d.batches && !tq_stop_after(size); b++)
        image[b] = tq_hybrid_asymmetric((const float *)node->in[0]->data + b * size, size, node->threads,
                                        quantized + b * size);
    d.node = node;
    d.quantized = quantized;
    d.image = image;
    d.sums = tq_scratch_at(node, d.sums_at);
    tq_parallel_for(d.tasks, 1, node->threads, tasks[tq_isa()], &d);
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

tq_status tq_prepare_depthwise_hybrid(tq_node *node, tq_error *error)
{
    TQ_TRY(check(node, error));
    depthwise *d;
    TQ_TRY(tq_node_state(node, sizeof *d, &d, error));
    const tq_table *options = &node->options.table;
    const int32_t *x = node->in[0]->shape.dims, *w = node->in[1]->shape.dims;
    int64_t padding = tq_get_int(options, TQ_DepthwiseConv2DOptions_padding);
    d->y = (tq_window){x[1],
                       w[1],
                       (int32_t)tq_get_int(options, TQ_DepthwiseConv2DOptions_stride_h),
                       (int32_t)tq_get_int(options, TQ_DepthwiseConv2DOptions_dilation_h_factor),
                       0,
                       0};
    d->x = (tq_window){x[2],
                       w[2],
                       (int32_t)tq_get_int(options, TQ_DepthwiseConv2DOptions_stride_w),
                       (int32_t)tq_get_int(options, TQ_DepthwiseConv2DOptions_dilation_w_factor),
                       0,
                       0};
    TQ_TRY(tq_window_fit(node, "height", padding, &d->y, error));
    TQ_TRY(tq_window_fit(node, "width", padding, &d->x, error));
    d->batches = (size_t)x[0];
    d->channels = (size_t)x[3];
    d->out_channels = (size_t)w[3];
    tq_activation_range_f32(node, tq_get_int(options, TQ_DepthwiseConv2DOptions_fused_activation_function), &d->low,
                            &d->high);
    tq_shape out = {4, {x[0], d->y.out, d->x.out, w[3]}};
    TQ_TRY(tq_output_shape(node, 0, &out, error));
    size_t rows = d->batches * (size_t)d->y.out;
    d->tasks = rows < (size_t)node->threads ? rows : (size_t)node->threads;
    uint64_t total = 0;
    d->images_at = tq_scratch_part(&total, d->batches, sizeof(tq_hybrid_row));
    d->quantized_at = tq_scratch_part(&total, tq_tensor_count(node->in[0]), 1);
    d->sums_at = tq_scratch_part(&total, d->tasks * d->out_channels, sizeof *d->sums);
    node->eval = eval;
    return tq_node_scratch(node, total, error);
}
