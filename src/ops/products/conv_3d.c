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

#include "base/sizes.h"
#include "base/threads.h"
#include "ops/check.h"
#include "ops/quantized.h"
#include "ops/scratch.h"
#include "ops/products/volume_sums.h"
#include "ops/products/window.h"

enum { DIMS = 3 };

/* Input cells first, first + cells ..., with the taps tap, tap + taps ... */
typedef struct span {
    int64_t first, tap;
    size_t count;
} span;

/* The same for all pixels: the steps of a span, and the pixels with the same taps, which lie `period` pixels and
   `advance` input cells apart. */
typedef struct steps {
    int64_t cells, taps;
    int32_t period, advance;
} steps;

typedef struct volume {
    bool transposed;
    tq_window windows[DIMS]; /* depth, height, width; if transposed, of the convolution from the output to the input */
    steps steps[DIMS];
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

/* ---- the taps of a pixel along one dimension ---- */

static span convolved(const tq_window *w, int32_t at)
{
    int32_t low, high;
    tq_window_taps(w, at, &low, &high);
    return (span){tq_window_origin(w, at) + (int64_t)low * w->dilation, low, (size_t)(high - low)};
}

/* The cells whose distance to the pixel the filter's dilation does not skip. */
static span transposed(const tq_window *w, int32_t at, int64_t step)
{
    const int64_t reach = (int64_t)at + w->pad, low = reach - ((int64_t)w->filter - 1) * w->dilation;
    const int64_t end = reach / w->stride + 1 < w->out ? reach / w->stride + 1 : w->out;
    int64_t first = low <= 0 ? 0 : (low + w->stride - 1) / w->stride;
    while (first < end && (reach - first * w->stride) % w->dilation && !tq_stop_after(1))
        first++;
    return (span){first, (reach - first * w->stride) / w->dilation,
                  first < end ? (size_t)((end - 1 - first) / step) + 1 : 0};
}

static span span_at(const volume *v, int dim, int32_t at)
{
    const tq_window *w = &v->windows[dim];
    return v->transposed ? transposed(w, at, v->steps[dim].cells) : convolved(w, at);
}

/* Moves `taps` to those of a pixel. */
static void take_taps(const span *s, const steps *by, int dim, size_t in_step, size_t filter_step, tq_volume_taps *taps)
{
    taps->count[dim] = s->count;
    if (s->count > 0) {
        taps->in += (size_t)s->first * in_step;
        taps->filter += (size_t)s->tap * filter_step;
    }
    if (s->count > 1) {
        taps->in_step[dim] = (size_t)by->cells * in_step;
        taps->filter_step[dim] = (ptrdiff_t)by->taps * (ptrdiff_t)filter_step;
    }
}

/* ---- all pixels ---- */

/* Pixels alike, with the taps of the first: at, at + period ...; those of each `phase` below begin + period come one
   after the other. */
typedef struct run {
    int32_t phase, at, count;
    span span;
} run;

static run run_before(int32_t begin, int32_t end)
{
    return (run){begin - 1, end, 0, {0, 0, 0}};
}

/* How far the last cell of a run's first pixel lies from the input's end; -1 if the input's ends cut off taps. */
static int64_t room_behind(const volume *v, int dim, const span *s)
{
    const steps *by = &v->steps[dim];
    const int64_t more = (int64_t)s->count - 1, other = s->tap + more * by->taps, apart = by->taps < 0 ? -by->taps : 1;
    const bool is_whole = (s->tap < other ? s->tap : other) < apart &&
                          (s->tap > other ? s->tap : other) + apart >= v->windows[dim].filter;
    return s->count > 0 && is_whole ? in_size(v, dim) - 1 - (s->first + more * by->cells) : -1;
}

/* The pixels at, at + period ... below end that have the taps of the first. */
static int32_t count_alike(const volume *v, int dim, const run *r, int32_t end)
{
    const int64_t period = v->steps[dim].period, room = room_behind(v, dim, &r->span);
    if (room >= 0) {
        const int64_t within = room / v->steps[dim].advance, below = (end - 1 - r->at) / period;
        return (int32_t)(within < below ? within : below) + 1;
    }
    int32_t count = 1;
    for (int64_t next = r->at + period; next < end && !tq_stop_after(1); next += period, count++) {
        const span other = span_at(v, dim, (int32_t)next);
        if (other.tap != r->span.tap || other.count != r->span.count)
            break;
    }
    return count;
}

static bool next_run(const volume *v, int dim, int32_t begin, int32_t end, run *r)
{
    const int64_t period = v->steps[dim].period, next = r->at + r->count * period;
    r->at = next < end ? (int32_t)next : ++r->phase;
    if (r->phase >= end || r->phase - begin >= period)
        return false;
    r->span = span_at(v, dim, r->at);
    r->count = count_alike(v, dim, r, end);
    return true;
}

static void sum_run(const volume *v, size_t batch, const span *depth, const run *y, const run *x, float *out)
{
    const tq_window *w = v->windows;
    const size_t each = v->channels * v->out_channels, line = (size_t)in_size(v, 2) * v->channels;
    const size_t plane = (size_t)in_size(v, 1) * line, out_line = (size_t)out_size(v, 2) * v->out_channels;
    const steps *by = v->steps, *down = &by[1], *across = &by[2];
    tq_volume_taps taps = {.in = v->input + batch * (size_t)in_size(v, 0) * plane,
                           .filter = v->filter,
                           .channels = v->channels,
                           .out_channels = v->out_channels,
                           .bias = v->bias,
                           .low = v->low,
                           .high = v->high};
    const tq_volume_pixels pixels = {
        {(size_t)y->count, (size_t)x->count},
        {(size_t)down->advance * line, (size_t)across->advance * v->channels},
        {(size_t)down->period * out_line, (size_t)across->period * v->out_channels},
        out + (size_t)y->at * out_line + (size_t)x->at * v->out_channels,
    };
    take_taps(depth, &by[0], 0, plane, (size_t)w[1].filter * (size_t)w[2].filter * each, &taps);
    take_taps(&y->span, down, 1, line, (size_t)w[2].filter * each, &taps);
    take_taps(&x->span, across, 2, v->channels, each, &taps);
    tq_volume_sum(&taps, &pixels);
}

/* Rows of the output, counted over batch, depth and height. */
static void eval_rows(void *context, size_t begin, size_t end)
{
    const volume *v = context;
    const size_t depth = (size_t)out_size(v, 0), height = (size_t)out_size(v, 1);
    const int32_t width = out_size(v, 2);
    for (size_t row = begin, rows; row < end; row += rows) {
        const size_t plane = row / height;
        const int32_t top = (int32_t)(row % height);
        rows = tq_min_size(height - (size_t)top, end - row);
        const int32_t bottom = top + (int32_t)rows;
        float *out = v->out + plane * height * (size_t)width * v->out_channels;
        const span depths = span_at(v, 0, (int32_t)(plane % depth));
        for (run y = run_before(top, bottom); next_run(v, 1, top, bottom, &y);)
            for (run x = run_before(0, width); next_run(v, 2, 0, width, &x) && !tq_stop_after(v->out_channels);)
                sum_run(v, plane / depth, &depths, &y, &x, out);
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
    const size_t part = rows / (4 * (size_t)node->threads) + 1; /* many rows have many pixels alike */
    tq_parallel_for(rows, tq_min_size(part, (size_t)out_size(&v, 1)), node->threads, eval_rows, &v);
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

static void set_steps(volume *v)
{
    for (int i = 0; i < DIMS; i++) {
        const tq_window *w = &v->windows[i];
        int32_t common = w->stride;
        for (int32_t rest = w->dilation, next; rest > 0; rest = next) /* Euclid */
            next = common % rest, common = rest;
        v->steps[i] = v->transposed ? (steps){w->dilation / common, -(w->stride / common), w->stride, 1}
                                    : (steps){w->dilation, 1, 1, w->stride};
    }
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
    set_steps(v);
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
    set_steps(v);
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
