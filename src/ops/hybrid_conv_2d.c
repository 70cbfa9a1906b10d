/* SPDX-License-Identifier: Apache-2.0
 *
 * CONV_2D of float32 activations with weights of 8 or 4 bits: input [n, h, w, c], filter [o, kh, kw, c / groups].
 *
 * Each image is quantized on its own (ops/hybrid.h).  Where all filter scales are equal and there is one group,
 * symmetrically:      out = act(f32(acc) * f32(s_x * s_w) + bias)
 * else asymmetrically: out = act(f32(f32(acc) * s_w[o]) * s_x + bias), acc = sum (q - z) * w
 * Cells of the padding are real zeros.
 *
 * Source: LiteRT f6745779, tflite/kernels/conv.cc (EvalHybrid, EvalHybridPerChannel),
 * internal/reference/conv.h.  There, grouped filters with one scale read past it.
 */
#include <string.h>

#include "base/threads.h"
#include "ops/check.h"
#include "ops/dot.h"
#include "ops/hybrid.h"
#include "ops/quantized.h"
#include "ops/scratch.h"
#include "ops/window.h"

typedef struct convolution {
    tq_window y, x;
    size_t batches, channels, out_channels, groups;
    size_t patch; /* of one group: kh * kw * c / groups */
    size_t tasks; /* output rows are dealt to so many, each with its own scratch */
    bool symmetric;
    tq_hybrid_rule rule;
    float low, high;
    int32_t *sums; /* of each output channel's weights; NULL where they are not constant */
    uint64_t images_at, codes_at, patches_at, sums_at; /* in scratch; sums: of weights that are not constant */
    /* in eval */
    const tq_node *node;
    const int8_t *codes;
    const tq_hybrid_row *image;
    int8_t *patches;
} convolution;

/* The cells under the filter, group by group; those of the padding hold the zero point. */
static void gather(const convolution *c, size_t batch, int32_t out_y, int32_t out_x, int8_t *patch)
{
    size_t depth = c->channels / c->groups, rows = (size_t)c->y.in, cols = (size_t)c->x.in;
    const int8_t *image = c->codes + batch * rows * cols * c->channels;
    int64_t top = tq_window_origin(&c->y, out_y), left = tq_window_origin(&c->x, out_x);
    for (size_t g = 0; g < c->groups; g++)
        for (int32_t ky = 0; ky < c->y.filter; ky++)
            for (int32_t kx = 0; kx < c->x.filter; kx++, patch += depth) {
                int64_t y = top + (int64_t)ky * c->y.dilation, x = left + (int64_t)kx * c->x.dilation;
                if (y < 0 || y >= c->y.in || x < 0 || x >= c->x.in)
                    memset(patch, c->image[batch].zero_point, depth);
                else
                    memcpy(patch, image + ((size_t)y * cols + (size_t)x) * c->channels + g * depth, depth);
            }
}

static float scaled(const convolution *c, int32_t acc, const tq_tensor *filter, size_t o, float image_scale)
{
    float scale = tq_scale_at(filter, o);
    return c->symmetric ? (float)acc * (image_scale * scale) : (float)acc * scale * image_scale;
}

static void eval_pixel(const convolution *c, size_t batch, const int8_t *patch, float *out)
{
    const tq_tensor *filter = c->node->in[1], *bias = c->node->in_count > 2 ? c->node->in[2] : NULL;
    size_t each = c->out_channels / c->groups;
    const tq_hybrid_row *image = c->image + batch;
    for (size_t o = 0; o < c->out_channels; o++) {
        const int8_t *w = (const int8_t *)filter->data + o * c->patch;
        int64_t acc = tq_dot_i8(w, patch + o / each * c->patch, c->patch);
        acc -= (int64_t)image->zero_point * c->sums[o];
        float y = scaled(c, tq_wrap_i32(acc), filter, o, image->scale);
        y = bias ? y + ((const float *)bias->data)[o] : y;
        y = y < c->low ? c->low : y;
        out[o] = y > c->high ? c->high : y;
    }
}

/* A task takes every tasks-th row of the output, counted over the batch. */
static void eval_tasks(void *context, size_t begin, size_t end)
{
    const convolution *c = context;
    size_t height = (size_t)c->y.out, rows = c->batches * height;
    float *out = c->node->out[0]->data;
    for (size_t task = begin; task < end; task++) {
        int8_t *patch = c->patches + task * c->patch * c->groups;
        for (size_t row = task; row < rows; row += c->tasks)
            for (int32_t x = 0; x < c->x.out; x++) {
                gather(c, row / height, (int32_t)(row % height), x, patch);
                eval_pixel(c, row / height, patch, out + (row * (size_t)c->x.out + (size_t)x) * c->out_channels);
            }
    }
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    convolution c = *(const convolution *)node->state;
    tq_hybrid_row *image = tq_scratch_at(node, c.images_at);
    int8_t *codes = tq_scratch_at(node, c.codes_at);
    size_t size = (size_t)c.y.in * (size_t)c.x.in * c.channels;
    for (size_t b = 0; b < c.batches; b++)
        image[b] = c.rule((const float *)node->in[0]->data + b * size, size, codes + b * size);
    if (!c.sums) {
        c.sums = tq_scratch_at(node, c.sums_at);
        tq_row_sums(node->in[1]->data, c.out_channels, c.patch, c.sums);
    }
    c.node = node;
    c.codes = codes;
    c.image = image;
    c.patches = tq_scratch_at(node, c.patches_at);
    tq_parallel_for(c.tasks, 1, node->threads, eval_tasks, &c);
    return TQ_OK;
}

static tq_status check(const tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_counts(node, 2, 3, 1, 1, error));
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(INT8) | TQ_T(INT4), error));
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
    return tq_check_weight_scales(node, 1, 0, error);
}

static bool scales_differ(const tq_affine *q)
{
    for (uint32_t c = 1; c < q->count; c++)
        if (q->scale[c] != q->scale[0])
            return true;
    return false;
}

static tq_status fit(tq_node *node, convolution *c, tq_error *error)
{
    const tq_table *options = &node->options.table;
    const int32_t *x = node->in[0]->shape.dims, *w = node->in[1]->shape.dims;
    int64_t padding = tq_get_int(options, TQ_Conv2DOptions_padding);
    c->y = (tq_window){x[1], w[1], (int32_t)tq_get_int(options, TQ_Conv2DOptions_stride_h),
                       (int32_t)tq_get_int(options, TQ_Conv2DOptions_dilation_h_factor), 0, 0};
    c->x = (tq_window){x[2], w[2], (int32_t)tq_get_int(options, TQ_Conv2DOptions_stride_w),
                       (int32_t)tq_get_int(options, TQ_Conv2DOptions_dilation_w_factor), 0, 0};
    TQ_TRY(tq_window_fit(node, "height", padding, &c->y, error));
    TQ_TRY(tq_window_fit(node, "width", padding, &c->x, error));
    c->batches = (size_t)x[0];
    c->channels = (size_t)x[3];
    c->out_channels = (size_t)w[0];
    c->groups = (size_t)(x[3] / w[3]);
    c->patch = (size_t)w[1] * (size_t)w[2] * (size_t)w[3];
    tq_shape out = {4, {x[0], c->y.out, c->x.out, w[0]}};
    return tq_output_shape(node, 0, &out, error);
}

tq_status tq_prepare_conv_2d_hybrid(tq_node *node, tq_error *error)
{
    TQ_TRY(check(node, error));
    convolution *c;
    TQ_TRY(tq_node_state(node, sizeof *c, &c, error));
    TQ_TRY(fit(node, c, error));
    int64_t activation = tq_get_int(&node->options.table, TQ_Conv2DOptions_fused_activation_function);
    tq_activation_floats(activation, &c->low, &c->high);
    bool asymmetric = c->groups != 1 || scales_differ(&node->in[1]->quantization);
    c->rule = tq_hybrid_rule_of(node, asymmetric);
    c->symmetric = c->rule == tq_hybrid_symmetric;
    size_t rows = c->batches * (size_t)c->y.out;
    c->tasks = rows < (size_t)node->threads ? rows : (size_t)node->threads;
    if (tq_is_constant(node->in[1])) {
        TQ_TRY(tq_node_memory(node, c->out_channels, sizeof *c->sums, &c->sums, error));
        tq_row_sums(node->in[1]->data, c->out_channels, c->patch, c->sums);
    }
    uint64_t total = 0;
    c->images_at = tq_scratch_part(&total, c->batches, sizeof(tq_hybrid_row));
    c->codes_at = tq_scratch_part(&total, tq_tensor_count(node->in[0]), 1);
    c->patches_at = tq_scratch_part(&total, c->tasks, c->patch * c->groups);
    c->sums_at = tq_scratch_part(&total, c->sums ? 0 : c->out_channels, sizeof *c->sums);
    node->eval = eval;
    return tq_node_scratch(node, total, error);
}
