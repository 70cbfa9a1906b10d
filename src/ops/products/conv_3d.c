/* SPDX-License-Identifier: Apache-2.0
 *
 * CONV_3D and CONV_3D_TRANSPOSE, float32.
 *
 *     CONV_3D             inputs x [n, d, h, w, c], filter [kd, kh, kw, c, o], bias [o] or none
 *     CONV_3D_TRANSPOSE   inputs shape [5], filter [kd, kh, kw, o, c], x, bias; see transpose_conv.c
 *
 * Each output sums its products tap by tap (CONV_3D) or input cell by input cell (CONV_3D_TRANSPOSE), within these by
 * channel, and adds the bias last: the reference's order.
 *
 * Source: LiteRT f6745779, tflite/kernels/{conv3d,conv3d_transpose}.cc and internal/reference/.
 */
#include <string.h>

#include "base/threads.h"
#include "ops/check.h"
#include "ops/quantized.h"
#include "ops/scratch.h"
#include "ops/products/volume_sums.h"
#include "ops/products/window.h"

enum { DIMS = 3 };

typedef struct volume {
    bool transposed;
    tq_window windows[DIMS]; /* depth, height, width; if transposed, of the convolution from the output to the input */
    size_t batches, channels, out_channels;
    float low, high;
    float *packed; /* CONV_3D_TRANSPOSE: the filter as [tap][c][o]; NULL where it is not constant */
    uint64_t packed_at;
    /* set by eval */
    const tq_node *node;
    const float *input, *filter, *bias;
    float *out;
} volume;

static int32_t in_size(const volume *v, int dim)
{
    return v->transposed ? v->windows[dim].out : v->windows[dim].in;
}

static int32_t out_size(const volume *v, int dim)
{
    return v->transposed ? v->windows[dim].in : v->windows[dim].out;
}

/* ---- CONV_3D ---- */

/* The taps of the output at `at` along one dimension. */
static void take_taps(const volume *v, int dim, int32_t at, size_t in_step, size_t filter_step, tq_volume_taps *taps)
{
    const tq_window *w = &v->windows[dim];
    int32_t low, high;
    tq_window_taps(w, at, &low, &high);
    taps->count[dim] = (size_t)(high > low ? high - low : 0);
    taps->in_step[dim] = (size_t)w->dilation * in_step;
    taps->filter_step[dim] = filter_step;
    if (high > low) {
        taps->in += (size_t)(tq_window_origin(w, at) + (int64_t)low * w->dilation) * in_step;
        taps->filter += (size_t)low * filter_step;
    }
}

/* The pixels from x on that have the taps of x: a window's first and last tap only fall. */
static int32_t count_alike(const tq_window *w, int32_t x)
{
    int32_t low, high, last_low, last_high, count = w->out - x;
    tq_window_taps(w, x, &low, &high);
    tq_window_taps(w, w->out - 1, &last_low, &last_high);
    for (; last_low != low || last_high != high; tq_window_taps(w, x + count - 1, &last_low, &last_high))
        count = (count + 1) / 2;
    return count;
}

static void sum_row(const volume *v, size_t batch, int32_t depth, int32_t height, float *out)
{
    const tq_window *w = v->windows;
    const size_t each = v->channels * v->out_channels, line = (size_t)w[2].in * v->channels;
    for (int32_t x = 0, count; x < w[2].out; x += count, out += (size_t)count * v->out_channels) {
        tq_volume_taps taps = {.in = v->input + batch * (size_t)w[0].in * (size_t)w[1].in * line,
                               .filter = v->filter,
                               .channels = v->channels,
                               .out_channels = v->out_channels};
        count = count_alike(&w[2], x);
        take_taps(v, 0, depth, (size_t)w[1].in * line, (size_t)w[1].filter * (size_t)w[2].filter * each, &taps);
        take_taps(v, 1, height, line, (size_t)w[2].filter * each, &taps);
        take_taps(v, 2, x, v->channels, each, &taps);
        tq_volume_sum(&taps, (size_t)count, (size_t)w[2].stride * v->channels, out);
    }
}

/* ---- CONV_3D_TRANSPOSE ---- */

/* The input cells [*first, *end) of the output at `out` along one dimension. */
static void find_cells(const volume *v, int dim, int32_t out, int64_t *first, int64_t *end)
{
    const tq_window *w = &v->windows[dim];
    int64_t reach = (int64_t)out + w->pad, low = reach - ((int64_t)w->filter - 1) * w->dilation;
    *first = low <= 0 ? 0 : (low + w->stride - 1) / w->stride;
    *end = reach / w->stride + 1 < w->out ? reach / w->stride + 1 : w->out;
}

/* The tap of an input cell; false: the filter's dilation skips the cell. */
static bool find_tap(const volume *v, int dim, int32_t out, int64_t cell, size_t *tap)
{
    const tq_window *w = &v->windows[dim];
    int64_t distance = (int64_t)out + w->pad - cell * w->stride;
    *tap = (size_t)(distance / w->dilation);
    return distance % w->dilation == 0;
}

static void add_cell(const volume *v, size_t cell, size_t tap, float *out)
{
    const float *x = v->input + cell * v->channels, *w = v->filter + tap * v->channels * v->out_channels;
    for (size_t c = 0; c < v->channels; c++, w += v->out_channels)
        for (size_t o = 0; o < v->out_channels; o++)
            out[o] += x[c] * w[o];
}

static void sum_cells(const volume *v, size_t batch, const int32_t at[DIMS], float *out)
{
    size_t work = 0;
    int64_t first[DIMS], end[DIMS];
    size_t tap[DIMS];
    for (int dim = 0; dim < DIMS; dim++)
        find_cells(v, dim, at[dim], &first[dim], &end[dim]);
    memset(out, 0, v->out_channels * sizeof *out);
    for (int64_t d = first[0]; d < end[0]; d++) {
        if (!find_tap(v, 0, at[0], d, &tap[0]))
            continue;
        for (int64_t y = first[1]; y < end[1] && !tq_stop_count(&work, 1); y++) {
            if (!find_tap(v, 1, at[1], y, &tap[1]))
                continue;
            size_t row = (batch * (size_t)in_size(v, 0) + (size_t)d) * (size_t)in_size(v, 1) + (size_t)y;
            size_t taps = (tap[0] * (size_t)v->windows[1].filter + tap[1]) * (size_t)v->windows[2].filter;
            for (int64_t x = first[2]; x < end[2] && !tq_stop_count(&work, v->channels * v->out_channels / 8); x++)
                if (find_tap(v, 2, at[2], x, &tap[2]))
                    add_cell(v, row * (size_t)in_size(v, 2) + (size_t)x, taps + tap[2], out);
        }
    }
}

/* ---- both ---- */

static void finish_pixel(const volume *v, float *out)
{
    for (size_t o = 0; o < v->out_channels; o++) {
        float y = v->bias ? out[o] + v->bias[o] : out[o];
        y = y < v->low ? v->low : y;
        out[o] = y > v->high ? v->high : y;
    }
}

/* Rows of the output, counted over batch, depth and height. */
static void eval_rows(void *context, size_t begin, size_t end)
{
    const volume *v = context;
    size_t depth = (size_t)out_size(v, 0), height = (size_t)out_size(v, 1), width = (size_t)out_size(v, 2);
    for (size_t row = begin; row < end; row++) {
        const int32_t at_depth = (int32_t)(row / height % depth), at_height = (int32_t)(row % height);
        const size_t batch = row / height / depth;
        float *out = v->out + row * width * v->out_channels;
        if (!v->transposed)
            sum_row(v, batch, at_depth, at_height, out);
        for (size_t x = 0; x < width && !tq_stop_after(v->out_channels); x++, out += v->out_channels) {
            if (v->transposed)
                sum_cells(v, batch, (int32_t[DIMS]){at_depth, at_height, (int32_t)x}, out);
            finish_pixel(v, out);
        }
    }
}

/* [tap][o][c] to [tap][c][o] */
static void pack(const volume *v, const float *from, float *to)
{
    size_t each = v->channels * v->out_channels;
    size_t taps = (size_t)v->windows[0].filter * (size_t)v->windows[1].filter * (size_t)v->windows[2].filter;
    for (size_t tap = 0; tap < taps; tap++, to += each)
        for (size_t o = 0; o < v->out_channels && !tq_stop_after(v->channels); o++)
            for (size_t c = 0; c < v->channels; c++)
                to[c * v->out_channels + o] = *from++;
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    volume v = *(const volume *)node->state;
    int input = v.transposed ? 2 : 0, bias = input + (v.transposed ? 1 : 2);
    v.node = node;
    v.input = node->in[input]->data;
    v.filter = node->in[1]->data;
    v.bias = bias < node->in_count && node->in[bias] ? node->in[bias]->data : NULL;
    v.out = node->out[0]->data;
    if (v.packed)
        v.filter = v.packed;
    else if (v.transposed) {
        float *packed = tq_scratch_at(node, v.packed_at);
        pack(&v, v.filter, packed);
        v.filter = packed;
    }
    size_t rows = v.batches * (size_t)out_size(&v, 0) * (size_t)out_size(&v, 1);
    tq_parallel_for(rows, 1, node->threads, eval_rows, &v);
    return TQ_OK;
}

/* ---- prepare ---- */

/* `sizes`: depth, height and width of the input, or of the output if transposed. */
static tq_status fit_windows(const tq_node *node, const int32_t *sizes, tq_window windows[DIMS], tq_error *error)
{
    static const struct {
        const char *name;
        tq_field_id stride, dilation;
    } dims[DIMS] = {
        {"depth", TQ_Conv3DOptions_stride_d, TQ_Conv3DOptions_dilation_d_factor},
        {"height", TQ_Conv3DOptions_stride_h, TQ_Conv3DOptions_dilation_h_factor},
        {"width", TQ_Conv3DOptions_stride_w, TQ_Conv3DOptions_dilation_w_factor},
    };
    const tq_table *options = &node->options.table;
    for (int i = 0; i < DIMS; i++) {
        windows[i] = (tq_window){sizes[i],
                                 node->in[1]->shape.dims[i],
                                 (int32_t)tq_get_int(options, dims[i].stride),
                                 (int32_t)tq_get_int(options, dims[i].dilation),
                                 0,
                                 0};
        TQ_TRY(tq_window_fit(node, dims[i].name, tq_get_int(options, TQ_Conv3DOptions_padding), &windows[i], error));
    }
    return TQ_OK;
}

static tq_status check(const tq_node *node, int input, int channel_dim, int out_dim, tq_error *error)
{
    TQ_TRY(tq_check_input(node, input, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_input(node, 1, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, input, 5, 5, error));
    TQ_TRY(tq_check_rank(node, 1, 5, 5, error));
    const tq_shape *x = &node->in[input]->shape, *w = &node->in[1]->shape;
    for (int i = 1; i < 5; i++)
        if (x->dims[i] <= 0)
            return tq_input_fail(node, input, error, "has dimension %d of %d; it must be positive", i, x->dims[i]);
    if (x->dims[4] != w->dims[channel_dim] || w->dims[out_dim] <= 0)
        return tq_input_fail(node, 1, error, "takes %d channels and gives %d; the input has %d", w->dims[channel_dim],
                             w->dims[out_dim], x->dims[4]);
    int bias = node->in_count - 1;
    if (bias < (input == 0 ? 2 : 3) || !node->in[bias])
        return TQ_OK;
    TQ_TRY(tq_check_input(node, bias, TQ_T(FLOAT32), error));
    if (tq_tensor_count(node->in[bias]) != (size_t)w->dims[out_dim])
        return tq_input_fail(node, bias, error, "has %zu elements; the filter gives %d channels",
                             tq_tensor_count(node->in[bias]), w->dims[out_dim]);
    return TQ_OK;
}

static tq_status make(tq_node *node, int input, int channel_dim, int out_dim, volume **out, tq_error *error)
{
    volume *v;
    TQ_TRY(check(node, input, channel_dim, out_dim, error));
    TQ_TRY(tq_node_state(node, sizeof *v, &v, error));
    v->batches = (size_t)node->in[input]->shape.dims[0];
    v->channels = (size_t)node->in[1]->shape.dims[channel_dim];
    v->out_channels = (size_t)node->in[1]->shape.dims[out_dim];
    tq_activation_range_f32(node, tq_get_int(&node->options.table, TQ_Conv3DOptions_fused_activation_function), &v->low,
                            &v->high);
    node->eval = eval;
    *out = v;
    return TQ_OK;
}

tq_status tq_prepare_conv_3d(tq_node *node, tq_error *error)
{
    volume *v;
    TQ_TRY(make(node, 0, 3, 4, &v, error));
    const int32_t *x = node->in[0]->shape.dims;
    TQ_TRY(fit_windows(node, x + 1, v->windows, error));
    tq_shape out = {5, {x[0], v->windows[0].out, v->windows[1].out, v->windows[2].out, (int32_t)v->out_channels}};
    return tq_output_shape(node, 0, &out, error);
}

static tq_status fit_transposed(tq_node *node, tq_error *error)
{
    volume *v = node->state;
    const int32_t *given = node->in[0]->data, *x = node->in[2]->shape.dims;
    tq_window windows[DIMS];
    for (int i = 0; i < 5; i++)
        if (given[i] < (i ? 1 : 0))
            return tq_input_fail(node, 0, error, "asks for dimension %d of %d", i, given[i]);
    TQ_TRY(fit_windows(node, given + 1, windows, error));
    if (given[0] != x[0] || (size_t)given[4] != v->out_channels)
        return tq_input_fail(node, 0, error, "asks for a batch of %d and %d channels; they must be %d and %zu",
                             given[0], given[4], x[0], v->out_channels);
    for (int i = 0; i < DIMS; i++)
        if (windows[i].out != x[i + 1])
            return tq_input_fail(node, 0, error,
                                 "asks for a dimension %d of %d, whose convolution is %d; the input has %d", i + 1,
                                 given[i + 1], windows[i].out, x[i + 1]);
    memcpy(v->windows, windows, sizeof windows);
    tq_shape out = {5, {given[0], given[1], given[2], given[3], given[4]}};
    return tq_output_shape(node, 0, &out, error);
}

tq_status tq_prepare_conv_3d_transpose(tq_node *node, tq_error *error)
{
    volume *v;
    TQ_TRY(tq_check_input(node, 0, TQ_T(INT32), error));
    TQ_TRY(tq_check_rank(node, 0, 1, 1, error));
    if (node->in[0]->shape.dims[0] != 5)
        return tq_input_fail(node, 0, error, "has %d elements; an output shape of 5 is needed",
                             node->in[0]->shape.dims[0]);
    TQ_TRY(make(node, 2, 4, 3, &v, error));
    v->transposed = true;
    for (int i = 0; i < DIMS; i++)
        v->windows[i].filter = node->in[1]->shape.dims[i]; /* for `pack`, before the output's shape is known */
    TQ_TRY(tq_shape_from_values(node, 1u << 0, fit_transposed, error));
    size_t count = tq_tensor_count(node->in[1]);
    if (tq_is_constant(node->in[1])) {
        TQ_TRY(tq_node_memory(node, count, sizeof(float), &v->packed, error));
        pack(v, node->in[1]->data, v->packed);
    }
    uint64_t total = 0;
    v->packed_at = tq_scratch_part(&total, v->packed ? 0 : count, sizeof(float));
    return tq_node_scratch(node, total, error);
}
