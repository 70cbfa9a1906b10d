/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution2DTransposeBias, MediaPipe's custom operator: a transposed convolution of float32 images.
 *
 * Inputs x [n, h, w, c], weights [o, kh, kw, c], bias [o].  Options (ops/mediapipe_options.h): padding, stride of
 * columns, stride of rows.  Input pixel (y, x) adds to output pixels (y * stride - pad + ky, x * stride - pad + kx).
 * A side has stride * (in - 1) + filter - pads output pixels; SAME: pads = max(0, filter - (in - 1) % stride - 1), and
 * pad = pads / 2; VALID: pads = pad = 0.
 *
 * Sums run in XNNPACK's order under all numerics: LiteRT has no other kernel of the operator.
 *
 * Source: MediaPipe, mediapipe/util/tflite/operations/transpose_conv_bias.cc; LiteRT f6745779,
 * tflite/delegates/xnnpack/xnnpack_delegate.cc, VisitMediaPipeDeconvolutionNode.
 */
#include "ops/check.h"
#include "ops/mediapipe_options.h"
#include "ops/products/transpose_conv.h"

enum { INPUT, WEIGHTS, BIAS };

/* A dimension of `in` pixels as a window of its output.  in, filter and stride are in [1, 2^31), so that no 64-bit sum
   overflows. */
static tq_status fit(const tq_node *node, int32_t padding, int32_t in, int32_t filter, int32_t stride, tq_window *w,
                     tq_error *error)
{
    const int64_t spare = filter - (int64_t)(in - 1) % stride - 1;
    const int64_t pads = padding == TQ_MEDIAPIPE_SAME && spare > 0 ? spare : 0;
    const int64_t out = (int64_t)stride * (in - 1) + filter - pads;
    if (out < 0 || out > INT32_MAX)
        return tq_output_fail(node, 0, error, "would have a side of %lld; it needs one from 0 to 2^31 - 1",
                              (long long)out);
    *w = (tq_window){
        .in = (int32_t)out, .filter = filter, .stride = stride, .dilation = 1, .out = in, .pad = (int32_t)(pads / 2)};
    return TQ_OK;
}

tq_status tq_prepare_convolution_2d_transpose_bias(tq_node *node, tq_error *error)
{
    tq_window height, width;
    int32_t options[3];
    for (int i = 0; i < 3; i++) {
        TQ_TRY(tq_check_input(node, i, TQ_T(FLOAT32), error));
        TQ_TRY(tq_check_rank(node, i, i < 2 ? 4 : 1, i < 2 ? 4 : 1, error));
    }
    TQ_TRY(tq_check_output_like(node, 0, INPUT, error));
    const int32_t *x = node->in[INPUT]->shape.dims, *w = node->in[WEIGHTS]->shape.dims;
    if (w[3] != x[3] || w[1] < 1 || w[2] < 1)
        return tq_input_fail(node, WEIGHTS, error, "is %d x %d of %d channels; the input has %d", (int)w[1], (int)w[2],
                             (int)w[3], (int)x[3]);
    if (node->in[BIAS]->shape.dims[0] != w[0])
        return tq_input_fail(node, BIAS, error, "has %d elements for %d channels", (int)node->in[BIAS]->shape.dims[0],
                             (int)w[0]);
    if (x[1] < 1 || x[2] < 1)
        return tq_input_fail(node, INPUT, error, "is an image of %d x %d", (int)x[1], (int)x[2]);
    TQ_TRY(tq_mediapipe_options(node, options, 3, error));
    TQ_TRY(fit(node, options[0], x[1], w[1], options[2], &height, error));
    TQ_TRY(fit(node, options[0], x[2], w[2], options[1], &width, error));
    const tq_shape shape = {4, {x[0], height.in, width.in, w[0]}};
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    return tq_transpose_conv_prepare_fused(node, INPUT, BIAS, &height, &width, error);
}
