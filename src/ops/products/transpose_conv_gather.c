/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/products/transpose_conv_gather.h"

#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "kernels/isa.h"
#include "ops/check.h"
#include "ops/products/dot.h"
#include "ops/products/hybrid.h"
#include "ops/quantized.h"
#include "ops/scratch.h"

enum { WEIGHTS = TQ_TRANSPOSE_CONV_WEIGHTS };

enum { PIXELS = 4 }; /* output pixels that TQ_TRANSPOSE_CONV_HYBRID computes at once, at most */

typedef struct form_row form_row;

/* Arguments of one eval. */
typedef struct running {
    const tq_transpose_conv *conv;
    const form_row *row;
    const tq_node *node;
    const void *weights; /* packed */
    const void *input;   /* float, int8, or float or int16 differences to the zero point */
    const tq_hybrid_row *image;
    char *sums;
} running;

/* The functions and sizes of one arithmetic. */
struct form_row {
    void (*pack)(const tq_transpose_conv *conv, const tq_tensor *weights, void *packed);
    void (*add)(const running *r, size_t batch, size_t cell, size_t tap, size_t pixels, void *sums);
    void (*store)(const running *r, size_t batch, const void *sums, size_t pixel);
    size_t pixels;      /* of the output that `add` takes, at most: those of the input pixels from `cell` on */
    size_t sum_size;    /* of one output channel */
    size_t weight_size; /* packed */
    size_t quantized_size;   /* of an element of the input in scratch; 0: it is read in place */
};

/* Output channels in rows of sums and of packed weights: HYBRID has vectors of 4 alone. */
static size_t columns(const tq_transpose_conv *conv)
{
    return conv->form == TQ_TRANSPOSE_CONV_HYBRID ? (conv->out_channels + 3) / 4 * 4 : conv->out_channels;
}

/* ---- weights in the layout that the sums read ---- */

/* [tap][c][o] */
static void pack_floats(const tq_transpose_conv *conv, const tq_tensor *weights, void *packed)
{
    const float *from = weights->data;
    float *to = packed;
    for (size_t o = 0; o < conv->out_channels; o++)
        for (size_t i = 0; i < conv->taps * conv->channels; i++)
            to[i * conv->out_channels + o] = *from++;
}

/* The same of 8-bit weights, with zeros up to `columns`. */
static void pack_hybrid(const tq_transpose_conv *conv, const tq_tensor *weights, void *packed)
{
    const int8_t *from = weights->data;
    const size_t wide = columns(conv);
    float *to = packed;
    memset(to, 0, conv->taps * conv->channels * wide * sizeof *to);
    for (size_t o = 0; o < conv->out_channels; o++)
        for (size_t i = 0; i < conv->taps * conv->channels; i++)
            to[i * wide + o] = *from++;
}

static inline int16_t difference(const tq_tensor *tensor, size_t i, int32_t zero_point)
{
    int32_t q =
        tensor->type == TQ_TensorType_UINT8 ? ((const uint8_t *)tensor->data)[i] : ((const int8_t *)tensor->data)[i];
    return (int16_t)(q - zero_point);
}

/* [tap][o][c], less the zero point */
static void pack_quantized(const tq_transpose_conv *conv, const tq_tensor *weights, void *packed)
{
    int16_t *to = packed;
    for (size_t tap = 0; tap < conv->taps; tap++)
        for (size_t o = 0; o < conv->out_channels; o++)
            for (size_t c = 0; c < conv->channels; c++)
                *to++ = difference(weights, (o * conv->taps + tap) * conv->channels + c, conv->weights_zero_point);
}

/* ---- adding one input pixel to the sums ---- */

#define ADD_FLOATS(name, next)                                                                           \
    static void name(const running *r, size_t batch, size_t cell, size_t tap, size_t pixels, void *sums) \
    {                                                                                                    \
        (void)batch;                                                                                     \
        (void)pixels;                                                                                    \
        const tq_transpose_conv *conv = r->conv;                                                         \
        const float *x = (const float *)r->input + cell * conv->channels;                                \
        const float *w = (const float *)r->weights + tap * conv->channels * conv->out_channels;          \
        float *sum = sums;                                                                               \
        for (size_t c = 0; c < conv->channels; c++, w += conv->out_channels)                             \
            for (size_t o = 0; o < conv->out_channels; o++)                                              \
                sum[o] = next;                                                                           \
    }
ADD_FLOATS(add_floats, sum[o] + x[c] * w[o])
ADD_FLOATS(add_fused, fmaf(x[c], w[o], sum[o]))

/* What the pixels of one tap have in common. */
typedef struct hybrid_tap {
    const float *x; /* the first pixel's differences; the next pixel's follow */
    const float *w; /* [c][columns] */
    const tq_affine *q;
    float scale;
    size_t channels, columns, out_channels;
} hybrid_tap;

/* Output channels that one vector holds. */
typedef float lanes_16 __attribute__((vector_size(64)));
typedef float lanes_8 __attribute__((vector_size(32)));
typedef float lanes_4 __attribute__((vector_size(16)));

/* Unrolled: sums stay in registers. */
#define EACH_PIXEL(p, n) _Pragma("GCC unroll 4") for (size_t p = 0; p < (n); p++)

/* sum[p][o] += f32(difference[p] * w[o]) * s_w[o] * s_x for `side` output channels from o on and `pixels` pixels, both
   constant.  |difference * w| < 2^16 is exact in float32.  Pixels share the weights. */
#define ADD_LANES(side)                                                                      \
    TQ_BODY void add_##side(const hybrid_tap *t, size_t o, float *sums, const size_t pixels) \
    {                                                                                        \
        lanes_##side sum[PIXELS], scale = {0}, w;                                            \
        for (size_t i = 0; i < side && o + i < t->out_channels; i++)                         \
            scale[i] = t->q->scale[t->q->count > 1 ? o + i : 0];                             \
        EACH_PIXEL(p, pixels)                                                                \
        memcpy(&sum[p], sums + p * t->columns + o, sizeof sum[p]);                           \
        for (size_t c = 0; c < t->channels; c++) {                                           \
            memcpy(&w, t->w + c * t->columns + o, sizeof w);                                 \
            EACH_PIXEL(p, pixels)                                                            \
            sum[p] += t->x[p * t->channels + c] * w * scale * t->scale;                      \
        }                                                                                    \
        EACH_PIXEL(p, pixels)                                                                \
        memcpy(sums + p * t->columns + o, &sum[p], sizeof sum[p]);                           \
    }
ADD_LANES(16)
ADD_LANES(8)
ADD_LANES(4)

TQ_BODY void add_channels(const hybrid_tap *t, float *sums, const size_t pixels, const int longest)
{
    size_t o = 0;
    for (; longest >= 16 && o + 16 <= t->columns; o += 16)
        add_16(t, o, sums, pixels);
    for (; longest >= 8 && o + 8 <= t->columns; o += 8)
        add_8(t, o, sums, pixels);
    for (; o < t->columns; o += 4)
        add_4(t, o, sums, pixels);
}

#define ADD_PIXELS(isa, target)                                                          \
    target static void add_pixels_##isa(const hybrid_tap *t, float *sums, size_t pixels) \
    {                                                                                    \
        switch (pixels) {                                                                \
        case 1: add_channels(t, sums, 1, TQ_FLOATS_##isa); break;                        \
        case 2: add_channels(t, sums, 2, TQ_FLOATS_##isa); break;                        \
        case 3: add_channels(t, sums, 3, TQ_FLOATS_##isa); break;                        \
        default: add_channels(t, sums, PIXELS, TQ_FLOATS_##isa); break;                  \
        }                                                                                \
    }
TQ_EVERY_ISA(ADD_PIXELS)

static void add_hybrid(const running *r, size_t batch, size_t cell, size_t tap, size_t pixels, void *sums)
{
    static void (*const bodies[TQ_ISAS])(const hybrid_tap *, float *, size_t) = TQ_ISA_FUNCTIONS(add_pixels);
    const tq_transpose_conv *conv = r->conv;
    const hybrid_tap t = {.x = (const float *)r->input + cell * conv->channels,
                          .w = (const float *)r->weights + tap * conv->channels * columns(conv),
                          .q = &r->node->in[WEIGHTS]->quantization,
                          .scale = r->image[batch].scale,
                          .channels = conv->channels,
                          .columns = columns(conv),
                          .out_channels = conv->out_channels};
    bodies[tq_isa()](&t, sums, pixels);
}

/* XNNPACK sums products as integers, modulo 2^32. */
static void add_hybrid_fused(const running *r, size_t batch, size_t cell, size_t tap, size_t pixels, void *sums)
{
    (void)pixels;
    const tq_transpose_conv *conv = r->conv;
    const int8_t *x = (const int8_t *)r->input + cell * conv->channels;
    const float *w = (const float *)r->weights + tap * conv->channels * conv->out_channels;
    const int32_t zero_point = r->image[batch].zero_point;
    uint32_t *sum = sums;
    for (size_t c = 0; c < conv->channels; c++, w += conv->out_channels) {
        const int32_t difference = x[c] - zero_point;
        for (size_t o = 0; o < conv->out_channels; o++)
            sum[o] += (uint32_t)(difference * (int32_t)w[o]);
    }
}

static void add_quantized(const running *r, size_t batch, size_t cell, size_t tap, size_t pixels, void *sums)
{
    (void)pixels;
    (void)batch;
    const tq_transpose_conv *conv = r->conv;
    const int16_t *x = (const int16_t *)r->input + cell * conv->channels;
    const int16_t *w = (const int16_t *)r->weights + tap * conv->out_channels * conv->channels;
    int64_t *sum = sums;
    for (size_t o = 0; o < conv->out_channels; o++, w += conv->channels)
        sum[o] = tq_add_wrap_i64(sum[o], tq_dot_i16(x, w, conv->channels, conv->chunk));
}

/* ---- sums to outputs ---- */

static void store_floats(const running *r, size_t batch, const void *sums, size_t pixel)
{
    (void)batch;
    const tq_transpose_conv *conv = r->conv;
    const float *sum = sums;
    const tq_tensor *bias = conv->form == TQ_TRANSPOSE_CONV_FUSED ? NULL : tq_transpose_conv_bias(r->node, r->conv);
    float *out = (float *)r->node->out[0]->data + pixel * conv->out_channels;
    for (size_t o = 0; o < conv->out_channels; o++) {
        float y = bias ? sum[o] + ((const float *)bias->data)[o] : sum[o];
        y = y < conv->low ? conv->low : y;
        out[o] = y > conv->high ? conv->high : y;
    }
}

static void store_hybrid_fused(const running *r, size_t batch, const void *sums, size_t pixel)
{
    const tq_transpose_conv *conv = r->conv;
    const tq_tensor *bias = tq_transpose_conv_bias(r->node, r->conv), *weights = r->node->in[WEIGHTS];
    float *out = (float *)r->node->out[0]->data + pixel * conv->out_channels;
    for (size_t o = 0; o < conv->out_channels; o++) {
        float sum = (float)(int32_t)((const uint32_t *)sums)[o] * r->image[batch].scale;
        float y = fmaf(sum, tq_scale_at(weights, o), bias ? ((const float *)bias->data)[o] : 0);
        y = y < conv->low ? conv->low : y;
        out[o] = y > conv->high ? conv->high : y;
    }
}

static int64_t bias_at(const tq_tensor *bias, size_t o)
{
    return bias ? tq_integer_at(bias, o) : 0;
}

static void store_quantized(const running *r, size_t batch, const void *sums, size_t pixel)
{
    (void)batch;
    const tq_transpose_conv *conv = r->conv;
    const int64_t *sum = sums;
    const tq_tensor *bias = tq_transpose_conv_bias(r->node, r->conv), *output = r->node->out[0];
    for (size_t o = 0; o < conv->out_channels; o++) {
        int64_t acc = tq_add_wrap_i64(sum[o], bias_at(bias, o));
        const tq_multiplier *m = &conv->multipliers[o];
        const int32_t zero_point = conv->zero_point, low = conv->low_q, high = conv->high_q;
        int32_t q = conv->wide ? tq_requantize_i64(acc, m, m->rule, zero_point, low, high)
                               : tq_requantize(tq_wrap_i32(acc), m, m->rule, zero_point, low, high);
        size_t i = pixel * conv->out_channels + o;
        if (output->type == TQ_TensorType_INT16)
            ((int16_t *)output->data)[i] = (int16_t)q;
        else
            ((uint8_t *)output->data)[i] = (uint8_t)q; /* for int8 the same bits */
    }
}

/* ---- the walk ---- */

/* The input positions [*first, *end) of one dimension that contribute to output position `out`; the tap of position i
   is out + pad - i * stride. */
static void sources(const tq_window *w, int32_t out, int64_t *first, int64_t *end)
{
    int64_t reach = (int64_t)out + w->pad, low = reach - (w->filter - 1);
    *first = low <= 0 ? 0 : (low + w->stride - 1) / w->stride;
    *end = reach / w->stride + 1 < w->out ? reach / w->stride + 1 : w->out;
}

/* How many of at most `most` output pixels, a stride apart from out_x on, have their sources one after the other: the
   same taps.  0 < most. */
static size_t neighbours(const tq_window *w, int32_t out_x, size_t most)
{
    int64_t first, end, next, next_end;
    size_t count = 1;
    sources(w, out_x, &first, &end);
    for (; count < most && (int64_t)count * w->stride < w->in - out_x; count++) {
        const int64_t step = (int64_t)count;
        sources(w, out_x + (int32_t)count * w->stride, &next, &next_end);
        if (next != first + step || next_end != end + step)
            break;
    }
    return count;
}

/* The sums of `pixels` neighbours from (out_y, out_x) on. */
static void gather_pixels(const running *r, size_t batch, int32_t out_y, int32_t out_x, size_t pixels, void *sums)
{
    size_t work = 0;
    const tq_transpose_conv *conv = r->conv;
    int64_t y0, y1, x0, x1;
    sources(&conv->y, out_y, &y0, &y1);
    sources(&conv->x, out_x, &x0, &x1);
    const bool fused = conv->form == TQ_TRANSPOSE_CONV_FUSED;
    memset(sums, 0, pixels * columns(conv) * r->row->sum_size);
    if (fused && tq_transpose_conv_bias(r->node, r->conv))
        memcpy(sums, tq_transpose_conv_bias(r->node, r->conv)->data, conv->out_channels * sizeof(float));
    for (int64_t i = y0; i < y1; i++)
        for (int64_t j = x0; j < x1; j++) {
            const int64_t y = fused ? y0 + y1 - 1 - i : i, x = fused ? x0 + x1 - 1 - j : j;
            size_t cell = (batch * (size_t)conv->y.out + (size_t)y) * (size_t)conv->x.out + (size_t)x;
            int64_t ky = (int64_t)out_y + conv->y.pad - y * conv->y.stride;
            int64_t kx = (int64_t)out_x + conv->x.pad - x * conv->x.stride;
            if (tq_stop_count(&work, pixels * conv->channels * conv->out_channels / 8))
                return;
            r->row->add(r, batch, cell, (size_t)(ky * conv->x.filter + kx), pixels, sums);
        }
}

/* One row of the output: the pixels of each remainder modulo the stride, which have the same taps. */
static void run_row(const running *r, size_t row, char *sums)
{
    const tq_transpose_conv *conv = r->conv;
    const size_t height = (size_t)conv->y.in, width = (size_t)conv->x.in, stride = (size_t)conv->x.stride;
    const size_t step = columns(conv) * r->row->sum_size;
    size_t work = 0;
    for (size_t first = 0; first < stride && first < width; first++)
        for (size_t x = first, pixels; x < width && !tq_stop_count(&work, conv->out_channels); x += pixels * stride) {
            pixels = neighbours(&conv->x, (int32_t)x, r->row->pixels);
            gather_pixels(r, row / height, (int32_t)(row % height), (int32_t)x, pixels, sums);
            for (size_t i = 0; i < pixels; i++)
                r->row->store(r, row / height, sums + i * step, row * width + x + i * stride);
        }
}

static void run_tasks(void *context, size_t begin, size_t end)
{
    const running *r = context;
    const tq_transpose_conv *conv = r->conv;
    const size_t rows = conv->batches * (size_t)conv->y.in;
    for (size_t task = begin; task < end; task++)
        for (size_t row = task; row < rows && !tq_stop_now(); row += conv->tasks)
            run_row(r, row, r->sums + task * r->row->pixels * columns(conv) * r->row->sum_size);
}

/* ---- one row for each arithmetic ---- */

static const form_row rows[] = {
    [TQ_TRANSPOSE_CONV_FLOATS] = {pack_floats, add_floats, store_floats, 1, sizeof(float), sizeof(float), 0},
    [TQ_TRANSPOSE_CONV_FUSED] = {pack_floats, add_fused, store_floats, 1, sizeof(float), sizeof(float), 0},
    [TQ_TRANSPOSE_CONV_HYBRID] = {pack_hybrid, add_hybrid, store_floats, PIXELS, sizeof(float), sizeof(float), 1},
    [TQ_TRANSPOSE_CONV_HYBRID_FUSED] = {pack_hybrid, add_hybrid_fused, store_hybrid_fused, 1, sizeof(float),
                                        sizeof(float), 1},
    [TQ_TRANSPOSE_CONV_QUANTIZED] = {pack_quantized, add_quantized, store_quantized, 1, sizeof(int64_t),
                                     sizeof(int16_t), sizeof(int16_t)},
};

/* INT16 values are read in place: their zero point is 0. */
static size_t quantized_bytes(const tq_node *node, const tq_transpose_conv *conv)
{
    return node->in[conv->input]->type == TQ_TensorType_INT16 ? 0 : rows[conv->form].quantized_size;
}

/* The quantized images less their zero points. */
static const float *differences(const tq_node *node, const tq_transpose_conv *conv, const int8_t *quantized,
                                size_t size, const tq_hybrid_row *images)
{
    float *to = tq_scratch_at(node, conv->differences_at);
    for (size_t b = 0; b < conv->batches; b++)
        TQ_EACH (i, size)
            to[b * size + i] = (float)(quantized[b * size + i] - images[b].zero_point);
    return to;
}

/* The input of `add`: in place, quantized, or less its zero point. */
static const void *input_of(const tq_node *node, const tq_transpose_conv *conv, tq_hybrid_row *images)
{
    const tq_tensor *input = node->in[conv->input];
    size_t count = tq_tensor_count(input), size = conv->batches ? count / conv->batches : 0;
    if (!quantized_bytes(node, conv))
        return input->data;
    void *quantized = tq_scratch_at(node, conv->quantized_at);
    if (input->type == TQ_TensorType_FLOAT32) {
        const tq_hybrid_rule rule = tq_hybrid_rule_of(node, true);
        for (size_t b = 0; b < conv->batches; b++)
            images[b] =
                rule((const float *)input->data + b * size, size, node->threads, (int8_t *)quantized + b * size);
        return conv->form == TQ_TRANSPOSE_CONV_HYBRID ? differences(node, conv, quantized, size, images) : quantized;
    }
    int32_t zero_point = tq_transpose_conv_zero_point(node, conv->input);
    TQ_EACH (i, count)
        ((int16_t *)quantized)[i] = difference(input, i, zero_point);
    return quantized;
}

/* ---- uint8 elements after the last whole block of 16 ---- */

/* The accumulator of one uint8 output element, from the unpacked tensors. */
static int32_t sum_at(const tq_node *node, const tq_transpose_conv *conv, size_t pixel, size_t o)
{
    const tq_tensor *x = node->in[conv->input], *w = node->in[WEIGHTS];
    const size_t width = (size_t)conv->x.in, row = pixel / width, batch = row / (size_t)conv->y.in;
    const int64_t out_y = (int64_t)(row % (size_t)conv->y.in), out_x = (int64_t)(pixel % width);
    const int32_t zero_x = tq_transpose_conv_zero_point(node, conv->input);
    const int32_t zero_w = tq_transpose_conv_zero_point(node, WEIGHTS);
    int64_t y0, y1, x0, x1, sum = bias_at(tq_transpose_conv_bias(node, conv), o);
    sources(&conv->y, (int32_t)out_y, &y0, &y1);
    sources(&conv->x, (int32_t)out_x, &x0, &x1);
    for (int64_t i = y0; i < y1; i++)
        for (int64_t j = x0; j < x1; j++) {
            size_t cell = (batch * (size_t)conv->y.out + (size_t)i) * (size_t)conv->x.out + (size_t)j;
            int64_t ky = out_y + conv->y.pad - i * conv->y.stride, kx = out_x + conv->x.pad - j * conv->x.stride;
            int64_t tap = ky * conv->x.filter + kx;
            if (tq_stop_after(conv->channels))
                return 0;
            for (size_t c = 0; c < conv->channels; c++)
                sum += difference(x, cell * conv->channels + c, zero_x) *
                       difference(w, (o * conv->taps + (size_t)tap) * conv->channels + c, zero_w);
        }
    return tq_wrap_i32(sum);
}

void tq_transpose_conv_gather_redo_remainder(const tq_node *node, const tq_transpose_conv *conv)
{
    uint8_t *out = node->out[0]->data;
    const size_t n = tq_tensor_count(node->out[0]);
    for (size_t i = n - n % 16; i < n; i++) {
        const size_t o = i % conv->out_channels;
        out[i] = (uint8_t)tq_requantize(sum_at(node, conv, i / conv->out_channels, o), &conv->multipliers[o],
                                        TQ_REQUANTIZE_DOUBLE, conv->zero_point, conv->low_q, conv->high_q);
    }
}

/* ---- prepare and eval ---- */

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_transpose_conv *conv = node->state;
    const form_row *row = &rows[conv->form];
    tq_hybrid_row *images = tq_scratch_at(node, conv->images_at);
    void *packed = conv->constant ? (char *)node->prepacked + conv->packed_at : tq_scratch_at(node, conv->packed_at);
    if (!conv->constant)
        row->pack(conv, node->in[WEIGHTS], packed);
    running r = {conv, row, node, packed, input_of(node, conv, images), images, tq_scratch_at(node, conv->sums_at)};
    tq_parallel_for(conv->tasks, 1, node->threads, run_tasks, &r);
    if (conv->has_remainder)
        tq_transpose_conv_gather_redo_remainder(node, conv);
    return TQ_OK;
}

static void prepack(tq_node *node)
{
    const tq_transpose_conv *conv = node->state;
    rows[conv->form].pack(conv, node->in[WEIGHTS], (char *)node->prepacked + conv->packed_at);
}

tq_status tq_transpose_conv_gather_prepare(tq_node *node, tq_transpose_conv *conv, tq_error *error)
{
    const tq_tensor *weights = node->in[WEIGHTS];
    const form_row *row = &rows[conv->form];
    const size_t element = quantized_bytes(node, conv);
    const bool is_hybrid = conv->form == TQ_TRANSPOSE_CONV_HYBRID;
    uint64_t total = 0, prepacked = 0;
    conv->tasks = (size_t)node->threads;
    conv->constant = tq_is_constant(weights);
    conv->packed_at = tq_scratch_part(conv->constant ? &prepacked : &total, conv->taps * conv->channels * columns(conv),
                                      row->weight_size);
    const int64_t key[] = {conv->form, (int64_t)conv->taps, (int64_t)conv->channels, (int64_t)conv->out_channels,
                           conv->weights_zero_point};
    if (conv->constant)
        TQ_TRY(tq_node_prepack(node, prepacked, prepack, key, (int)(sizeof key / sizeof *key), error));
    conv->quantized_at = tq_scratch_part(&total, tq_tensor_count(node->in[conv->input]), element);
    conv->images_at = tq_scratch_part(&total, row->quantized_size == 1 ? conv->batches : 0, sizeof(tq_hybrid_row));
    conv->differences_at =
        tq_scratch_part(&total, is_hybrid ? tq_tensor_count(node->in[conv->input]) : 0, sizeof(float));
    conv->sums_at = tq_scratch_part(&total, conv->tasks * row->pixels * columns(conv), row->sum_size);
    node->eval = eval;
    return tq_node_scratch(node, total, error);
}
