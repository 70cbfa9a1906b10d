/* SPDX-License-Identifier: Apache-2.0
 *
 * TRANSPOSE_CONV: inputs (output shape, weights [o, kh, kw, c], x [n, h, w, c], bias [o] or none).
 *
 * Cell (y, x) of the input adds to the output at (y * stride - pad + ky, x * stride - pad + kx).  The output's shape
 * is one whose convolution, with this padding and stride, has the input's size.  Here each output gathers what
 * falls on it, in the order in which the reference scatters it: by input cell, then by channel.
 *
 *     float32            sum x * w, + bias, act; XNNPACK's as kernels/gemm.h says, taps from the first on
 *     float32 x int8     each image quantized asymmetrically; sum of f32(f32((q - z) * w) * s_w[o]) * s_x, + bias, act
 *                        XNNPACK: fma(f32(f32(sum (q - z) * w) * s_x), s_w[o], bias), act
 *     int8, uint8, 16x8  acc = sum (x - z_x)(w - z_w) + bias; clamp(multiply(acc, m[o]) + z_o)
 *     m[o]: f64(s_x) * f64(s_w[o]) / f64(s_o); uint8: f64(f32(s_x * s_w)) / f64(s_o)
 *     XNNPACK: rounded once, to even (product.h)
 *     16x8: acc and multiplication in 64 bits, or in 32 where quantized_bias_type says INT32
 *
 * Source: LiteRT f6745779, tflite/kernels/transpose_conv.cc, internal/reference/transpose_conv.h and
 * integer_ops/transpose_conv.h.
 */
#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "ops/check.h"
#include "ops/dot.h"
#include "ops/hybrid.h"
#include "ops/quantized.h"
#include "ops/scratch.h"
#include "ops/transposed.h"
#include "ops/window.h"

enum { SHAPE, WEIGHTS, INPUT, BIAS };

typedef struct deconvolution deconvolution;
struct deconvolution {
    tq_window y, x; /* of the convolution that leads from the output to the input */
    size_t batches, channels, out_channels, taps;

    void (*pack)(const deconvolution *d, const tq_tensor *weights, void *packed);
    void (*add)(const deconvolution *d, size_t batch, size_t cell, size_t tap, void *sums);
    void (*store)(const deconvolution *d, size_t batch, const void *sums, size_t place);
    size_t sum_size; /* of one output channel */
    bool constant; /* weights are kept */
    uint64_t packed_at, codes_at, images_at, sums_at; /* in scratch; constant weights' packed_at: kept */
    size_t tasks;    /* output rows are dealt to so many, each with sums of its own */

    float low, high;
    int32_t low_code, high_code, zero_point;
    bool wide; /* acc of 64 bits */
    bool fused; /* XNNPACK's floats: from the bias on, by tap */
    size_t chunk;
    tq_requantize_rule rule;
    size_t tail; /* so many of the last channels have the rule DOUBLE */
    bool has_rest; /* as do the elements after the last 16 */
    tq_multiplier *multipliers; /* one an output channel */
    tq_transposed matrix;

    /* in eval */
    const tq_node *node;
    const void *weights;
    const void *input; /* float, int8 codes or int16 differences to the zero point */
    const tq_hybrid_row *image;
    char *sums;
};

/* ---- weights, as the sums read them ---- */

/* [tap][c][o] */
static void pack_floats(const deconvolution *d, const tq_tensor *weights, void *packed)
{
    const float *from = weights->data;
    float *to = packed;
    for (size_t o = 0; o < d->out_channels; o++)
        for (size_t i = 0; i < d->taps * d->channels; i++)
            to[i * d->out_channels + o] = *from++;
}

static void pack_hybrid(const deconvolution *d, const tq_tensor *weights, void *packed)
{
    const int8_t *from = weights->data;
    int8_t *to = packed;
    for (size_t o = 0; o < d->out_channels; o++)
        for (size_t i = 0; i < d->taps * d->channels; i++)
            to[i * d->out_channels + o] = *from++;
}

static inline int16_t difference(const tq_tensor *tensor, size_t i, int32_t zero_point)
{
    int32_t code = tensor->type == TQ_TensorType_UINT8 ? ((const uint8_t *)tensor->data)[i]
                                                       : ((const int8_t *)tensor->data)[i];
    return (int16_t)(code - zero_point);
}

/* [tap][o][c], less the zero point */
static void pack_codes(const deconvolution *d, const tq_tensor *weights, void *packed)
{
    int16_t *to = packed;
    int32_t zero_point = weights->type == TQ_TensorType_UINT8 ? tq_zero_point_at(weights, 0) : 0;
    for (size_t tap = 0; tap < d->taps; tap++)
        for (size_t o = 0; o < d->out_channels; o++)
            for (size_t c = 0; c < d->channels; c++)
                *to++ = difference(weights, (o * d->taps + tap) * d->channels + c, zero_point);
}

/* ---- what one input cell adds ---- */

#define ADD_FLOATS(name, next)                                                                                \
    static void name(const deconvolution *d, size_t batch, size_t cell, size_t tap, void *sums)              \
    {                                                                                                        \
        (void)batch;                                                                                         \
        const float *x = (const float *)d->input + cell * d->channels;                                       \
        const float *w = (const float *)d->weights + tap * d->channels * d->out_channels;                    \
        float *sum = sums;                                                                                   \
        for (size_t c = 0; c < d->channels; c++, w += d->out_channels)                                       \
            for (size_t o = 0; o < d->out_channels; o++)                                                     \
                sum[o] = next;                                                                               \
    }
ADD_FLOATS(add_floats, sum[o] + x[c] * w[o])
ADD_FLOATS(add_fused, fmaf(x[c], w[o], sum[o]))

static void add_hybrid(const deconvolution *d, size_t batch, size_t cell, size_t tap, void *sums)
{
    const int8_t *x = (const int8_t *)d->input + cell * d->channels;
    const int8_t *w = (const int8_t *)d->weights + tap * d->channels * d->out_channels;
    const tq_tensor *weights = d->node->in[WEIGHTS];
    const tq_hybrid_row *image = d->image + batch;
    float *sum = sums;
    for (size_t c = 0; c < d->channels; c++, w += d->out_channels)
        for (size_t o = 0; o < d->out_channels; o++)
            sum[o] += (float)((x[c] - image->zero_point) * w[o]) * tq_scale_at(weights, o) * image->scale;
}

/* XNNPACK's: the sum is of codes.  It may wrap, as those of all products of codes. */
static void add_hybrid_codes(const deconvolution *d, size_t batch, size_t cell, size_t tap, void *sums)
{
    const int8_t *x = (const int8_t *)d->input + cell * d->channels;
    const int8_t *w = (const int8_t *)d->weights + tap * d->channels * d->out_channels;
    const int32_t zero_point = d->image[batch].zero_point;
    uint32_t *sum = sums;
    for (size_t c = 0; c < d->channels; c++, w += d->out_channels) {
        const int32_t difference = x[c] - zero_point;
        for (size_t o = 0; o < d->out_channels; o++)
            sum[o] += (uint32_t)(difference * w[o]);
    }
}

static void add_codes(const deconvolution *d, size_t batch, size_t cell, size_t tap, void *sums)
{
    (void)batch;
    const int16_t *x = (const int16_t *)d->input + cell * d->channels;
    const int16_t *w = (const int16_t *)d->weights + tap * d->out_channels * d->channels;
    int64_t *sum = sums;
    for (size_t o = 0; o < d->out_channels; o++, w += d->channels)
        sum[o] = tq_add_wrap_i64(sum[o], tq_dot_i16(x, w, d->channels, d->chunk));
}

/* ---- sums to outputs ---- */

static const tq_tensor *bias_of(const tq_node *node)
{
    return node->in_count > BIAS ? node->in[BIAS] : NULL;
}

static void store_floats(const deconvolution *d, size_t batch, const void *sums, size_t place)
{
    (void)batch;
    const float *sum = sums;
    const tq_tensor *bias = d->fused ? NULL : bias_of(d->node);
    float *out = (float *)d->node->out[0]->data + place * d->out_channels;
    for (size_t o = 0; o < d->out_channels; o++) {
        float y = bias ? sum[o] + ((const float *)bias->data)[o] : sum[o];
        y = y < d->low ? d->low : y;
        out[o] = y > d->high ? d->high : y;
    }
}

static void store_hybrid_codes(const deconvolution *d, size_t batch, const void *sums, size_t place)
{
    const tq_tensor *bias = bias_of(d->node), *weights = d->node->in[WEIGHTS];
    float *out = (float *)d->node->out[0]->data + place * d->out_channels;
    for (size_t o = 0; o < d->out_channels; o++) {
        float sum = (float)(int32_t)((const uint32_t *)sums)[o] * d->image[batch].scale;
        float y = fmaf(sum, tq_scale_at(weights, o), bias ? ((const float *)bias->data)[o] : 0);
        y = y < d->low ? d->low : y;
        out[o] = y > d->high ? d->high : y;
    }
}

static int64_t bias_at(const tq_tensor *bias, size_t o)
{
    if (!bias)
        return 0;
    return bias->type == TQ_TensorType_INT64 ? ((const int64_t *)bias->data)[o] : ((const int32_t *)bias->data)[o];
}

static void store_codes(const deconvolution *d, size_t batch, const void *sums, size_t place)
{
    (void)batch;
    const int64_t *sum = sums;
    const tq_tensor *bias = bias_of(d->node), *output = d->node->out[0];
    for (size_t o = 0; o < d->out_channels; o++) {
        int64_t acc = tq_add_wrap_i64(sum[o], bias_at(bias, o));
        const tq_multiplier *m = &d->multipliers[o];
        int32_t code = d->wide ? tq_requantize_i64(acc, m, m->rule, d->zero_point, d->low_code, d->high_code)
                               : tq_requantize(tq_wrap_i32(acc), m, m->rule, d->zero_point, d->low_code, d->high_code);
        size_t i = place * d->out_channels + o;
        if (output->type == TQ_TensorType_INT16)
            ((int16_t *)output->data)[i] = (int16_t)code;
        else
            ((uint8_t *)output->data)[i] = (uint8_t)code; /* also int8's bits */
    }
}

/* ---- the walk ---- */

/* The input places [*first, *end) of one dimension that reach an output's; the tap of place i is
   out + pad - i * stride. */
static void sources(const tq_window *w, int32_t out, int64_t *first, int64_t *end)
{
    int64_t reach = (int64_t)out + w->pad, low = reach - (w->filter - 1);
    *first = low <= 0 ? 0 : (low + w->stride - 1) / w->stride;
    *end = reach / w->stride + 1 < w->out ? reach / w->stride + 1 : w->out;
}

static void eval_place(const deconvolution *d, size_t batch, int32_t out_y, int32_t out_x, void *sums)
{
    int64_t y0, y1, x0, x1;
    sources(&d->y, out_y, &y0, &y1);
    sources(&d->x, out_x, &x0, &x1);
    memset(sums, 0, d->out_channels * d->sum_size);
    if (d->fused && bias_of(d->node))
        memcpy(sums, bias_of(d->node)->data, d->out_channels * sizeof(float));
    for (int64_t i = y0; i < y1; i++)
        for (int64_t j = x0; j < x1; j++) {
            const int64_t y = d->fused ? y0 + y1 - 1 - i : i, x = d->fused ? x0 + x1 - 1 - j : j;
            size_t cell = (batch * (size_t)d->y.out + (size_t)y) * (size_t)d->x.out + (size_t)x;
            int64_t ky = (int64_t)out_y + d->y.pad - y * d->y.stride;
            int64_t kx = (int64_t)out_x + d->x.pad - x * d->x.stride;
            d->add(d, batch, cell, (size_t)(ky * d->x.filter + kx), sums);
        }
}

/* acc of one element of uint8 codes, from the tensors as they are. */
static int32_t sum_at(const deconvolution *d, size_t place, size_t o)
{
    const tq_tensor *x = d->node->in[INPUT], *w = d->node->in[WEIGHTS];
    const size_t width = (size_t)d->x.in, row = place / width, batch = row / (size_t)d->y.in;
    const int64_t out_y = (int64_t)(row % (size_t)d->y.in), out_x = (int64_t)(place % width);
    const int32_t zero_x = tq_zero_point_at(x, 0), zero_w = tq_zero_point_at(w, 0);
    int64_t y0, y1, x0, x1, sum = bias_at(bias_of(d->node), o);
    sources(&d->y, (int32_t)out_y, &y0, &y1);
    sources(&d->x, (int32_t)out_x, &x0, &x1);
    for (int64_t i = y0; i < y1; i++)
        for (int64_t j = x0; j < x1; j++) {
            size_t cell = (batch * (size_t)d->y.out + (size_t)i) * (size_t)d->x.out + (size_t)j;
            int64_t tap = (out_y + d->y.pad - i * d->y.stride) * d->x.filter + out_x + d->x.pad - j * d->x.stride;
            for (size_t c = 0; c < d->channels; c++)
                sum += difference(x, cell * d->channels + c, zero_x) *
                       difference(w, (o * d->taps + (size_t)tap) * d->channels + c, zero_w);
        }
    return tq_wrap_i32(sum);
}

/* What the optimized kernel of uint8 has left over after its last block of 16 elements, by its scalar rule. */
static void redo_rest(const tq_node *node, const deconvolution *given)
{
    deconvolution d = *given;
    d.node = node;
    uint8_t *out = node->out[0]->data;
    const size_t n = tq_tensor_count(node->out[0]);
    for (size_t i = n - n % 16; i < n; i++) {
        const size_t o = i % d.out_channels;
        out[i] = (uint8_t)tq_requantize(sum_at(&d, i / d.out_channels, o), &d.multipliers[o], TQ_REQUANTIZE_DOUBLE,
                                        d.zero_point, d.low_code, d.high_code);
    }
}

static void eval_tasks(void *context, size_t begin, size_t end)
{
    const deconvolution *d = context;
    size_t height = (size_t)d->y.in, width = (size_t)d->x.in, rows = d->batches * height;
    for (size_t task = begin; task < end; task++) {
        void *sums = d->sums + task * d->out_channels * d->sum_size;
        for (size_t row = task; row < rows; row += d->tasks)
            for (size_t x = 0; x < width; x++) {
                eval_place(d, row / height, (int32_t)(row % height), (int32_t)x, sums);
                d->store(d, row / height, sums, row * width + x);
            }
    }
}

/* The input in the form that `add` reads. */
static const void *input_of(const deconvolution *d, tq_hybrid_row *images)
{
    const tq_tensor *input = d->node->in[INPUT];
    size_t count = tq_tensor_count(input), size = d->batches ? count / d->batches : 0;
    if (d->pack == pack_floats || input->type == TQ_TensorType_INT16)
        return input->data;
    void *codes = tq_scratch_at(d->node, d->codes_at);
    if (input->type == TQ_TensorType_FLOAT32) {
        const tq_hybrid_rule rule = tq_hybrid_rule_of(d->node, true);
        for (size_t b = 0; b < d->batches; b++)
            images[b] = rule((const float *)input->data + b * size, size, (int8_t *)codes + b * size);
        return codes;
    }
    int32_t zero_point = tq_zero_point_at(input, 0);
    for (size_t i = 0; i < count; i++)
        ((int16_t *)codes)[i] = difference(input, i, zero_point);
    return codes;
}

static void pack_kept(tq_node *node)
{
    const deconvolution *d = node->state;
    d->pack(d, node->in[WEIGHTS], (char *)node->kept + d->packed_at);
}

static void pack_matrix(tq_node *node)
{
    const deconvolution *d = node->state;
    tq_transposed_pack(node, &d->matrix);
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    deconvolution d = *(const deconvolution *)node->state;
    d.node = node;
    tq_hybrid_row *images = tq_scratch_at(node, d.images_at);
    d.input = input_of(&d, images);
    d.image = images;
    void *packed = (char *)(d.constant ? node->kept : node->scratch) + d.packed_at;
    if (!d.constant)
        d.pack(&d, node->in[WEIGHTS], packed);
    d.weights = packed;
    d.sums = tq_scratch_at(node, d.sums_at);
    tq_parallel_for(d.tasks, 1, node->threads, eval_tasks, &d);
    if (d.has_rest)
        redo_rest(node, &d);
    return TQ_OK;
}

static tq_status eval_matrix(tq_node *node, tq_error *error)
{
    (void)error;
    const deconvolution *d = node->state;
    tq_transposed_eval(node, &d->matrix);
    if (d->has_rest)
        redo_rest(node, d);
    return TQ_OK;
}

/* ---- prepare ---- */

/* The output's shape, from its values; the convolution of it must have the input's size.  XNNPACK takes the batch from the
   input, which may have been resized beside a constant shape. */
static tq_status fit(tq_node *node, tq_error *error)
{
    deconvolution *d = node->state;
    const int32_t *x = node->in[INPUT]->shape.dims, *w = node->in[WEIGHTS]->shape.dims;
    const int32_t *given = node->in[SHAPE]->data;
    const bool has_batch = node->numerics == TQ_NUMERICS_XNNPACK || given[0] == x[0];
    if (!has_batch || given[3] != w[0] || given[1] <= 0 || given[2] <= 0)
        return tq_input_fail(node, SHAPE, error,
                             "asks for [%d,%d,%d,%d]; the batch must be %d, the channels %d, and the size positive",
                             given[0], given[1], given[2], given[3], x[0], w[0]);
    const tq_table *options = &node->options.table;
    int64_t padding = tq_get_int(options, TQ_TransposeConvOptions_padding);
    tq_window height = {given[1], w[1], (int32_t)tq_get_int(options, TQ_TransposeConvOptions_stride_h), 1, 0, 0};
    tq_window width = {given[2], w[2], (int32_t)tq_get_int(options, TQ_TransposeConvOptions_stride_w), 1, 0, 0};
    TQ_TRY(tq_window_fit(node, "height", padding, &height, error));
    TQ_TRY(tq_window_fit(node, "width", padding, &width, error));
    if (height.out != x[1] || width.out != x[2])
        return tq_input_fail(node, SHAPE, error,
                             "asks for a size of %d x %d, whose convolution is %d x %d; the input is %d x %d", given[1],
                             given[2], height.out, width.out, x[1], x[2]);
    d->y = height;
    d->x = width;
    tq_shape out = {4, {x[0], given[1], given[2], given[3]}};
    return tq_output_shape(node, 0, &out, error);
}

static tq_status check_types(const tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_counts(node, 3, 4, 1, 1, error));
    TQ_TRY(tq_check_input(node, SHAPE, TQ_T(INT32), error));
    TQ_TRY(tq_check_input(node, INPUT, TQ_T(FLOAT32) | TQ_T(UINT8) | TQ_T(INT8) | TQ_T(INT16), error));
    TQ_TRY(tq_check_output_like(node, 0, INPUT, error));
    switch (node->in[INPUT]->type) {
    case TQ_TensorType_FLOAT32: return tq_check_input(node, WEIGHTS, TQ_T(FLOAT32) | TQ_T(INT8), error);
    case TQ_TensorType_UINT8: return tq_check_input(node, WEIGHTS, TQ_T(UINT8), error);
    default: return tq_check_input(node, WEIGHTS, TQ_T(INT8), error);
    }
}

static tq_status check_bias(const tq_node *node, tq_error *error)
{
    const tq_tensor *bias = bias_of(node);
    if (!bias)
        return TQ_OK;
    int32_t type = node->in[INPUT]->type;
    TQ_TRY(tq_check_input(node, BIAS,
                          type == TQ_TensorType_FLOAT32 ? TQ_T(FLOAT32)
                          : type == TQ_TensorType_INT16 ? TQ_T(INT32) | TQ_T(INT64) : TQ_T(INT32),
                          error));
    if (tq_tensor_count(bias) != (size_t)node->in[WEIGHTS]->shape.dims[0])
        return tq_input_fail(node, BIAS, error, "has %zu elements; the weights give %d channels",
                             tq_tensor_count(bias), node->in[WEIGHTS]->shape.dims[0]);
    if (type != TQ_TensorType_FLOAT32 && type != TQ_TensorType_UINT8 && tq_zero_point_at(bias, 0) != 0)
        return tq_input_fail(node, BIAS, error, "has the zero point %d; it must be 0", tq_zero_point_at(bias, 0));
    return TQ_OK;
}

static tq_status check_shapes(const tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_rank(node, SHAPE, 1, 1, error));
    TQ_TRY(tq_check_rank(node, WEIGHTS, 4, 4, error));
    TQ_TRY(tq_check_rank(node, INPUT, 4, 4, error));
    const int32_t *x = node->in[INPUT]->shape.dims, *w = node->in[WEIGHTS]->shape.dims;
    if (node->in[SHAPE]->shape.dims[0] != 4)
        return tq_input_fail(node, SHAPE, error, "has %d elements; an output shape of 4 is needed",
                             node->in[SHAPE]->shape.dims[0]);
    if (x[1] <= 0 || x[2] <= 0 || x[3] <= 0)
        return tq_input_fail(node, INPUT, error, "is empty: %d x %d x %d", x[1], x[2], x[3]);
    if (w[0] <= 0 || w[3] != x[3])
        return tq_input_fail(node, WEIGHTS, error, "leads from %d channels to %d; the input has %d", w[3], w[0], x[3]);
    const tq_table *options = &node->options.table;
    int64_t down = tq_get_int(options, TQ_TransposeConvOptions_stride_h);
    int64_t right = tq_get_int(options, TQ_TransposeConvOptions_stride_w);
    if (down <= 0 || down > INT16_MAX || right <= 0 || right > INT16_MAX)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "the stride is %lld x %lld; it must be from 1 to 32767",
                          (long long)down, (long long)right);
    return check_bias(node, error);
}

/* 16x8: 64 bits, unless the model, or a bias of 32 bits, asks for 32. */
static tq_status choose_width(const tq_node *node, deconvolution *d, tq_error *error)
{
    const tq_tensor *bias = bias_of(node);
    if (node->in[INPUT]->type != TQ_TensorType_INT16)
        return TQ_OK;
    int64_t asked = tq_get_int(&node->options.table, TQ_TransposeConvOptions_quantized_bias_type);
    if (asked == TQ_TensorType_FLOAT32)
        asked = bias ? bias->type : TQ_TensorType_INT64;
    if ((asked != TQ_TensorType_INT32 && asked != TQ_TensorType_INT64) || (bias && bias->type != asked))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "quantized_bias_type is %s; it must be INT32 or INT64, and the bias's type",
                          tq_type_name(asked));
    if (tq_zero_point_at(node->in[INPUT], 0) != 0 || tq_zero_point_at(node->out[0], 0) != 0)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "16-bit input and output must have the zero point 0");
    d->wide = asked == TQ_TensorType_INT64;
    d->chunk = TQ_DOT_16X8;
    return TQ_OK;
}

/* The multiplier of an output channel. */
static double multiplier_of(const void *of, size_t o)
{
    const tq_node *node = of;
    float s_x = tq_scale_at(node->in[INPUT], 0), s_w = tq_scale_at(node->in[WEIGHTS], o);
    if (node->numerics == TQ_NUMERICS_XNNPACK)
        return (double)tq_even_multiplier(s_x, s_w, tq_scale_at(node->out[0], 0));
    double product = node->in[INPUT]->type == TQ_TensorType_UINT8 ? (double)(s_x * s_w) : (double)s_x * (double)s_w;
    return product / (double)tq_scale_at(node->out[0], 0);
}

/* The optimized kernels' rule is up where they have vectors: of int8, for whole blocks of 8 channels; of uint8, of 16
   elements. */
static void choose_rule(const tq_node *node, deconvolution *d)
{
    const bool optimized = node->numerics == TQ_NUMERICS_OPTIMIZED && node->in[INPUT]->type != TQ_TensorType_INT16;
    d->rule = node->numerics == TQ_NUMERICS_XNNPACK ? TQ_REQUANTIZE_FLOAT32_EVEN
              : optimized                           ? TQ_REQUANTIZE_UP
                                                    : TQ_REQUANTIZE_DOUBLE;
    d->tail = optimized && node->in[INPUT]->type == TQ_TensorType_INT8 ? d->out_channels % 8 : 0;
    d->has_rest = optimized && node->in[INPUT]->type == TQ_TensorType_UINT8;
}

static tq_requantize_rule rule_at(const deconvolution *d, size_t o)
{
    return o + d->tail < d->out_channels ? d->rule : TQ_REQUANTIZE_DOUBLE;
}

static tq_status prepare_codes(tq_node *node, deconvolution *d, int64_t activation, tq_error *error)
{
    const tq_tensor *input = node->in[INPUT], *weights = node->in[WEIGHTS], *output = node->out[0];
    TQ_TRY(tq_check_input_scale(node, INPUT, error));
    TQ_TRY(tq_check_output_scale(node, 0, error));
    bool u8 = input->type == TQ_TensorType_UINT8;
    TQ_TRY(u8 ? tq_check_input_scale(node, WEIGHTS, error) : tq_check_weight_scales(node, WEIGHTS, 0, error));
    d->chunk = TQ_DOT_CODES;
    TQ_TRY(choose_width(node, d, error));
    TQ_TRY(tq_node_memory(node, d->out_channels, sizeof *d->multipliers, &d->multipliers, error));
    choose_rule(node, d);
    for (size_t o = 0; o < d->out_channels; o++)
        d->multipliers[o] = tq_multiplier_of(multiplier_of(node, o), rule_at(d, o));
    d->zero_point = tq_zero_point_at(output, 0);
    tq_activation_codes(node, activation, &d->low_code, &d->high_code);
    const tq_tensor *bias = bias_of(node);
    double s_x = tq_scale_at(input, 0), s_o = tq_scale_at(output, 0);
    if (u8 && bias && fabs(s_x * (double)tq_scale_at(weights, 0) - (double)tq_scale_at(bias, 0)) / s_o > 0.02)
        return tq_input_fail(node, BIAS, error, "has the scale %g; it must be the input's times the weights', %g",
                             (double)tq_scale_at(bias, 0), s_x * (double)tq_scale_at(weights, 0));
    return TQ_OK;
}

/* Picks the arithmetic; *item: bytes of a packed weight, *code: of an input code in scratch. */
static tq_status choose(tq_node *node, deconvolution *d, int64_t activation, size_t *item, size_t *code,
                        tq_error *error)
{
    d->pack = pack_floats, d->add = add_floats, d->store = store_floats;
    d->sum_size = sizeof(float), *item = sizeof(float), *code = 0;
    tq_activation_floats(node, activation, &d->low, &d->high);
    if (node->in[INPUT]->type == TQ_TensorType_FLOAT32) {
        d->fused = node->numerics == TQ_NUMERICS_XNNPACK && node->in[WEIGHTS]->type == TQ_TensorType_FLOAT32;
        d->add = d->fused ? add_fused : add_floats;
        if (node->in[WEIGHTS]->type == TQ_TensorType_FLOAT32)
            return TQ_OK;
        d->pack = pack_hybrid, d->add = add_hybrid, *item = 1, *code = 1;
        if (node->numerics == TQ_NUMERICS_XNNPACK)
            d->add = add_hybrid_codes, d->store = store_hybrid_codes;
        return tq_check_weight_scales(node, WEIGHTS, 0, error);
    }
    d->pack = pack_codes, d->add = add_codes, d->store = store_codes;
    d->sum_size = sizeof(int64_t), *item = sizeof(int16_t);
    *code = node->in[INPUT]->type == TQ_TensorType_INT16 ? 0 : sizeof(int16_t);
    return prepare_codes(node, d, activation, error);
}

/* Weights and shape are constants, so that the matrix kernel can have them packed; and it has this arithmetic. */
static bool suits_matrix(const tq_node *node, const deconvolution *d)
{
    if (!tq_is_constant(node->in[WEIGHTS]) || !tq_is_constant(node->in[SHAPE]) || d->pack == pack_hybrid ||
        (bias_of(node) && !tq_is_constant(bias_of(node))) || !tq_transposed_fits(&d->y, &d->x))
        return false;
    for (size_t o = 0; d->multipliers && o < d->out_channels; o++)
        if (!(multiplier_of(node, o) < 1e9))
            return false;
    return true;
}

static tq_status prepare_store(tq_node *node, const deconvolution *d, tq_gemm_store *store, tq_error *error)
{
    void *memory;
    if (!d->multipliers) {
        *store = (tq_gemm_store){.out = TQ_f32, .floor = d->low, .ceiling = d->high};
        return TQ_OK;
    }
    int32_t type = node->out[0]->type;
    *store = (tq_gemm_store){.out = type == TQ_TensorType_INT16 ? TQ_i16 : type == TQ_TensorType_INT8 ? TQ_i8 : TQ_u8,
                             .rule = d->rule, .tail = d->tail, .zero_point = d->zero_point, .low = d->low_code,
                             .high = d->high_code};
    TQ_TRY(tq_node_memory(node, tq_gemm_store_bytes(d->out_channels), 1, &memory, error));
    tq_gemm_store_make(store, d->out_channels, multiplier_of, node, memory);
    return TQ_OK;
}

static tq_status prepare_matrix(tq_node *node, deconvolution *d, tq_error *error)
{
    const tq_tensor *input = node->in[INPUT], *weights = node->in[WEIGHTS], *bias = bias_of(node);
    bool u8 = input->type == TQ_TensorType_UINT8, floats = input->type == TQ_TensorType_FLOAT32;
    tq_transposed *t = &d->matrix;
    *t = (tq_transposed){.y = &d->y, .x = &d->x, .batches = d->batches, .channels = d->channels,
                         .out_channels = d->out_channels, .flags = d->wide ? TQ_GEMM_WIDE : 0};
    t->flags |= d->fused ? TQ_GEMM_FUSED : 0;
    t->in = floats ? TQ_f32 : u8 ? TQ_u8 : input->type == TQ_TensorType_INT8 ? TQ_i8 : TQ_i16;
    t->weights = (tq_gemm_weights){.type = floats ? TQ_f32 : u8 ? TQ_u8 : TQ_i8,
                                   .zero_point = u8 ? tq_zero_point_at(weights, 0) : 0,
                                   .row_zero_point = floats ? 0 : tq_zero_point_at(input, 0),
                                   .bias_type = floats ? TQ_f32 : TQ_i32};
    if (bias && bias->type == TQ_TensorType_INT64)
        t->weights.bias_type = TQ_GEMM_BIAS_I64;
    TQ_TRY(prepare_store(node, d, &t->store, error));
    uint64_t total = 0;
    TQ_TRY(tq_transposed_prepare(node, t, &total, pack_matrix, error));
    node->eval = eval_matrix;
    return tq_node_scratch(node, total, error);
}

tq_status tq_prepare_transpose_conv(tq_node *node, tq_error *error)
{
    TQ_TRY(check_types(node, error));
    TQ_TRY(check_shapes(node, error));
    deconvolution *d;
    TQ_TRY(tq_node_state(node, sizeof *d, &d, error));
    const tq_tensor *input = node->in[INPUT], *weights = node->in[WEIGHTS];
    d->batches = (size_t)input->shape.dims[0];
    d->channels = (size_t)weights->shape.dims[3];
    d->out_channels = (size_t)weights->shape.dims[0];
    d->taps = tq_shape_span(&weights->shape, 1, 3);
    d->tasks = (size_t)node->threads;
    size_t item, code;
    int64_t activation = tq_get_int(&node->options.table, TQ_TransposeConvOptions_fused_activation_function);
    TQ_TRY(choose(node, d, activation, &item, &code, error));
    TQ_TRY(tq_shape_from_values(node, 1u << SHAPE, fit, error));
    if (suits_matrix(node, d))
        return prepare_matrix(node, d, error);

    size_t count = tq_tensor_count(weights);
    d->constant = tq_is_constant(weights);
    uint64_t total = 0, kept = 0;
    d->packed_at = tq_scratch_part(d->constant ? &kept : &total, count, item);
    const int64_t form[] = {d->pack == pack_floats, d->pack == pack_hybrid, (int64_t)d->taps, (int64_t)d->channels,
                            (int64_t)d->out_channels};
    if (d->constant)
        TQ_TRY(tq_node_keep(node, kept, pack_kept, form, (int)(sizeof form / sizeof *form), error));
    d->codes_at = tq_scratch_part(&total, tq_tensor_count(input), code);
    d->images_at = tq_scratch_part(&total, code == 1 ? d->batches : 0, sizeof(tq_hybrid_row));
    d->sums_at = tq_scratch_part(&total, d->tasks * d->out_channels, d->sum_size);
    node->eval = eval;
    return tq_node_scratch(node, total, error);
}
