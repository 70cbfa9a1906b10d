/* SPDX-License-Identifier: Apache-2.0
 *
 * MediaPipe's custom operators of float32 images, whose options are the bytes of a C record.
 *
 *   Convolution2DTransposeBias   x [n, h, w, c], weights [o, kh, kw, c], bias [o].  Options: padding (1 SAME, 2 VALID), stride
 *                                across, stride down.  Cell (y, x) adds to the output at (y * stride - pad + ky, ...); the output
 *                                has stride * (in - 1) + filter - 2 pads cells, pads = max(0, filter - (in - 1) % stride - 1) of SAME, of
 *                                which half stand in front
 *   MaxUnpooling2D,              x [n, h, w, c] and for each element its place in an image [oh, ow, c]; the others are 0, and of
 *   LiteRtMaxUnpooling2D         several the last stays.  Options: padding, stride across and down, filter across and down.  SAME:
 *                                oh = h * stride; VALID: (h - 1) * stride + filter
 *
 * Source: MediaPipe, mediapipe/util/tflite/operations/transpose_conv_bias.cc; LiteRT f6745779,
 * tflite/kernels/perception/max_unpooling_2d.cc.
 */
#include <string.h>

#include "ops/check.h"

enum { SAME = 1, VALID = 2 };

/* The first `count` INT32 of the options. */
static tq_status read_record(const tq_node *node, int32_t *out, size_t count, tq_error *error)
{
    tq_bytes bytes = {NULL, 0};
    tq_error inner;
    tq_status status = tq_operator_custom_options(&node->row, &bytes, &inner);
    if (status != TQ_OK)
        return tq_op_fail(node, error, status, "%s", inner.text);
    if (bytes.size < count * sizeof *out)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has %zu bytes of options; it needs %zu", bytes.size,
                          count * sizeof *out);
    memcpy(out, bytes.data, count * sizeof *out);
    if (out[0] != SAME && out[0] != VALID)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has padding %d; it needs 1, SAME, or 2, VALID", (int)out[0]);
    for (size_t i = 1; i < count; i++)
        if (out[i] < 1)
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has a stride or filter of %d; it needs 1 at least", (int)out[i]);
    return TQ_OK;
}

/* ---- Convolution2DTransposeBias ---- */

typedef struct side {
    int32_t in, filter, stride, pad, out;
} side;

typedef struct transposed {
    side y, x;
    size_t batches, channels, out_channels;
} transposed;

/* One side's output and the padding in front; in, filter and stride are below 2^31, so that 64 bits hold all. */
static tq_status fit(const tq_node *node, int32_t padding, side *s, tq_error *error)
{
    int64_t spare = s->filter - (int64_t)(s->in - 1) % s->stride - 1, pads = padding == SAME && spare > 0 ? spare : 0;
    int64_t out = (int64_t)s->stride * (s->in - 1) + s->filter - pads;
    if (out < 0 || out > INT32_MAX)
        return tq_output_fail(node, 0, error, "would have a side of %lld", (long long)out);
    s->pad = (int32_t)(pads / 2);
    s->out = (int32_t)out;
    return TQ_OK;
}

/* Adds what a cell gives to one place of the output. */
static void add_place(const transposed *s, const float *cell, const float *weights, size_t taps, float *out)
{
    size_t work = 0;
    for (size_t o = 0; o < s->out_channels && !tq_stop_count(&work, s->channels); o++, weights += taps * s->channels)
        for (size_t c = 0; c < s->channels; c++)
            out[o] += cell[c] * weights[c];
}

static void add_cell(const tq_node *node, const transposed *s, const float *cell, int64_t top, int64_t left, float *image)
{
    const float *weights = node->in[1]->data;
    size_t taps = (size_t)s->y.filter * (size_t)s->x.filter;
    for (int32_t ky = 0; ky < s->y.filter && !tq_stop_after((size_t)s->x.filter); ky++)
        for (int32_t kx = 0; kx < s->x.filter; kx++, weights += s->channels) {
            int64_t y = top + ky, x = left + kx;
            if (y >= 0 && y < s->y.out && x >= 0 && x < s->x.out)
                add_place(s, cell, weights, taps, image + (size_t)(y * s->x.out + x) * s->out_channels);
        }
}

static tq_status eval_transposed(tq_node *node, tq_error *error)
{
    (void)error;
    const transposed *s = node->state;
    const float *cell = node->in[0]->data, *bias = node->in[2]->data;
    float *image = node->out[0]->data;
    size_t size = (size_t)s->y.out * (size_t)s->x.out * s->out_channels;
    for (size_t b = 0; b < s->batches; b++, image += size) {
        TQ_EACH(i, size)
            image[i] = bias[i % s->out_channels];
        for (int32_t y = 0; y < s->y.in; y++)
            for (int32_t x = 0; x < s->x.in; x++, cell += s->channels)
                add_cell(node, s, cell, (int64_t)y * s->y.stride - s->y.pad, (int64_t)x * s->x.stride - s->x.pad, image);
    }
    return TQ_OK;
}

tq_status tq_prepare_transpose_conv_bias(tq_node *node, tq_error *error)
{
    transposed *s = NULL;
    int32_t options[3];
    for (int i = 0; i < 3; i++) {
        TQ_TRY(tq_check_input(node, i, TQ_T(FLOAT32), error));
        TQ_TRY(tq_check_rank(node, i, i < 2 ? 4 : 1, i < 2 ? 4 : 1, error));
    }
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    const int32_t *x = node->in[0]->shape.dims, *w = node->in[1]->shape.dims;
    if (w[3] != x[3] || w[1] < 1 || w[2] < 1)
        return tq_input_fail(node, 1, error, "is %d x %d of %d channels; the input has %d", (int)w[1], (int)w[2], (int)w[3],
                             (int)x[3]);
    if (node->in[2]->shape.dims[0] != w[0])
        return tq_input_fail(node, 2, error, "has %d elements for %d channels", (int)node->in[2]->shape.dims[0], (int)w[0]);
    if (x[1] < 1 || x[2] < 1)
        return tq_input_fail(node, 0, error, "is an image of %d x %d", (int)x[1], (int)x[2]);
    TQ_TRY(read_record(node, options, 3, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    *s = (transposed){.y = {.in = x[1], .filter = w[1], .stride = options[2]},
                      .x = {.in = x[2], .filter = w[2], .stride = options[1]},
                      .batches = (size_t)x[0], .channels = (size_t)x[3], .out_channels = (size_t)w[0]};
    TQ_TRY(fit(node, options[0], &s->y, error));
    TQ_TRY(fit(node, options[0], &s->x, error));
    tq_shape shape = {4, {x[0], s->y.out, s->x.out, w[0]}};
    node->eval = eval_transposed;
    return tq_output_shape(node, 0, &shape, error);
}

/* ---- MaxUnpooling2D ---- */

static tq_status eval_unpool(tq_node *node, tq_error *error)
{
    const float *x = node->in[0]->data;
    const int32_t *places = node->in[1]->data;
    float *out = node->out[0]->data;
    size_t batches = (size_t)node->in[0]->shape.dims[0];
    size_t count = tq_shape_span(&node->in[0]->shape, 1, 4), room = tq_shape_span(&node->out[0]->shape, 1, 4);
    if (node->out[0]->bytes > 0)
        tq_fill(out, 0, node->out[0]->bytes);
    for (size_t b = 0; b < batches && !tq_stop_after(1); b++, out += room, x += count, places += count)
        TQ_EACH(i, count) {
            if (places[i] < 0 || (size_t)places[i] >= room)
                return tq_op_fail(node, error, TQ_BAD_DATA, "element %zu of input 1 is place %d of %zu", b * count + i,
                                  (int)places[i], room);
            out[places[i]] = x[i];
        }
    return TQ_OK;
}

tq_status tq_prepare_max_unpooling(tq_node *node, tq_error *error)
{
    int32_t options[5];
    tq_shape shape = {.rank = 0};
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, 0, 4, 4, error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(INT32), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    if (!tq_shape_equal(&node->in[0]->shape, &node->in[1]->shape))
        return tq_input_fail(node, 1, error, "has another shape than input 0");
    TQ_TRY(read_record(node, options, 5, error));
    shape = node->in[0]->shape;
    for (int side = 1; side <= 2; side++) {
        int64_t in = shape.dims[side], stride = options[3 - side], filter = options[5 - side];
        int64_t out = options[0] == SAME ? in * stride : (in - 1) * stride + filter;
        if (out < 0 || out > INT32_MAX)
            return tq_output_fail(node, 0, error, "would have a side of %lld", (long long)out);
        shape.dims[side] = (int32_t)out;
    }
    node->eval = eval_unpool;
    return tq_output_shape(node, 0, &shape, error);
}
