/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/products/convolution.h"

#include <math.h>

#include "ops/check.h"

tq_scan tq_scan_of(const tq_window *down, const tq_window *right)
{
    if (right->in == 1 && right->filter == 1 && right->out == 1 && (down->in != 1 || down->filter != 1))
        return tq_scan_of(right, down);
    return (tq_scan){.in_h = down->in,
                     .in_w = right->in,
                     .out_h = down->out,
                     .out_w = right->out,
                     .filter_h = down->filter,
                     .filter_w = right->filter,
                     .stride_h = down->stride,
                     .stride_w = right->stride,
                     .dilation_h = down->dilation,
                     .dilation_w = right->dilation,
                     .pad_h = down->pad,
                     .pad_w = right->pad};
}

tq_status tq_convolution_fit(tq_node *node, const tq_convolution_options *options, tq_product_plan *plan,
                             tq_error *error)
{
    const int32_t *x = node->in[0]->shape.dims, *w = node->in[1]->shape.dims;
    if (x[1] <= 0 || x[2] <= 0)
        return tq_input_fail(node, 0, error, "is %d by %d pixels; it needs at least one", x[1], x[2]);
    tq_window rows = {x[1], w[1], options->stride_h, options->dilation_h, 0, 0};
    tq_window columns = {x[2], w[2], options->stride_w, options->dilation_w, 0, 0};
    TQ_TRY(tq_window_fit(node, "height", options->padding, &rows, error));
    TQ_TRY(tq_window_fit(node, "width", options->padding, &columns, error));
    plan->scans = true;
    plan->scan = tq_scan_of(&rows, &columns);
    plan->taps = tq_scan_taps(&plan->scan);
    plan->row_stride = (size_t)x[3];
    tq_shape out = {4, {x[0], rows.out, columns.out, (int32_t)plan->channels}};
    TQ_TRY(tq_output_shape(node, 0, &out, error)); /* first: its check bounds the product */
    plan->rows = (size_t)x[0] * (size_t)rows.out * (size_t)columns.out;
    return TQ_OK;
}

tq_status tq_check_bias_scale(const tq_node *node, tq_error *error)
{
    const tq_tensor *bias = node->in_count > 2 ? node->in[2] : NULL;
    if (!bias || node->numerics == TQ_NUMERICS_XNNPACK) /* which does not read it */
        return TQ_OK;
    double product = (double)tq_scale_of(node->in[0]) * (double)tq_scale_of(node->in[1]);
    double given = tq_scale_of(bias), out = tq_scale_of(node->out[0]);
    if (fabs(product - given) / out <= 0.02)
        return TQ_OK;
    return tq_input_fail(node, 2, error, "has the scale %.9g; it needs that of input times weights, %.9g", given,
                         product);
}
