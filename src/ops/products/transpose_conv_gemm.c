/* SPDX-License-Identifier: Apache-2.0
 *
 * Transposed convolutions by the matrix kernel.
 */
#include "ops/products/transpose_conv_gemm.h"

#include <string.h>

#include "ops/check.h"
#include "ops/movement/strided_copy.h"
#include "ops/scratch.h"

/* One dimension of a phase: outputs first, first + stride, ... use the taps rest, rest + stride, ...; `count` outputs,
   `taps` taps.  So do, with rest and first one higher each, `members` neighbours. */
typedef struct side {
    int32_t rest, first, members, count, taps, pad;
} side;

struct tq_transpose_conv_phase {
    side y, x;
    size_t channels; /* of all members */
    tq_gemm gemm;
    tq_scan scan;
    uint64_t packed_at; /* in node->prepacked */
};

bool tq_transpose_conv_gemm_fits(const tq_window *y, const tq_window *x)
{
    return y->stride <= y->filter && x->stride <= x->filter && (int64_t)y->stride * x->stride <= 256;
}

static side side_at(const tq_window *w, int32_t first)
{
    const int64_t reach = (int64_t)first + w->pad;
    side s = {.rest = (int32_t)(reach % w->stride), .first = first, .members = 1};
    s.count = first < w->in ? (w->in - first - 1) / w->stride + 1 : 0;
    s.taps = (w->filter - s.rest - 1) / w->stride + 1;
    s.pad = s.taps - 1 - (int32_t)(reach / w->stride);
    return s;
}

/* The side of output `first`.  merged: with all neighbours that read the same inputs. */
static side side_from(const tq_window *w, int32_t first, bool merged)
{
    side s = side_at(w, first);
    for (; merged && first + s.members < w->stride; s.members++) {
        const side next = side_at(w, first + s.members);
        if (next.count != s.count || next.taps != s.taps || next.pad != s.pad)
            break;
    }
    return s;
}

static tq_scan scan_of(const tq_transpose_conv_gemm *t, const side *y, const side *x)
{
    return (tq_scan){.in_h = t->y->out,
                     .in_w = t->x->out,
                     .out_h = y->count,
                     .out_w = x->count,
                     .filter_h = y->taps,
                     .filter_w = x->taps,
                     .stride_h = 1,
                     .stride_w = 1,
                     .dilation_h = 1,
                     .dilation_w = 1,
                     .pad_h = y->pad,
                     .pad_w = x->pad};
}

/* Elements of an image of the input. */
static size_t image_elements(const tq_transpose_conv_gemm *t)
{
    return (size_t)t->y->out * (size_t)t->x->out * t->channels;
}

/* Pixels of an image. */
static size_t pixels(const tq_transpose_conv_phase *p)
{
    return (size_t)p->y.count * (size_t)p->x.count;
}

/* The same scan with taps in the opposite order. */
static tq_scan reversed(tq_scan scan)
{
    scan.dilation_h = scan.dilation_w = -1;
    scan.pad_h -= scan.filter_h - 1;
    scan.pad_w -= scan.filter_w - 1;
    return scan;
}

/* The weights of member (down, right), to: [o][taps of y][taps of x][c].  The last tap comes first: the order of input
   pixels.  With TQ_GEMM_FUSED the first tap comes first: XNNPACK's order. */
static char *gather_taps(const tq_transpose_conv_gemm *t, const tq_transpose_conv_phase *p, int32_t down, int32_t right,
                         const char *weights, size_t item, char *to)
{
    size_t bytes = t->channels * item, width = (size_t)t->x->filter, area = width * (size_t)t->y->filter;
    for (size_t o = 0; o < t->out_channels; o++)
        for (int32_t i = p->y.taps; i-- > 0 && !tq_stop_after((size_t)p->x.taps * t->channels / 8);)
            for (int32_t j = p->x.taps; j-- > 0; to += bytes) {
                const int32_t row = t->flags & TQ_GEMM_FUSED ? p->y.taps - 1 - i : i;
                const int32_t column = t->flags & TQ_GEMM_FUSED ? p->x.taps - 1 - j : j;
                size_t ky = (size_t)(p->y.rest + down + row * t->y->stride);
                size_t kx = (size_t)(p->x.rest + right + column * t->x->stride);
                memcpy(to, weights + (o * area + ky * width + kx) * bytes, bytes);
            }
    return to;
}

static const tq_tensor *bias_of(const tq_node *node, const tq_transpose_conv_gemm *t)
{
    return t->bias < node->in_count ? node->in[t->bias] : NULL;
}

/* Weights and biases of all members, one after the other: [down][right][o]. */
static void pack_phase(const tq_node *node, const tq_transpose_conv_gemm *t, const tq_transpose_conv_phase *p,
                       tq_gemm *packed)
{
    const tq_tensor *bias = t->rule ? NULL : bias_of(node, t);
    const size_t bias_bytes = bias ? t->out_channels * tq_element_bytes(bias->type) : 0;
    tq_gemm_weights weights = t->weights;
    char *taps = tq_scratch_at(node, t->taps_at), *biases = tq_scratch_at(node, t->biases_at);
    weights.data = taps;
    weights.bias = bias ? biases : NULL;
    for (int32_t down = 0; down < p->y.members; down++)
        for (int32_t right = 0; right < p->x.members; right++, biases += bias_bytes) {
            taps = gather_taps(t, p, down, right, node->in[1]->data, t->in == TQ_f32 ? sizeof(float) : 1, taps);
            if (bias)
                memcpy(biases, bias->data, bias_bytes);
        }
    weights.channel_stride = (size_t)p->y.taps * (size_t)p->x.taps * t->channels;
    weights.k_stride = 1;
    *packed = p->gemm;
    tq_gemm_pack(packed, &weights, (char *)node->prepacked + p->packed_at);
}

void tq_transpose_conv_gemm_pack(const tq_node *node, const tq_transpose_conv_gemm *t)
{
    tq_gemm *packed = node->prepacked; /* [count], in front of the weights */
    for (size_t i = 0; i < t->count; i++)
        pack_phase(node, t, &t->phases[i], &packed[i]);
}

/* Plans a phase of output pixels, unless it has none; adds its weights to *prepacked. */
static tq_status plan_phase(tq_transpose_conv_gemm *t, const side *y, const side *x, uint64_t *prepacked,
                            tq_error *error)
{
    tq_transpose_conv_phase *p = &t->phases[t->count];
    *p = (tq_transpose_conv_phase){.y = *y, .x = *x};
    if (pixels(p) == 0 || t->batches == 0)
        return TQ_OK;
    p->channels = (size_t)y->members * (size_t)x->members * t->out_channels;
    p->scan = scan_of(t, y, x);
    if (t->flags & TQ_GEMM_FUSED)
        p->scan = reversed(p->scan);
    TQ_TRY(tq_gemm_plan(&p->gemm, t->in, p->channels, (size_t)y->taps * (size_t)x->taps, t->channels, t->flags, error));
    p->packed_at = tq_scratch_part(prepacked, p->gemm.packed_bytes, 1);
    t->count++;
    return TQ_OK;
}

/* Whether a phase's rows of results are the rows of the output. */
static bool is_direct(const tq_transpose_conv_gemm *t, const tq_transpose_conv_phase *p)
{
    return t->y->stride == 1 && p->x.members == t->x->stride;
}

/* Requests scratch for the packing and running of the planned phases. */
static void plan_scratch(const tq_node *node, tq_transpose_conv_gemm *t, uint64_t *scratch)
{
    size_t results = 0, channels = 0;
    uint64_t work = 0, padding = 0;
    for (size_t i = 0; i < t->count; i++) {
        const tq_transpose_conv_phase *p = &t->phases[i];
        const uint64_t bytes = tq_gemm_scratch_bytes(&p->gemm, node->threads);
        const size_t elements = is_direct(t, p) ? 0 : t->batches * pixels(p) * p->channels;
        const uint64_t padded = t->rule ? tq_gemm_padding_bytes(&p->gemm) : 0;
        work = bytes > work ? bytes : work;
        padding = padded > padding ? padded : padding;
        results = elements > results ? elements : results;
        channels = p->channels > channels ? p->channels : channels;
    }
    t->work_at = tq_scratch_part(scratch, work, 1);
    t->result_at = tq_scratch_part(scratch, results, tq_element_bytes(node->out[0]->type));
    t->taps_at = tq_scratch_part(scratch, tq_tensor_count(node->in[1]), t->in == TQ_f32 ? sizeof(float) : 1);
    t->biases_at = tq_scratch_part(scratch, channels, sizeof(int64_t));
    t->quantized_at = tq_scratch_part(scratch, t->rule ? image_elements(t) : 0, 1);
    t->padding_at = tq_scratch_part(scratch, padding, 1);
}

/* The columns of the scaling with a rule, for a phase of `members` members and less. */
static tq_status prepare_columns(tq_node *node, tq_transpose_conv_gemm *t, size_t members, tq_error *error)
{
    const tq_tensor *bias = bias_of(node, t);
    const size_t channels = members * t->out_channels;
    if (!t->rule)
        return TQ_OK;
    TQ_TRY(tq_node_memory(node, channels, sizeof *t->scales, &t->scales, error));
    if (bias)
        TQ_TRY(tq_node_memory(node, channels, sizeof *t->biases, &t->biases, error));
    for (size_t c = 0; c < channels; c++) {
        t->scales[c] = tq_scale_at(node->in[1], c % t->out_channels);
        if (bias)
            t->biases[c] = ((const float *)bias->data)[c % t->out_channels];
    }
    return TQ_OK;
}

tq_status tq_transpose_conv_gemm_prepare(tq_node *node, tq_transpose_conv_gemm *t, uint64_t *scratch, tq_pack_fn pack,
                                         tq_error *error)
{
    const size_t most = (size_t)t->y->stride * (size_t)t->x->stride;
    const bool merged = t->store.out == TQ_f32; /* stores of integers have one set of multipliers for all phases */
    uint64_t prepacked = 0;
    TQ_TRY(tq_node_memory(node, most, sizeof *t->phases, &t->phases, error));
    tq_scratch_part(&prepacked, most, sizeof(tq_gemm));
    side y, x;
    for (int32_t down = 0; down < t->y->stride; down += y.members) {
        y = side_from(t->y, down, merged);
        for (int32_t right = 0; right < t->x->stride; right += x.members) {
            x = side_from(t->x, right, merged);
            TQ_TRY(plan_phase(t, &y, &x, &prepacked, error));
        }
    }
    plan_scratch(node, t, scratch);
    TQ_TRY(prepare_columns(node, t, most, error));
    /* the filter's shape and these determine the phases */
    const int64_t key[] = {
        t->y->stride, t->y->pad, t->y->in, t->y->out,           t->x->stride,          t->x->pad,
        t->x->in,     t->x->out, t->flags, (int64_t)t->batches, t->weights.zero_point, t->weights.row_zero_point,
        merged};
    return tq_node_prepack(node, prepacked, pack, key, (int)(sizeof key / sizeof *key), error);
}

/* Images of the input and of the output: all, or one. */
typedef struct images {
    const void *in;
    char *out;
    size_t count;
} images;

/* Copies a phase's pixels to their positions in the output. */
static void spread(const tq_node *node, const tq_transpose_conv_gemm *t, const tq_transpose_conv_phase *p,
                   const void *results, const images *of)
{
    const tq_window *y = t->y, *x = t->x;
    const size_t down = (size_t)p->y.members, right = (size_t)p->x.members;
    const size_t high = (size_t)p->y.count, wide = (size_t)p->x.count;
    const ptrdiff_t pixel = (ptrdiff_t)(t->out_channels * tq_element_bytes(node->out[0]->type));
    const ptrdiff_t row = x->in * pixel, member = p->x.members * pixel, result = p->y.members * member;
    tq_strided copy;
    tq_strided_begin(&copy, right * (size_t)pixel);
    tq_strided_dim(&copy, of->count, (ptrdiff_t)(high * wide) * result, y->in * row);
    tq_strided_dim(&copy, high, (ptrdiff_t)wide * result, y->stride * row);
    tq_strided_dim(&copy, down, member, row);
    tq_strided_dim(&copy, wide, result, x->stride * pixel);
    tq_strided_end(&copy);
    copy.to_at = p->y.first * row + p->x.first * pixel;
    tq_strided_copy(&copy, results, of->out, node->threads);
}

static void eval_phase(const tq_node *node, const tq_transpose_conv_gemm *t, const tq_transpose_conv_phase *p,
                       const tq_gemm *packed, const tq_gemm_store *store, const images *of)
{
    const bool direct = is_direct(t, p);
    void *results = direct ? of->out : tq_scratch_at(node, t->result_at);
    tq_gemm_rows rows = {of->in, of->count * pixels(p), t->channels, &p->scan};
    tq_gemm_run(packed, &rows, store, results, p->channels, tq_scratch_at(node, t->work_at), node->threads);
    if (!direct)
        spread(node, t, p, results, of);
}

/* Image by image: each has its own scale and zero point. */
static void eval_hybrid(const tq_node *node, const tq_transpose_conv_gemm *t)
{
    const tq_gemm *packed = node->prepacked;
    const size_t elements = image_elements(t), out_elements = (size_t)t->y->in * (size_t)t->x->in * t->out_channels;
    int8_t *quantized = tq_scratch_at(node, t->quantized_at);
    tq_gemm_scaling scaling = {.order = TQ_SCALE_FUSED, .scale_step = 1, .scale = t->scales, .bias = t->biases};
    tq_gemm_store store = t->store;
    store.scaling = &scaling;
    for (size_t b = 0; b < t->batches && !tq_stop_now(); b++) {
        const float *in = (const float *)node->in[t->input]->data + b * elements;
        float *out = (float *)node->out[0]->data + b * out_elements;
        const tq_hybrid_row image = t->rule(in, elements, node->threads, quantized);
        scaling.row = &image;
        for (size_t i = 0; i < t->count; i++) {
            const tq_gemm padded =
                tq_gemm_with_padding(&packed[i], (int8_t)image.zero_point, tq_scratch_at(node, t->padding_at));
            scaling.weight_sums = tq_gemm_weight_sums(&padded);
            eval_phase(node, t, &t->phases[i], &padded, &store, &(images){quantized, (char *)out, 1});
        }
    }
}

void tq_transpose_conv_gemm_eval(const tq_node *node, const tq_transpose_conv_gemm *t)
{
    const tq_gemm *packed = node->prepacked;
    const images all = {node->in[t->input]->data, node->out[0]->data, t->batches};
    if (t->rule)
        eval_hybrid(node, t);
    else
        for (size_t i = 0; i < t->count; i++)
            eval_phase(node, t, &t->phases[i], &packed[i], &t->store, &all);
}
