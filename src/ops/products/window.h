/* SPDX-License-Identifier: Apache-2.0
 *
 * One spatial dimension of a convolution: its output size, its padding, and the taps of the filter that lie inside the
 * input at an output position.
 *
 *     SAME    out = ceil(in / stride)
 *     VALID   out = (in + stride - effective) / stride, effective = (filter - 1) * dilation + 1
 *     pad     max((out - 1) * stride + effective - in, 0) / 2 cells in front; the greater half behind
 *
 * Source: LiteRT f6745779, tflite/kernels/padding.h.
 */
#ifndef TQ_OPS_PRODUCTS_WINDOW_H
#define TQ_OPS_PRODUCTS_WINDOW_H

#include "ops/op.h"

typedef struct tq_window {
    int32_t in, filter, stride, dilation; /* in >= 0, the others >= 1 once tq_window_fit has checked */
    int32_t out, pad; /* from tq_window_fit */
} tq_window;

/* Sets out and pad.  window->in >= 0; padding: TQ_Padding_x.  TQ_BAD_OPERATOR, naming `what` ("height"), for a stride,
   dilation or filter < 1, another padding, and an output size or pad outside [0, 2^31). */
tq_status tq_window_fit(const tq_node *node, const char *what, int64_t padding, tq_window *window, tq_error *error);

/* The input position of the first tap for output position `out`; negative in the padding. */
static inline int64_t tq_window_origin(const tq_window *window, int32_t out)
{
    return (int64_t)out * window->stride - window->pad;
}

/* The taps [*first, *end) that lie inside the input for output position `out`, 0 <= out < window->out. */
static inline void tq_window_taps(const tq_window *window, int32_t out, int32_t *first, int32_t *end)
{
    int64_t origin = tq_window_origin(window, out), inside = window->in - origin;
    int64_t low = origin < 0 ? (-origin + window->dilation - 1) / window->dilation : 0;
    int64_t high = inside <= 0 ? 0 : (inside + window->dilation - 1) / window->dilation;
    if (high > window->filter)
        high = window->filter;
    if (low > high)
        low = high;
    *first = (int32_t)low;
    *end = (int32_t)high;
}

#endif
