/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxUnpooling2D (MediaPipe) and LiteRtMaxUnpooling2D (LiteRT), custom operators of float32 images: the inverse of
 * MAX_POOL_2D.
 *
 * Inputs x [n, h, w, c], and for each element its int32 position in an output image [oh, ow, c].  Output elements
 * without an input are 0; of inputs with one position the last wins.  Options (ops/mediapipe_options.h): padding,
 * stride of columns, of rows, filter's columns, rows.  SAME: oh = h * stride; VALID: oh = (h - 1) * stride + filter.
 *
 * Source: LiteRT f6745779, tflite/kernels/perception/max_unpooling_2d.cc.
 */
#include "ops/check.h"
#include "ops/mediapipe_options.h"

static tq_status eval(tq_node *node, tq_error *error)
{
    const float *x = node->in[0]->data;
    const int32_t *positions = node->in[1]->data;
    float *out = node->out[0]->data;
    size_t batches = (size_t)node->in[0]->shape.dims[0];
    size_t count = tq_shape_span(&node->in[0]->shape, 1, 4), room = tq_shape_span(&node->out[0]->shape, 1, 4);
    if (node->out[0]->bytes > 0)
        tq_fill(out, 0, node->out[0]->bytes);
    for (size_t b = 0; b < batches && !tq_stop_after(1); b++, out += room, x += count, positions += count)
        TQ_EACH (i, count) {
            if (positions[i] < 0 || (size_t)positions[i] >= room)
                return tq_op_fail(node, error, TQ_BAD_DATA, "element %zu of input 1 is position %d of %zu",
                                  b * count + i, (int)positions[i], room);
            out[positions[i]] = x[i];
        }
    return TQ_OK;
}

tq_status tq_prepare_max_unpooling_2d(tq_node *node, tq_error *error)
{
    int32_t options[5];
    tq_shape shape = {.rank = 0};
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, 0, 4, 4, error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(INT32), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    if (!tq_shape_equal(&node->in[0]->shape, &node->in[1]->shape))
        return tq_input_fail(node, 1, error, "has another shape than input 0");
    TQ_TRY(tq_mediapipe_options(node, options, 5, error));
    shape = node->in[0]->shape;
    for (int side = 1; side <= 2; side++) {
        int64_t in = shape.dims[side], stride = options[3 - side], filter = options[5 - side];
        int64_t out = options[0] == TQ_MEDIAPIPE_SAME ? in * stride : (in - 1) * stride + filter;
        if (out < 0 || out > INT32_MAX)
            return tq_output_fail(node, 0, error, "would have a side of %lld", (long long)out);
        shape.dims[side] = (int32_t)out;
    }
    node->eval = eval;
    return tq_output_shape(node, 0, &shape, error);
}
