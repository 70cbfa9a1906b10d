/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution2DTransposeBias, MediaPipe's custom operator: a transposed convolution of float32 images.
 *
 * Inputs x [n, h, w, c], weights [o, kh, kw, c], bias [o].  Options (ops/mediapipe_options.h): padding, stride of
 * columns, stride of rows.  Input pixel (y, x) adds to output pixels (y * stride - pad + ky, x * stride - pad + kx).
 * A side has stride * (in - 1) + filter - pads output pixels; SAME: pads = max(0, filter - (in - 1) % stride - 1), and
 * pad = pads / 2; VALID: pads = pad = 0.
 *
 * Source: MediaPipe, mediapipe/util/tflite/operations/transpose_conv_bias.cc.
 */
#include <string.h>

#include "kernels/isa.h"
#include "ops/check.h"
#include "ops/mediapipe_options.h"
#include "ops/scratch.h"

enum { MOST = 16 }; /* sums that registers hold */

typedef struct side {
    int32_t in, filter, stride, pad, out;
} side;

typedef struct transpose_conv {
    side y, x;
    size_t batches, channels, out_channels;
} transpose_conv;

/* Computes s->out and s->pad.  in, filter and stride are in [1, 2^31), so that no 64-bit sum overflows. */
static tq_status fit(const tq_node *node, int32_t padding, side *s, tq_error *error)
{
    int64_t spare = s->filter - (int64_t)(s->in - 1) % s->stride - 1;
    int64_t pads = padding == TQ_MEDIAPIPE_SAME && spare > 0 ? spare : 0;
    int64_t out = (int64_t)s->stride * (s->in - 1) + s->filter - pads;
    if (out < 0 || out > INT32_MAX)
        return tq_output_fail(node, 0, error, "would have a side of %lld; it needs one from 0 to 2^31 - 1",
                              (long long)out);
    s->pad = (int32_t)(pads / 2);
    s->out = (int32_t)out;
    return TQ_OK;
}

/* Weights [ky][c][kx][o] from [o][ky][kx][c]: a filter row's products with a channel lie side by side, as its output
   pixels do. */
static void turn_weights(const tq_node *node, const transpose_conv *s, float *to)
{
    const float *from = node->in[1]->data;
    const size_t height = (size_t)s->y.filter, width = (size_t)s->x.filter;
    for (size_t ky = 0; ky < height; ky++)
        for (size_t c = 0; c < s->channels && !tq_stop_after(width * s->out_channels); c++)
            for (size_t kx = 0; kx < width; kx++)
                for (size_t o = 0; o < s->out_channels; o++)
                    *to++ = from[((o * height + ky) * width + kx) * s->channels + c];
}

/* out[i] += cell . the weights of output i, channel by channel, for i < some; step: from a channel's weights to the
   next one's. */
TQ_BODY void add_some(const float *cell, const float *weights, size_t channels, size_t step, float *out,
                      const size_t some)
{
    float sums[MOST];
    memcpy(sums, out, some * sizeof *out);
    for (size_t c = 0; c < channels; c++, weights += step)
        _Pragma("GCC unroll 1") for (size_t i = 0; i < some; i++) sums[i] += cell[c] * weights[i];
    memcpy(out, sums, some * sizeof *out);
}

TQ_BODY void add_run(const float *cell, const float *weights, size_t channels, size_t step, float *out, size_t n)
{
    size_t i = 0;
    for (; n - i >= MOST; i += MOST)
        add_some(cell, weights + i, channels, step, out + i, MOST);
    for (; n - i >= 4; i += 4)
        add_some(cell, weights + i, channels, step, out + i, 4);
    if (i < n)
        add_some(cell, weights + i, channels, step, out + i, n - i);
}

#define ADD_RUN(isa, target)                                                                                \
    target static void add_run_##isa(const float *cell, const float *weights, size_t channels, size_t step, \
                                     float *out, size_t n)                                                  \
    {                                                                                                       \
        add_run(cell, weights, channels, step, out, n);                                                     \
    }
TQ_EVERY_ISA(ADD_RUN)

/* Adds an input pixel to the output.  (top, left): the output pixel of the first tap, which may be outside. */
static void add_cell(const transpose_conv *s, const float *weights, const float *cell, int64_t top, int64_t left,
                     float *image)
{
    static void (*const bodies[TQ_ISAS])(const float *, const float *, size_t, size_t, float *, size_t) =
        TQ_ISA_FUNCTIONS(add_run);
    const int64_t begin = left < 0 ? -left : 0;
    const int64_t end = s->x.out - left < s->x.filter ? s->x.out - left : s->x.filter;
    const size_t step = (size_t)s->x.filter * s->out_channels;
    for (int32_t ky = 0; ky < s->y.filter && !tq_stop_after(step); ky++, weights += s->channels * step) {
        const int64_t y = top + ky;
        if (y >= 0 && y < s->y.out && begin < end)
            bodies[tq_isa()](cell, weights + (size_t)begin * s->out_channels, s->channels, step,
                             image + (size_t)(y * s->x.out + left + begin) * s->out_channels,
                             (size_t)(end - begin) * s->out_channels);
    }
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    const transpose_conv *s = node->state;
    const float *cell = node->in[0]->data, *bias = node->in[2]->data;
    float *image = node->out[0]->data, *weights = tq_scratch_at(node, 0);
    turn_weights(node, s, weights);
    size_t size = (size_t)s->y.out * (size_t)s->x.out * s->out_channels;
    for (size_t b = 0; b < s->batches; b++, image += size) {
        TQ_EACH (i, size)
            image[i] = bias[i % s->out_channels];
        for (int32_t y = 0; y < s->y.in; y++)
            for (int32_t x = 0; x < s->x.in; x++, cell += s->channels)
                add_cell(s, weights, cell, (int64_t)y * s->y.stride - s->y.pad, (int64_t)x * s->x.stride - s->x.pad,
                         image);
    }
    return TQ_OK;
}

tq_status tq_prepare_convolution_2d_transpose_bias(tq_node *node, tq_error *error)
{
    transpose_conv *s = NULL;
    int32_t options[3];
    for (int i = 0; i < 3; i++) {
        TQ_TRY(tq_check_input(node, i, TQ_T(FLOAT32), error));
        TQ_TRY(tq_check_rank(node, i, i < 2 ? 4 : 1, i < 2 ? 4 : 1, error));
    }
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    const int32_t *x = node->in[0]->shape.dims, *w = node->in[1]->shape.dims;
    if (w[3] != x[3] || w[1] < 1 || w[2] < 1)
        return tq_input_fail(node, 1, error, "is %d x %d of %d channels; the input has %d", (int)w[1], (int)w[2],
                             (int)w[3], (int)x[3]);
    if (node->in[2]->shape.dims[0] != w[0])
        return tq_input_fail(node, 2, error, "has %d elements for %d channels", (int)node->in[2]->shape.dims[0],
                             (int)w[0]);
    if (x[1] < 1 || x[2] < 1)
        return tq_input_fail(node, 0, error, "is an image of %d x %d", (int)x[1], (int)x[2]);
    TQ_TRY(tq_mediapipe_options(node, options, 3, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    *s = (transpose_conv){.y = {.in = x[1], .filter = w[1], .stride = options[2]},
                          .x = {.in = x[2], .filter = w[2], .stride = options[1]},
                          .batches = (size_t)x[0],
                          .channels = (size_t)x[3],
                          .out_channels = (size_t)w[0]};
    TQ_TRY(fit(node, options[0], &s->y, error));
    TQ_TRY(fit(node, options[0], &s->x, error));
    tq_shape shape = {4, {x[0], s->y.out, s->x.out, w[0]}};
    node->eval = eval;
    TQ_TRY(tq_node_scratch(node, tq_tensor_count(node->in[1]) * sizeof(float), error));
    return tq_output_shape(node, 0, &shape, error);
}
