/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/products/transpose_conv_gather.h"

#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "ops/check.h"
#include "ops/products/dot.h"
#include "ops/products/hybrid.h"
#include "ops/quantized.h"
#include "ops/scratch.h"

enum { WEIGHTS = TQ_DECONV_WEIGHTS, INPUT = TQ_DECONV_INPUT };

typedef struct form_row form_row;

/* One eval. */
typedef struct running {
    const tq_deconvolution *d;
    const form_row *row;
    const tq_node *node;
    const void *weights; /* packed */
    const void *input;   /* float, int8 codes or int16 differences to the zero point */
    const tq_hybrid_row *image;
    char *sums;
} running;

/* What a form is made of. */
struct form_row {
    void (*pack)(const tq_deconvolution *d, const tq_tensor *weights, void *packed);
    void (*add)(const running *r, size_t batch, size_t cell, size_t tap, void *sums);
    void (*store)(const running *r, size_t batch, const void *sums, size_t place);
    size_t sum_size;    /* of one output channel */
    size_t weight_size; /* packed */
    size_t code_size;   /* of an element of the input in scratch; 0: it is read in place */
};

/* ---- weights, as the sums read them ---- */

/* [tap][c][o] */
static void pack_floats(const tq_deconvolution *d, const tq_tensor *weights, void *packed)
{
    const float *from = weights->data;
    float *to = packed;
    for (size_t o = 0; o < d->out_channels; o++)
        for (size_t i = 0; i < d->taps * d->channels; i++)
            to[i * d->out_channels + o] = *from++;
}

static void pack_hybrid(const tq_deconvolution *d, const tq_tensor *weights, void *packed)
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
static void pack_codes(const tq_deconvolution *d, const tq_tensor *weights, void *packed)
{
    int16_t *to = packed;
    int32_t zero_point = weights->type == TQ_TensorType_UINT8 ? tq_zero_point_at(weights, 0) : 0;
    for (size_t tap = 0; tap < d->taps; tap++)
        for (size_t o = 0; o < d->out_channels; o++)
            for (size_t c = 0; c < d->channels; c++)
                *to++ = difference(weights, (o * d->taps + tap) * d->channels + c, zero_point);
}

/* ---- what one input cell adds ---- */

#define ADD_FLOATS(name, next)                                                                \
    static void name(const running *r, size_t batch, size_t cell, size_t tap, void *sums)     \
    {                                                                                         \
        (void)batch;                                                                          \
        const tq_deconvolution *d = r->d;                                                     \
        const float *x = (const float *)r->input + cell * d->channels;                        \
        const float *w = (const float *)r->weights + tap * d->channels * d->out_channels;     \
        float *sum = sums;                                                                    \
        for (size_t c = 0; c < d->channels; c++, w += d->out_channels)                        \
            for (size_t o = 0; o < d->out_channels; o++)                                      \
                sum[o] = next;                                                                \
    }
ADD_FLOATS(add_floats, sum[o] + x[c] * w[o])
ADD_FLOATS(add_fused, fmaf(x[c], w[o], sum[o]))

static void add_hybrid(const running *r, size_t batch, size_t cell, size_t tap, void *sums)
{
    const tq_deconvolution *d = r->d;
    const int8_t *x = (const int8_t *)r->input + cell * d->channels;
    const int8_t *w = (const int8_t *)r->weights + tap * d->channels * d->out_channels;
    const tq_tensor *weights = r->node->in[WEIGHTS];
    const tq_hybrid_row *image = r->image + batch;
    float *sum = sums;
    for (size_t c = 0; c < d->channels; c++, w += d->out_channels)
        for (size_t o = 0; o < d->out_channels; o++)
            sum[o] += (float)((x[c] - image->zero_point) * w[o]) * tq_scale_at(weights, o) * image->scale;
}

/* XNNPACK's: the sum is of codes.  It may wrap, as those of all products of codes. */
static void add_hybrid_codes(const running *r, size_t batch, size_t cell, size_t tap, void *sums)
{
    const tq_deconvolution *d = r->d;
    const int8_t *x = (const int8_t *)r->input + cell * d->channels;
    const int8_t *w = (const int8_t *)r->weights + tap * d->channels * d->out_channels;
    const int32_t zero_point = r->image[batch].zero_point;
    uint32_t *sum = sums;
    for (size_t c = 0; c < d->channels; c++, w += d->out_channels) {
        const int32_t difference = x[c] - zero_point;
        for (size_t o = 0; o < d->out_channels; o++)
            sum[o] += (uint32_t)(difference * w[o]);
    }
}

static void add_codes(const running *r, size_t batch, size_t cell, size_t tap, void *sums)
{
    (void)batch;
    const tq_deconvolution *d = r->d;
    const int16_t *x = (const int16_t *)r->input + cell * d->channels;
    const int16_t *w = (const int16_t *)r->weights + tap * d->out_channels * d->channels;
    int64_t *sum = sums;
    for (size_t o = 0; o < d->out_channels; o++, w += d->channels)
        sum[o] = tq_add_wrap_i64(sum[o], tq_dot_i16(x, w, d->channels, d->chunk));
}

/* ---- sums to outputs ---- */

static void store_floats(const running *r, size_t batch, const void *sums, size_t place)
{
    (void)batch;
    const tq_deconvolution *d = r->d;
    const float *sum = sums;
    const tq_tensor *bias = d->form == TQ_DECONV_FUSED ? NULL : tq_deconv_bias(r->node);
    float *out = (float *)r->node->out[0]->data + place * d->out_channels;
    for (size_t o = 0; o < d->out_channels; o++) {
        float y = bias ? sum[o] + ((const float *)bias->data)[o] : sum[o];
        y = y < d->low ? d->low : y;
        out[o] = y > d->high ? d->high : y;
    }
}

static void store_hybrid_codes(const running *r, size_t batch, const void *sums, size_t place)
{
    const tq_deconvolution *d = r->d;
    const tq_tensor *bias = tq_deconv_bias(r->node), *weights = r->node->in[WEIGHTS];
    float *out = (float *)r->node->out[0]->data + place * d->out_channels;
    for (size_t o = 0; o < d->out_channels; o++) {
        float sum = (float)(int32_t)((const uint32_t *)sums)[o] * r->image[batch].scale;
        float y = fmaf(sum, tq_scale_at(weights, o), bias ? ((const float *)bias->data)[o] : 0);
        y = y < d->low ? d->low : y;
        out[o] = y > d->high ? d->high : y;
    }
}

static int64_t bias_at(const tq_tensor *bias, size_t o)
{
    return bias ? tq_integer_at(bias, o) : 0;
}

static void store_codes(const running *r, size_t batch, const void *sums, size_t place)
{
    (void)batch;
    const tq_deconvolution *d = r->d;
    const int64_t *sum = sums;
    const tq_tensor *bias = tq_deconv_bias(r->node), *output = r->node->out[0];
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

static void eval_place(const running *r, size_t batch, int32_t out_y, int32_t out_x, void *sums)
{
    size_t work = 0;
    const tq_deconvolution *d = r->d;
    int64_t y0, y1, x0, x1;
    sources(&d->y, out_y, &y0, &y1);
    sources(&d->x, out_x, &x0, &x1);
    const bool fused = d->form == TQ_DECONV_FUSED;
    memset(sums, 0, d->out_channels * r->row->sum_size);
    if (fused && tq_deconv_bias(r->node))
        memcpy(sums, tq_deconv_bias(r->node)->data, d->out_channels * sizeof(float));
    for (int64_t i = y0; i < y1; i++)
        for (int64_t j = x0; j < x1; j++) {
            const int64_t y = fused ? y0 + y1 - 1 - i : i, x = fused ? x0 + x1 - 1 - j : j;
            size_t cell = (batch * (size_t)d->y.out + (size_t)y) * (size_t)d->x.out + (size_t)x;
            int64_t ky = (int64_t)out_y + d->y.pad - y * d->y.stride;
            int64_t kx = (int64_t)out_x + d->x.pad - x * d->x.stride;
            if (tq_stop_count(&work, d->channels * d->out_channels / 8))
                return;
            r->row->add(r, batch, cell, (size_t)(ky * d->x.filter + kx), sums);
        }
}

static void run_tasks(void *context, size_t begin, size_t end)
{
    size_t work = 0;
    const running *r = context;
    const tq_deconvolution *d = r->d;
    size_t height = (size_t)d->y.in, width = (size_t)d->x.in, rows = d->batches * height;
    for (size_t task = begin; task < end; task++) {
        void *sums = r->sums + task * d->out_channels * r->row->sum_size;
        for (size_t row = task; row < rows; row += d->tasks)
            for (size_t x = 0; x < width && !tq_stop_count(&work, d->out_channels); x++) {
                eval_place(r, row / height, (int32_t)(row % height), (int32_t)x, sums);
                r->row->store(r, row / height, sums, row * width + x);
            }
    }
}

/* ---- the forms ---- */

static const form_row rows[] = {
    [TQ_DECONV_FLOATS] = {pack_floats, add_floats, store_floats, sizeof(float), sizeof(float), 0},
    [TQ_DECONV_FUSED] = {pack_floats, add_fused, store_floats, sizeof(float), sizeof(float), 0},
    [TQ_DECONV_HYBRID] = {pack_hybrid, add_hybrid, store_floats, sizeof(float), 1, 1},
    [TQ_DECONV_HYBRID_CODES] = {pack_hybrid, add_hybrid_codes, store_hybrid_codes, sizeof(float), 1, 1},
    [TQ_DECONV_CODES] = {pack_codes, add_codes, store_codes, sizeof(int64_t), sizeof(int16_t), sizeof(int16_t)},
};

/* INT16 codes are read in place: their zero point is 0. */
static size_t code_bytes(const tq_node *node, const tq_deconvolution *d)
{
    return node->in[INPUT]->type == TQ_TensorType_INT16 ? 0 : rows[d->form].code_size;
}

/* The input in the form that `add` reads. */
static const void *input_of(const tq_node *node, const tq_deconvolution *d, tq_hybrid_row *images)
{
    const tq_tensor *input = node->in[INPUT];
    size_t count = tq_tensor_count(input), size = d->batches ? count / d->batches : 0;
    if (!code_bytes(node, d))
        return input->data;
    void *codes = tq_scratch_at(node, d->codes_at);
    if (input->type == TQ_TensorType_FLOAT32) {
        const tq_hybrid_rule rule = tq_hybrid_rule_of(node, true);
        for (size_t b = 0; b < d->batches; b++)
            images[b] = rule((const float *)input->data + b * size, size, (int8_t *)codes + b * size);
        return codes;
    }
    int32_t zero_point = tq_zero_point_at(input, 0);
    TQ_EACH(i, count)
        ((int16_t *)codes)[i] = difference(input, i, zero_point);
    return codes;
}

/* ---- the last elements of uint8 ---- */

/* acc of one element of uint8 codes, from the tensors as they are. */
static int32_t sum_at(const tq_node *node, const tq_deconvolution *d, size_t place, size_t o)
{
    const tq_tensor *x = node->in[INPUT], *w = node->in[WEIGHTS];
    const size_t width = (size_t)d->x.in, row = place / width, batch = row / (size_t)d->y.in;
    const int64_t out_y = (int64_t)(row % (size_t)d->y.in), out_x = (int64_t)(place % width);
    const int32_t zero_x = tq_zero_point_at(x, 0), zero_w = tq_zero_point_at(w, 0);
    int64_t y0, y1, x0, x1, sum = bias_at(tq_deconv_bias(node), o);
    sources(&d->y, (int32_t)out_y, &y0, &y1);
    sources(&d->x, (int32_t)out_x, &x0, &x1);
    for (int64_t i = y0; i < y1; i++)
        for (int64_t j = x0; j < x1; j++) {
            size_t cell = (batch * (size_t)d->y.out + (size_t)i) * (size_t)d->x.out + (size_t)j;
            int64_t tap = (out_y + d->y.pad - i * d->y.stride) * d->x.filter + out_x + d->x.pad - j * d->x.stride;
            if (tq_stop_after(d->channels))
                return 0;
            for (size_t c = 0; c < d->channels; c++)
                sum += difference(x, cell * d->channels + c, zero_x) *
                       difference(w, (o * d->taps + (size_t)tap) * d->channels + c, zero_w);
        }
    return tq_wrap_i32(sum);
}

void tq_deconv_redo_rest(const tq_node *node, const tq_deconvolution *d)
{
    uint8_t *out = node->out[0]->data;
    const size_t n = tq_tensor_count(node->out[0]);
    for (size_t i = n - n % 16; i < n; i++) {
        const size_t o = i % d->out_channels;
        out[i] = (uint8_t)tq_requantize(sum_at(node, d, i / d->out_channels, o), &d->multipliers[o],
                                        TQ_REQUANTIZE_DOUBLE, d->zero_point, d->low_code, d->high_code);
    }
}

/* ---- prepare and eval ---- */

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    const tq_deconvolution *d = node->state;
    const form_row *row = &rows[d->form];
    tq_hybrid_row *images = tq_scratch_at(node, d->images_at);
    void *packed = d->constant ? (char *)node->kept + d->packed_at : tq_scratch_at(node, d->packed_at);
    if (!d->constant)
        row->pack(d, node->in[WEIGHTS], packed);
    running r = {d, row, node, packed, input_of(node, d, images), images, tq_scratch_at(node, d->sums_at)};
    tq_parallel_for(d->tasks, 1, node->threads, run_tasks, &r);
    if (d->has_rest)
        tq_deconv_redo_rest(node, d);
    return TQ_OK;
}

static void pack_kept(tq_node *node)
{
    const tq_deconvolution *d = node->state;
    rows[d->form].pack(d, node->in[WEIGHTS], (char *)node->kept + d->packed_at);
}

tq_status tq_deconv_prepare(tq_node *node, tq_deconvolution *d, tq_error *error)
{
    const tq_tensor *weights = node->in[WEIGHTS];
    const form_row *row = &rows[d->form];
    const size_t code = code_bytes(node, d);
    uint64_t total = 0, kept = 0;
    d->tasks = (size_t)node->threads;
    d->constant = tq_is_constant(weights);
    d->packed_at = tq_scratch_part(d->constant ? &kept : &total, tq_tensor_count(weights), row->weight_size);
    const int64_t form[] = {row->pack == pack_floats, row->pack == pack_hybrid, (int64_t)d->taps, (int64_t)d->channels,
                            (int64_t)d->out_channels};
    if (d->constant)
        TQ_TRY(tq_node_keep(node, kept, pack_kept, form, (int)(sizeof form / sizeof *form), error));
    d->codes_at = tq_scratch_part(&total, tq_tensor_count(node->in[INPUT]), code);
    d->images_at = tq_scratch_part(&total, row->pack == pack_hybrid ? d->batches : 0, sizeof(tq_hybrid_row));
    d->sums_at = tq_scratch_part(&total, d->tasks * d->out_channels, row->sum_size);
    node->eval = eval;
    return tq_node_scratch(node, total, error);
}
