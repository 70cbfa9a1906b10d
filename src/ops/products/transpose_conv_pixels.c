/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/products/transpose_conv_pixels.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "base/threads.h"
#include "kernels/isa.h"
#include "ops/check.h"
#include "ops/movement/strided_copy.h"
#include "ops/parallel.h"
#include "ops/products/hybrid.h"
#include "ops/products/transpose_conv_gemm.h"
#include "ops/scratch.h"

enum {
    WEIGHTS = TQ_TRANSPOSE_CONV_WEIGHTS,
    VECTORS = 4, /* of pixels, whose sums are in registers, at most */
    OUTPUTS = 4, /* channels of these sums, at most */
    LANES = 16,  /* of the longest vector */
    TILE = VECTORS * LANES,
    GROUP = 16 /* channels of a tile that are written together */
};

/* ---- phases ---- */

/* One dimension of a phase: tap first_tap + j * stride of the filter, j < taps, reads input position
   t + shift - j for output position first + t * stride, t < count. */
typedef struct side {
    size_t first, count, first_tap, taps;
    ptrdiff_t shift;
} side;

static side side_of(const tq_window *w, size_t phase)
{
    const size_t stride = (size_t)w->stride, reach = phase + (size_t)w->pad, first_tap = reach % stride;
    return (side){.first = phase,
                  .count = (size_t)w->in > phase ? tq_divide_up((size_t)w->in - phase, stride) : 0,
                  .first_tap = first_tap,
                  .taps = tq_divide_up((size_t)w->filter - first_tap, stride),
                  .shift = (ptrdiff_t)(reach / stride)};
}

/* The zeros that a dimension's phases read before and behind the input. */
static void find_borders(const tq_window *w, size_t *before, size_t *behind)
{
    ptrdiff_t low = 0, high = 0;
    for (size_t i = 0; i < (size_t)w->stride; i++) {
        const side s = side_of(w, i);
        const ptrdiff_t first = s.shift - (ptrdiff_t)s.taps + 1;
        const ptrdiff_t last = s.shift + (ptrdiff_t)s.count - w->out;
        low = first < low ? first : low;
        high = last > high ? last : high;
    }
    *before = (size_t)-low;
    *behind = (size_t)high;
}

/* The places in a plane from a phase's first output to its last. */
static size_t span_of(const tq_transpose_conv_pixels *p, const side *y, const side *x)
{
    return y->count && x->count ? (y->count - 1) * p->row + x->count : 0;
}

/* ---- sums ---- */

/* A phase of an image. */
typedef struct phase {
    const tq_transpose_conv_pixels *p;
    side y, x;
    const float *planes;  /* at the image's first pixel */
    const float *weights; /* [tap][c][o] */
    const tq_affine *q;   /* of the weights */
    const float *bias;    /* NULL: none */
    float scale;          /* of the image */
    float *out;
} phase;

/* The place in the planes that tap (j, i) of the phase reads for place `at`. */
static inline ptrdiff_t input_at(const phase *f, size_t at, size_t j, size_t i)
{
    const ptrdiff_t down = f->y.shift - (ptrdiff_t)j, right = f->x.shift - (ptrdiff_t)i;
    return (ptrdiff_t)at + down * (ptrdiff_t)f->p->row + right;
}

/* The first weight of this tap for output channels from o on. */
static inline size_t weights_at(const phase *f, size_t o, size_t j, size_t i)
{
    const tq_transpose_conv *conv = f->p->conv;
    const size_t ky = f->y.first_tap + j * (size_t)conv->y.stride, kx = f->x.first_tap + i * (size_t)conv->x.stride;
    const size_t tap = ky * (size_t)conv->x.filter + kx;
    return tap * conv->channels * conv->out_channels + o;
}

typedef float lanes_16 __attribute__((vector_size(64)));
typedef float lanes_8 __attribute__((vector_size(32)));
typedef float lanes_4 __attribute__((vector_size(16)));

/* Unrolled: sums stay in registers. */
#define EACH(i, n) _Pragma("GCC unroll 4") for (size_t i = 0; i < (n); i++)

/* sums[k][pixel] = sum of f32(x * w[k]) * s_w[k] * s_x for `outputs` channels from o on, and `vectors` vectors of
   pixels from place `at` on, both constant.  |x * w| < 2^16 is exact in float32.  By input pixel, then by channel. */
#define SUM_TILE(side)                                                                                           \
    TQ_BODY void sum_##side(const phase *f, size_t at, size_t o, float (*sums)[TILE], const size_t vectors,      \
                            const size_t outputs)                                                                \
    {                                                                                                            \
        const size_t channels = f->p->conv->channels, wide = f->p->conv->out_channels, plane = f->p->plane;      \
        lanes_##side sum[VECTORS][OUTPUTS] = {0}, x[VECTORS];                                                    \
        float scale[OUTPUTS] = {0};                                                                              \
        EACH (k, outputs)                                                                                        \
            scale[k] = f->q->scale[f->q->count > 1 ? o + k : 0];                                                 \
        for (size_t j = f->y.taps; j-- > 0;)                                                                     \
            for (size_t i = f->x.taps; i-- > 0;) {                                                               \
                const float *from = f->planes + input_at(f, at, j, i), *w = f->weights + weights_at(f, o, j, i); \
                for (size_t c = 0; c < channels; c++, from += plane, w += wide) {                                \
                    EACH (v, vectors)                                                                            \
                        memcpy(&x[v], from + v * side, sizeof x[v]);                                             \
                    EACH (k, outputs)                                                                            \
                        EACH (v, vectors)                                                                        \
                            sum[v][k] += x[v] * w[k] * scale[k] * f->scale;                                      \
                }                                                                                                \
            }                                                                                                    \
        EACH (k, outputs)                                                                                        \
            EACH (v, vectors)                                                                                    \
                memcpy(&sums[k][v * side], &sum[v][k], sizeof sum[v][k]);                                        \
    }
SUM_TILE(16)
SUM_TILE(8)
SUM_TILE(4)

/* The sums of n <= TILE pixels by vectors of `longest` floats.  Whole tiles, and what is left vector by vector. */
TQ_BODY void sum_pixels(const phase *f, size_t at, size_t n, size_t o, float (*sums)[TILE], const size_t outputs,
                        const size_t longest)
{
    for (size_t i = 0, vectors; i < n; i += vectors * longest) {
        float (*to)[TILE] = (float (*)[TILE])(void *)(sums[0] + i);
        vectors = n - i > (VECTORS - 1) * longest ? VECTORS : 1;
        if (longest == 16)
            vectors > 1 ? sum_16(f, at + i, o, to, VECTORS, outputs) : sum_16(f, at + i, o, to, 1, outputs);
        else if (longest == 8)
            vectors > 1 ? sum_8(f, at + i, o, to, VECTORS, outputs) : sum_8(f, at + i, o, to, 1, outputs);
        else
            vectors > 1 ? sum_4(f, at + i, o, to, VECTORS, outputs) : sum_4(f, at + i, o, to, 1, outputs);
    }
}

TQ_BODY void finish(const phase *f, size_t o, float *sums)
{
    const float bias = f->bias ? f->bias[o] : 0, low = f->p->conv->low, high = f->p->conv->high;
    for (size_t i = 0; i < TILE; i++) {
        float y = sums[i] + bias; /* + 0 changes no sum */
        y = y < low ? low : y;
        sums[i] = y > high ? high : y;
    }
}

/* n values of `group` channels from o on to their pixels in the output, from place `at` of the plane on. */
TQ_BODY void spread(const phase *f, size_t at, size_t n, size_t o, size_t group, const float (*values)[TILE])
{
    const tq_transpose_conv *conv = f->p->conv;
    const size_t width = (size_t)conv->x.in, channels = conv->out_channels, row = f->p->row;
    const size_t step = (size_t)conv->x.stride * channels;
    for (size_t i = 0, length; i < n; i += length) {
        const size_t y = (at + i) / row, x = (at + i) % row;
        length = tq_min_size(row - x, n - i);
        const size_t inside = x < f->x.count ? tq_min_size(f->x.count - x, length) : 0;
        float *out =
            f->out + ((f->y.first + y * (size_t)conv->y.stride) * width + f->x.first) * channels + x * step + o;
        for (size_t pixel = 0; pixel < inside; pixel++, out += step)
            for (size_t k = 0; k < group; k++)
                out[k] = values[k][i + pixel];
    }
}

/* The sums of `outputs` channels from o on. */
TQ_BODY void sum_outputs(const phase *f, size_t at, size_t n, size_t o, float (*sums)[TILE], size_t outputs,
                         const size_t most, const size_t longest)
{
    switch (outputs) {
    case 1: sum_pixels(f, at, n, o, sums, 1, longest); break;
    case 2: sum_pixels(f, at, n, o, sums, 2, longest); break;
    case 3: sum_pixels(f, at, n, o, sums, 3, longest); break;
    default: sum_pixels(f, at, n, o, sums, most, longest); break;
    }
}

TQ_BODY void run_tile(const phase *f, size_t at, size_t n, const size_t longest)
{
    const size_t channels = f->p->conv->out_channels;
    const size_t most = longest > 8 ? OUTPUTS : OUTPUTS / 2; /* as registers hold their sums */
    float sums[GROUP][TILE];
    for (size_t o = 0, group; o < channels; o += group) {
        group = tq_min_size(channels - o, GROUP);
        for (size_t k = 0; k < group; k += most)
            sum_outputs(f, at, n, o + k, sums + k, tq_min_size(group - k, most), most, longest);
        for (size_t k = 0; k < group; k++)
            finish(f, o + k, sums[k]);
        spread(f, at, n, o, group, (const float (*)[TILE])sums);
    }
}

#define RUN_TILE(isa, target)                                              \
    target static void run_tile_##isa(const phase *f, size_t at, size_t n) \
    {                                                                      \
        run_tile(f, at, n, TQ_FLOATS_##isa);                               \
    }
TQ_EVERY_ISA(RUN_TILE)

/* ---- an image ---- */

/* Arguments of one image. */
typedef struct image {
    const tq_transpose_conv_pixels *p;
    phase all; /* of which `y` and `x` remain to be set */
    size_t tiles; /* of a phase, at most */
    const int8_t *channels; /* quantized, channel by channel */
    int32_t zero_point;
    float *planes; /* with their zeros */
} image;

/* A phase's tiles: item phase * tiles + tile. */
static void run_tiles(void *context, size_t begin, size_t end)
{
    static void (*const bodies[TQ_ISAS])(const phase *, size_t, size_t) = TQ_ISA_FUNCTIONS(run_tile);
    const image *m = context;
    const tq_transpose_conv *conv = m->p->conv;
    const size_t stride = (size_t)conv->x.stride;
    for (size_t i = begin; i < end; i++) {
        phase f = m->all;
        f.y = side_of(&conv->y, i / m->tiles / stride);
        f.x = side_of(&conv->x, i / m->tiles % stride);
        const size_t at = i % m->tiles * TILE, span = span_of(m->p, &f.y, &f.x);
        if (tq_stop_after(f.y.taps * f.x.taps * conv->channels * conv->out_channels))
            return;
        if (at < span)
            bodies[tq_isa()](&f, at, tq_min_size(TILE, span - at));
    }
}

#define WIDEN(isa, target)                                                                               \
    target static void widen_##isa(const int8_t *q, size_t n, int32_t zero_point, float zero, float *to) \
    {                                                                                                    \
        for (size_t i = 0; i < n; i++)                                                                   \
            to[i] = (float)(q[i] - zero_point) + zero;                                                   \
    }
TQ_EVERY_ISA(WIDEN)

/* Planes of differences to the zero point.  Those of an image with NaN or an infinity are NaN, as its products. */
static void fill_planes(void *context, size_t begin, size_t end)
{
    static void (*const bodies[TQ_ISAS])(const int8_t *, size_t, int32_t, float, float *) = TQ_ISA_FUNCTIONS(widen);
    const image *m = context;
    const tq_transpose_conv_pixels *p = m->p;
    const size_t high = (size_t)p->conv->y.out, wide = (size_t)p->conv->x.out, first = p->above * p->row;
    const float zero = isnan(m->all.scale) ? NAN : 0;
    for (size_t c = begin; c < end && !tq_stop_after(p->plane); c++) {
        float *plane = m->planes + c * p->plane, *to = plane + first;
        const int8_t *from = m->channels + c * high * wide;
        memset(plane, 0, first * sizeof *plane);
        for (size_t y = 0; y < high; y++, to += p->row, from += wide) {
            memset(to, 0, p->before * sizeof *to);
            bodies[tq_isa()](from, wide, m->zero_point, zero, to + p->before);
        }
        memset(to, 0, (size_t)(plane + p->plane - to) * sizeof *to);
    }
}

/* The quantized values channel by channel. */
static const int8_t *by_channel(const tq_node *node, const tq_transpose_conv_pixels *p, const int8_t *quantized)
{
    const tq_transpose_conv *conv = p->conv;
    const size_t pixels = (size_t)conv->y.out * (size_t)conv->x.out;
    if (conv->channels == 1)
        return quantized;
    int8_t *to = tq_scratch_at(node, p->channels_at);
    tq_strided copy;
    tq_strided_begin(&copy, 1);
    tq_strided_dim(&copy, conv->channels, 1, (ptrdiff_t)pixels);
    tq_strided_dim(&copy, pixels, (ptrdiff_t)conv->channels, 1);
    tq_strided_end(&copy);
    tq_strided_copy(&copy, quantized, to, node->threads);
    return to;
}

/* ---- prepare and eval ---- */

void tq_transpose_conv_pixels_eval(const tq_node *node, const tq_transpose_conv_pixels *p)
{
    const tq_transpose_conv *conv = p->conv;
    const tq_hybrid_rule rule = tq_hybrid_rule_of(node, true);
    const size_t elements = (size_t)conv->y.out * (size_t)conv->x.out * conv->channels;
    const size_t out_elements = (size_t)conv->y.in * (size_t)conv->x.in * conv->out_channels;
    const tq_tensor *bias = tq_transpose_conv_bias(node, conv);
    const side y = side_of(&conv->y, 0), x = side_of(&conv->x, 0); /* the longest */
    int8_t *quantized = tq_scratch_at(node, p->quantized_at);
    for (size_t b = 0; b < conv->batches && !tq_stop_now(); b++) {
        const float *in = (const float *)node->in[conv->input]->data + b * elements;
        const tq_hybrid_row row = rule(in, elements, node->threads, quantized);
        image m = {.p = p,
                   .tiles = tq_divide_up(span_of(p, &y, &x), TILE),
                   .channels = by_channel(node, p, quantized),
                   .zero_point = row.zero_point,
                   .planes = tq_scratch_at(node, p->planes_at)};
        m.all = (phase){.p = p,
                        .planes = m.planes + p->above * p->row + p->before,
                        .weights = node->prepacked,
                        .q = &node->in[WEIGHTS]->quantization,
                        .bias = bias ? bias->data : NULL,
                        .scale = row.scale,
                        .out = (float *)node->out[0]->data + b * out_elements};
        tq_parallel_for(conv->channels, tq_grain(p->plane), node->threads, fill_planes, &m);
        m.all.scale = isnan(row.scale) ? 1 : row.scale; /* the planes are NaN */
        const size_t work = y.taps * x.taps * conv->channels * conv->out_channels * TILE / LANES;
        tq_parallel_for((size_t)conv->y.stride * (size_t)conv->x.stride * m.tiles, tq_grain(work), node->threads,
                        run_tiles, &m);
    }
}

void tq_transpose_conv_pixels_pack(const tq_node *node, const tq_transpose_conv_pixels *p)
{
    const tq_transpose_conv *conv = p->conv;
    const int8_t *from = node->in[WEIGHTS]->data;
    float *to = node->prepacked;
    for (size_t o = 0; o < conv->out_channels; o++)
        for (size_t i = 0; i < conv->taps * conv->channels; i++)
            to[i * conv->out_channels + o] = *from++;
}

/* The time of the vectors of products, in that of one.  Most vectors of pixels lie across two lines of the cache; those
   of output channels cost more the fewer input channels they sum at once. */
static double work_of_pixels(const tq_transpose_conv_pixels *p)
{
    double work = 0;
    for (size_t i = 0; i < (size_t)p->conv->y.stride; i++)
        for (size_t j = 0; j < (size_t)p->conv->x.stride; j++) {
            const side y = side_of(&p->conv->y, i), x = side_of(&p->conv->x, j);
            work += (double)(y.taps * x.taps) * (double)tq_divide_up(span_of(p, &y, &x), LANES);
        }
    return 1.2 * work * (double)p->conv->out_channels;
}

static double work_of_channels(const tq_transpose_conv *conv)
{
    const double sources = (double)conv->y.out * conv->x.out * (double)conv->taps;
    const size_t rest = conv->out_channels % LANES;
    const double vectors = (double)(conv->out_channels / LANES) + (rest >= 8) + (rest % 8 > 0) + (rest % 8 > 4);
    return sources * vectors * (1 + 32 / (double)conv->channels);
}

bool tq_transpose_conv_pixels_suit(tq_transpose_conv_pixels *p, const tq_transpose_conv *conv)
{
    const size_t high = (size_t)conv->y.out, wide = (size_t)conv->x.out;
    size_t below, behind;
    *p = (tq_transpose_conv_pixels){.conv = conv};
    if (!tq_transpose_conv_gemm_fits(&conv->y, &conv->x))
        return false;
    find_borders(&conv->y, &p->above, &below);
    find_borders(&conv->x, &p->before, &behind);
    p->before = p->before > behind ? p->before : behind; /* zeros behind a row are those before the next */
    const size_t rows = p->above + high + below;
    p->row = p->before + wide;
    if ((double)rows * (double)p->row > 4 * (double)high * (double)wide + TILE)
        return false; /* mostly zeros */
    p->plane = rows * p->row + p->before;
    return work_of_pixels(p) < work_of_channels(conv);
}

tq_status tq_transpose_conv_pixels_prepare(tq_node *node, tq_transpose_conv_pixels *p, tq_pack_fn pack, tq_error *error)
{
    const tq_transpose_conv *conv = p->conv;
    const size_t elements = (size_t)conv->y.out * (size_t)conv->x.out * conv->channels;
    uint64_t total = 0, prepacked = 0;
    tq_scratch_part(&prepacked, conv->taps * conv->channels * conv->out_channels, sizeof(float));
    const int64_t key[] = {conv->form, (int64_t)conv->taps, (int64_t)conv->channels, (int64_t)conv->out_channels};
    TQ_TRY(tq_node_prepack(node, prepacked, pack, key, 4, error));
    p->quantized_at = tq_scratch_part(&total, elements, 1);
    p->channels_at = tq_scratch_part(&total, elements, 1);
    p->planes_at = tq_scratch_part(&total, conv->channels * p->plane + TILE, sizeof(float));
    return tq_node_scratch(node, total, error);
}
