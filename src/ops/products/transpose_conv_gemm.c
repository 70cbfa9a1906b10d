/* SPDX-License-Identifier: Apache-2.0
 *
 * Transposed convolutions by the matrix kernel.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/parallel.h"
#include "ops/scratch.h"
#include "ops/products/transpose_conv_gemm.h"

/* One dimension of a phase: outputs first, first + stride, ... use the taps rest, rest + stride, ...; `count` outputs,
   `taps` taps. */
typedef struct side {
    int32_t rest, first, count, taps, pad;
} side;

struct tq_transpose_conv_phase {
    side y, x;
    tq_gemm gemm;
    tq_scan scan;
    uint64_t packed_at; /* in node->prepacked */
};

/* Arguments of spread_rows: copies a phase's pixels to their positions in the output. */
typedef struct spread {
    const tq_transpose_conv_gemm *t;
    const tq_transpose_conv_phase *phase;
    const char *from;
    char *to;
    size_t bytes; /* of a pixel */
} spread;

bool tq_transpose_conv_gemm_fits(const tq_window *y, const tq_window *x)
{
    return y->stride <= y->filter && x->stride <= x->filter && (int64_t)y->stride * x->stride <= 256;
}

static side side_of(const tq_window *w, int32_t rest)
{
    side s = {.rest = rest, .taps = (w->filter - rest + w->stride - 1) / w->stride};
    s.first = (rest - w->pad % w->stride + w->stride) % w->stride;
    s.count = s.first < w->in ? (w->in - s.first + w->stride - 1) / w->stride : 0;
    s.pad = s.taps - 1 - (int32_t)(((int64_t)s.first + w->pad) / w->stride);
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

static size_t pixels(const tq_transpose_conv_gemm *t, const tq_transpose_conv_phase *p)
{
    return t->batches * (size_t)p->y.count * (size_t)p->x.count;
}

/* The same scan with taps in the opposite order. */
static tq_scan reversed(tq_scan scan)
{
    scan.dilation_h = scan.dilation_w = -1;
    scan.pad_h -= scan.filter_h - 1;
    scan.pad_w -= scan.filter_w - 1;
    return scan;
}

/* to: [o][taps of y][taps of x][c].  The last tap comes first: the order of input pixels.  With TQ_GEMM_FUSED the first
   tap comes first: XNNPACK's order. */
static void gather_taps(const tq_transpose_conv_gemm *t, const tq_transpose_conv_phase *p, const char *weights,
                        size_t item, char *to)
{
    size_t bytes = t->channels * item, width = (size_t)t->x->filter, area = width * (size_t)t->y->filter;
    for (size_t o = 0; o < t->out_channels; o++)
        for (int32_t i = p->y.taps; i-- > 0 && !tq_stop_after((size_t)p->x.taps * t->channels / 8);)
            for (int32_t j = p->x.taps; j-- > 0; to += bytes) {
                const int32_t row = t->flags & TQ_GEMM_FUSED ? p->y.taps - 1 - i : i;
                const int32_t column = t->flags & TQ_GEMM_FUSED ? p->x.taps - 1 - j : j;
                size_t ky = (size_t)(p->y.rest + row * t->y->stride), kx = (size_t)(p->x.rest + column * t->x->stride);
                memcpy(to, weights + (o * area + ky * width + kx) * bytes, bytes);
            }
}

static void pack_phase(const tq_node *node, const tq_transpose_conv_gemm *t, const tq_transpose_conv_phase *p,
                       tq_gemm *packed)
{
    char *taps = tq_scratch_at(node, t->taps_at);
    const tq_tensor *bias = node->in_count > 3 ? node->in[3] : NULL;
    tq_gemm_weights weights = t->weights;
    gather_taps(t, p, node->in[1]->data, t->in == TQ_f32 ? sizeof(float) : 1, taps);
    weights.data = taps;
    weights.bias = bias ? bias->data : NULL;
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

tq_status tq_transpose_conv_gemm_prepare(tq_node *node, tq_transpose_conv_gemm *t, uint64_t *scratch, tq_pack_fn pack,
                                         tq_error *error)
{
    size_t most = 0, count = (size_t)t->y->stride * (size_t)t->x->stride;
    uint64_t work = 0, prepacked = 0;
    TQ_TRY(tq_node_memory(node, count, sizeof *t->phases, &t->phases, error));
    tq_scratch_part(&prepacked, count, sizeof(tq_gemm));
    for (size_t i = 0; i < count; i++) {
        tq_transpose_conv_phase *p = &t->phases[t->count];
        p->y = side_of(t->y, (int32_t)(i / (size_t)t->x->stride));
        p->x = side_of(t->x, (int32_t)(i % (size_t)t->x->stride));
        if (pixels(t, p) == 0)
            continue;
        p->scan = scan_of(t, &p->y, &p->x);
        if (t->flags & TQ_GEMM_FUSED)
            p->scan = reversed(p->scan);
        TQ_TRY(tq_gemm_plan(&p->gemm, t->in, t->out_channels, (size_t)p->y.taps * (size_t)p->x.taps, t->channels,
                            t->flags, error));
        p->packed_at = tq_scratch_part(&prepacked, p->gemm.packed_bytes, 1);
        uint64_t bytes = tq_gemm_scratch_bytes(&p->gemm, node->threads);
        work = bytes > work ? bytes : work;
        most = pixels(t, p) > most ? pixels(t, p) : most;
        t->count++;
    }
    size_t pixel = t->out_channels * tq_element_bytes(node->out[0]->type);
    t->result_at = tq_scratch_part(scratch, count == 1 ? 0 : most, pixel);
    t->work_at = tq_scratch_part(scratch, work, 1);
    t->taps_at = tq_scratch_part(scratch, tq_tensor_count(node->in[1]), t->in == TQ_f32 ? sizeof(float) : 1);
    /* the filter's shape and these determine the phases */
    const int64_t key[] = {
        t->y->stride, t->y->pad, t->y->in, t->y->out,           t->x->stride,          t->x->pad,
        t->x->in,     t->x->out, t->flags, (int64_t)t->batches, t->weights.zero_point, t->weights.row_zero_point};
    return tq_node_prepack(node, prepacked, pack, key, (int)(sizeof key / sizeof *key), error);
}

/* Rows of a phase, counted over all images. */
static void spread_rows(void *context, size_t begin, size_t end)
{
    const spread *s = context;
    const tq_window *y = s->t->y, *x = s->t->x;
    const side *down = &s->phase->y, *right = &s->phase->x;
    for (size_t i = begin; i < end; i++) {
        size_t batch = i / (size_t)down->count, row = i % (size_t)down->count;
        size_t at = (batch * (size_t)y->in + (size_t)down->first + row * (size_t)y->stride) * (size_t)x->in;
        const char *from = s->from + i * (size_t)right->count * s->bytes;
        char *to = s->to + (at + (size_t)right->first) * s->bytes;
        for (int32_t k = 0; k < right->count; k++, from += s->bytes, to += s->bytes * (size_t)x->stride)
            memcpy(to, from, s->bytes);
    }
}

void tq_transpose_conv_gemm_eval(const tq_node *node, const tq_transpose_conv_gemm *t)
{
    const tq_gemm *packed = node->prepacked;
    size_t bytes = t->out_channels * tq_element_bytes(node->out[0]->type);
    bool direct = t->y->stride == 1 && t->x->stride == 1;
    char *result = direct ? node->out[0]->data : tq_scratch_at(node, t->result_at);
    for (size_t i = 0; i < t->count; i++) {
        const tq_transpose_conv_phase *p = &t->phases[i];
        tq_gemm_rows rows = {node->in[2]->data, pixels(t, p), t->channels, &p->scan};
        tq_gemm_run(&packed[i], &rows, &t->store, result, t->out_channels, tq_scratch_at(node, t->work_at),
                    node->threads);
        spread s = {t, p, result, node->out[0]->data, bytes};
        if (!direct)
            tq_parallel_for(t->batches * (size_t)p->y.count, tq_grain((size_t)p->x.count * t->out_channels),
                            node->threads, spread_rows, &s);
    }
}
