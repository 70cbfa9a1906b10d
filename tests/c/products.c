/* SPDX-License-Identifier: Apache-2.0
 *
 * Every available row of gemm.def and depthwise.def and every body of kernels/winograd against plain sums, without
 * Python: for emulated processors and for sanitizers.  Prints how many products were compared; exits 1 at the first
 * difference.
 */
#include "kernels/depthwise/depthwise.h"
#include "kernels/winograd/winograd.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 88172645463325252u;

static uint32_t random32(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 16);
}

static size_t between(size_t low, size_t high)
{
    return low + random32() % (high - low + 1);
}

#ifdef _WIN32
#include <malloc.h>
#define aligned_alloc(alignment, bytes) _aligned_malloc(bytes, alignment)
#define free_aligned _aligned_free
#else
#define free_aligned free
#endif

/* An allocation of exactly these bytes, so that a sanitizer sees one too many. */
static void *make(size_t bytes)
{
    void *data = malloc(bytes + (bytes == 0));
    if (!data)
        exit(2);
    return data;
}

static void *make_aligned(uint64_t bytes)
{
    void *data = aligned_alloc(64, ((size_t)bytes + 127) / 64 * 64);
    if (!data)
        exit(2);
    memset(data, 0xA5, (size_t)bytes);
    return data;
}

static void fill(void *data, tq_element type, size_t n, int how)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = random32();
        if (type == TQ_f32)
            ((float *)data)[i] = ((float)(int32_t)bits) * 0x1p-31f * (how ? 1 : (float)(1 << bits % 8));
        else if (type == TQ_i16)
            ((int16_t *)data)[i] = (int16_t)(how == 1 ? INT16_MIN : how == 2 ? INT16_MAX : (int32_t)bits >> 16);
        else
            ((uint8_t *)data)[i] = (uint8_t)(how == 1   ? (type == TQ_i8 ? 0x80 : 0xFF)
                                             : how == 2 ? (type == TQ_i8 ? 0x7F : 0)
                                                        : bits);
    }
}

static int64_t element(const void *data, tq_element type, size_t i)
{
    return type == TQ_i8   ? ((const int8_t *)data)[i]
           : type == TQ_u8 ? ((const uint8_t *)data)[i]
                           : ((const int16_t *)data)[i];
}

struct product {
    tq_element in, out;
    bool wide, fused, depthwise; /* depthwise: `groups` of `depth` inputs, channels / groups outputs of each */
    size_t images, channels, groups, depth, out_stride, threads;
    tq_scan scan;
    int32_t zero_point, weight_zero_point;
    tq_element weight_type;
    void *data, *weights, *bias;
    tq_gemm_store store;
    double *real;
};

/* Pixel and tap to an index of the input's pixel; false for padding. */
static bool pixel_of(const tq_scan *w, size_t pixel, size_t tap, size_t *at)
{
    size_t x = pixel % (size_t)w->out_w, y = pixel / (size_t)w->out_w % (size_t)w->out_h;
    size_t image = pixel / (size_t)w->out_w / (size_t)w->out_h;
    int32_t i = w->columns_first ? (int32_t)tap % w->filter_h : (int32_t)tap / w->filter_w;
    int32_t j = w->columns_first ? (int32_t)tap / w->filter_h : (int32_t)tap % w->filter_w;
    int32_t in_y = (int32_t)y * w->stride_h - w->pad_h + i * w->dilation_h;
    int32_t in_x = (int32_t)x * w->stride_w - w->pad_w + j * w->dilation_w;
    *at = ((image * (size_t)w->in_h + (size_t)in_y) * (size_t)w->in_w + (size_t)in_x);
    return in_y >= 0 && in_y < w->in_h && in_x >= 0 && in_x < w->in_w;
}

/* Indices of an element of the input, and of a weight. */
static size_t data_at(const struct product *p, size_t pixel, size_t k, size_t channel)
{
    const size_t group = p->depthwise ? channel / (p->channels / p->groups) : 0;
    return (pixel * p->groups + group) * p->depth + k;
}

static size_t weight_at(const struct product *p, size_t channel, size_t tap, size_t k)
{
    size_t taps = tq_scan_taps(&p->scan);
    return p->depthwise ? (tap * p->depth + k) * p->channels + channel : (channel * taps + tap) * p->depth + k;
}

static float float_sum(const struct product *p, size_t pixel, size_t channel)
{
    const size_t taps = tq_scan_taps(&p->scan);
    const float bias = p->bias ? ((float *)p->bias)[channel] : 0;
    float sum = p->fused ? bias : 0;
    for (size_t t = 0; t < taps; t++)
        for (size_t k = 0; k < p->depth; k++) {
            size_t at;
            bool inside = pixel_of(&p->scan, pixel, t, &at);
            float x = inside ? ((float *)p->data)[data_at(p, at, k, channel)] : 0;
            float w = ((float *)p->weights)[weight_at(p, channel, t, k)];
            if (p->fused)
                sum = fmaf(x, w, sum);
            else if (inside)
                sum += x * w;
        }
    return p->fused ? sum : sum + bias;
}

static int64_t integer_sum(const struct product *p, size_t pixel, size_t channel)
{
    const size_t taps = tq_scan_taps(&p->scan);
    int64_t sum = !p->bias ? 0 : p->wide ? ((int64_t *)p->bias)[channel] : ((int32_t *)p->bias)[channel];
    for (size_t t = 0; t < taps; t++)
        for (size_t k = 0; k < p->depth; k++) {
            size_t at;
            bool inside = pixel_of(&p->scan, pixel, t, &at);
            int64_t x = inside ? element(p->data, p->in, data_at(p, at, k, channel)) - p->zero_point : 0;
            sum += x * (element(p->weights, p->weight_type, weight_at(p, channel, t, k)) - p->weight_zero_point);
        }
    return sum;
}

static bool is_right(const struct product *p, const void *out, size_t pixel, size_t channel)
{
    const size_t at = pixel * p->out_stride + channel;
    const tq_gemm_store *s = &p->store;
    if (p->in == TQ_f32) {
        float want = float_sum(p, pixel, channel);
        want = want < s->floor ? s->floor : want > s->ceiling ? s->ceiling : want;
        return memcmp((const float *)out + at, &want, sizeof want) == 0 || want == ((const float *)out)[at] ||
               (want != want && ((const float *)out)[at] != ((const float *)out)[at]);
    }
    int64_t sum = integer_sum(p, pixel, channel);
    if (p->out == TQ_i32)
        return ((const int32_t *)out)[at] == (int32_t)(uint32_t)(uint64_t)sum;
    tq_multiplier m = tq_multiplier_of(p->real[channel], s->rule);
    int32_t want = p->wide
                       ? tq_requantize_i64(sum, &m, s->rule, s->zero_point, s->low, s->high)
                       : tq_requantize((int32_t)(uint32_t)(uint64_t)sum, &m, s->rule, s->zero_point, s->low, s->high);
    return element(out, p->out, at) == want;
}

static void choose_scan(tq_scan *w)
{
    *w = (tq_scan){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, false};
    w->in_w = w->out_w = (int32_t)between(1, 40);
    if (random32() % 3 == 0)
        return; /* plain rows */
    w->in_h = (int32_t)between(1, 9), w->in_w = (int32_t)between(1, 9);
    w->filter_h = (int32_t)between(1, 4), w->filter_w = (int32_t)between(1, 4);
    w->stride_h = (int32_t)between(1, 3), w->stride_w = (int32_t)between(1, 3);
    w->dilation_h = (int32_t)between(1, 2), w->dilation_w = (int32_t)between(1, 2);
    w->out_h = (int32_t)between(1, 7), w->out_w = (int32_t)between(1, 7);
    w->pad_h = (int32_t)between(0, 4) - 1, w->pad_w = (int32_t)between(0, 4) - 1;
    w->columns_first = random32() % 4 == 0;
    if (random32() % 3 == 0) { /* neighbours share columns of pixels */
        w->filter_h = w->filter_w = 3, w->columns_first = false;
        w->stride_h = w->stride_w = w->dilation_h = w->dilation_w = 1;
        w->out_h = w->in_h, w->out_w = w->in_w;
        w->pad_h = (int32_t)between(0, 1), w->pad_w = (int32_t)between(0, 1);
    }
}

static void choose_store(struct product *p)
{
    tq_gemm_store *s = &p->store;
    static const tq_element outs[] = {TQ_i8, TQ_u8, TQ_i16, TQ_i32};
    p->out = p->in == TQ_f32 ? TQ_f32 : p->wide ? TQ_i16 : outs[random32() % 4];
    *s = (tq_gemm_store){.out = p->out, .floor = -INFINITY, .ceiling = INFINITY};
    if (p->in == TQ_f32) {
        if (random32() % 2)
            s->floor = 0, s->ceiling = random32() % 2 ? 6 : INFINITY;
        return;
    }
    s->rule = random32() % TQ_REQUANTIZE_RULES;
    s->low = tq_element_low(p->out), s->high = (int32_t)tq_element_high(p->out);
    s->zero_point = p->out == TQ_i16 ? 0 : s->low + (int32_t)(random32() % 256);
    if (random32() % 2)
        s->low += 20, s->high -= 30;
}

static struct product choose(void)
{
    struct product p = {0};
    static const tq_element ins[] = {TQ_i8, TQ_i8, TQ_u8, TQ_i16, TQ_f32};
    p.in = ins[random32() % 5];
    p.wide = p.in == TQ_i16 && random32() % 2;
    p.fused = random32() % 2;
    choose_scan(&p.scan);
    p.images = between(1, 2), p.groups = between(1, 2);
    p.depth = random32() % 4 ? between(1, 40) : between(1, random32() % 2 ? 700 : 150);
    p.channels = random32() % 3 ? between(1, 40) : between(1, 200);
    if (random32() % 3 == 0) { /* few channels of one tap: gemm_loops.c; of long rows, dot products: gemm_row.c */
        p.channels = between(1, 4);
        p.depth = random32() % 2 ? between(1, 4) : random32() % 2 ? between(250, 1300) : p.depth;
        p.groups = random32() % 2 ? 1 : p.groups;
        p.scan.filter_h = p.scan.filter_w = 1;
        if (random32() % 2)
            p.scan = (tq_scan){1, 40, 1, 40, 1, 1, 1, 1, 1, 1, 0, 0, false};
        else if (random32() % 4 == 0)
            p.scan = (tq_scan){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, false}, p.images = 1;
    }
    if (p.scan.filter_h * p.scan.filter_w > 1 && p.depth > 100)
        p.depth = 100;
    if (p.scan.in_h > 1 && random32() % 4 == 0) { /* long filter rows: gemm_rows.c copies them from the image */
        p.scan.in_w = (int32_t)between(5, 90), p.scan.filter_w = (int32_t)between(5, 60);
        p.scan.pad_w = (int32_t)between(0, 30), p.scan.out_w = (int32_t)between(1, 40);
        p.depth = between(1, 6), p.channels = between(1, 20);
    }
    if (random32() % 2) {
        p.depthwise = true;
        p.depth = 1;
        p.groups = between(1, random32() % 3 ? 40 : 200);
        p.channels = p.groups * (random32() % 3 ? 1 : between(1, 8));
        const size_t depth = between(1, 4);
        if (p.in == TQ_f32 && tq_depthwise_takes_depth(&p.scan, p.channels / p.groups, depth))
            p.depth = depth;
        if (p.in == TQ_f32 && random32() % 2) { /* bands of lines: depthwise_bands.c */
            p.scan.filter_h = p.scan.filter_w = random32() % 2 ? 3 : 5, p.scan.columns_first = p.fused;
            p.scan.out_h = (int32_t)between(1, 11), p.scan.out_w = (int32_t)between(5, 20);
            p.depth = 1, p.groups = random32() % 2 ? 8 * between(1, 4) : between(8, 70);
            p.channels = p.groups * between(1, 2);
        }
    }
    p.threads = random32() % 4 ? 1 : between(2, 4);
    const bool parts = !p.depthwise && random32() % (p.in == TQ_f32 ? 4 : 24) == 0;
    if (parts) { /* few rows, and work enough for threads: threads split channels */
        p.scan = (tq_scan){3, 3, 2, 2, 3, 3, 2, 2, 1, 1, 1, 1, false};
        p.images = 1, p.groups = 1, p.channels = between(130, 200), p.depth = between(60, 90),
        p.threads = between(2, 4);
    }
    if (random32() % 8 == 0) { /* kernels/winograd */
        p.in = random32() % 2 ? TQ_i8 : TQ_u8, p.wide = p.depthwise = false;
        p.scan = (tq_scan){1, 1, (int32_t)between(3, 20), (int32_t)between(3, 20), 3, 3, 1, 1, 1, 1, 0, 0, false};
        p.scan.pad_h = (int32_t)between(0, 2), p.scan.pad_w = (int32_t)between(0, 2);
        p.scan.in_h = p.scan.out_h + 2 - p.scan.pad_h, p.scan.in_w = p.scan.out_w + 2 - p.scan.pad_w;
        p.images = between(1, 3), p.groups = 1, p.channels = between(16, 80), p.depth = 16 * between(1, 4);
    }
    if (p.in == TQ_f32 && random32() % 8 == 0) { /* blocks of more rows than the buffer of a tile's sums has */
        const int32_t rows = (int32_t)between(100, 900);
        p.scan = (tq_scan){1, rows, 1, rows, 1, 1, 1, 1, 1, 1, 0, 0, false};
        p.images = p.groups = 1, p.channels = between(5, 60), p.depth = between(1, 70), p.depthwise = false;
    }
    p.out_stride = p.channels + random32() % 3;
    p.weight_type = p.in == TQ_f32 ? TQ_f32 : p.in == TQ_u8 ? TQ_u8 : TQ_i8;
    p.zero_point = p.in == TQ_i8 ? (int32_t)(random32() % 256) - 128 : p.in == TQ_u8 ? (int32_t)(random32() % 256) : 0;
    p.weight_zero_point = p.in == TQ_u8 || (p.in == TQ_i8 && random32() % 4 == 0) ? (int32_t)(random32() % 256) : 0;
    p.weight_zero_point -= p.in == TQ_i8 && p.weight_zero_point ? 128 : 0;
    choose_store(&p);
    const tq_scan *w = &p.scan;
    size_t pixels = p.images * (size_t)w->in_h * (size_t)w->in_w, count = p.channels * tq_scan_taps(w) * p.depth;
    size_t elements = ((pixels - 1) * p.groups + 1) * p.depth; /* of the first group */
    if (p.depthwise)
        elements = pixels * p.groups * p.depth;
    int how = random32() % 6;
    p.data = make(elements * tq_element_size(p.in));
    fill(p.data, p.in, elements, how);
    p.weights = make(count * tq_element_size(p.weight_type));
    fill(p.weights, p.weight_type, count, random32() % 6);
    if (p.in == TQ_f32 && random32() % (parts ? 2 : 8) == 0)
        ((float *)p.weights)[random32() % count] = random32() % 2 ? INFINITY : NAN;
    p.bias = random32() % 4 ? make(p.channels * (p.wide ? 8 : 4)) : NULL;
    p.real = make(p.channels * sizeof *p.real);
    for (size_t c = 0; c < p.channels; c++) {
        p.real[c] = ldexp(0.5 + random32() * 0x1p-33, -(int)between(0, 14) - (p.in == TQ_i16 ? 6 : 3));
        if (random32() % 50 == 0)
            p.real[c] = 0;
        if (p.bias && p.in == TQ_f32)
            fill((float *)p.bias + c, TQ_f32, 1, 0);
        else if (p.bias && p.wide)
            ((int64_t *)p.bias)[c] = (int64_t)(int32_t)random32() * ((int64_t)1 << random32() % 28);
        else if (p.bias)
            ((int32_t *)p.bias)[c] = (int32_t)random32() >> random32() % 24;
    }
    return p;
}

static int flags_of(const struct product *p)
{
    return (p->wide ? TQ_GEMM_WIDE : 0) | (p->fused ? TQ_GEMM_FUSED : 0);
}

static unsigned winograds;

/* false: the weights may pass the bound. */
static bool compute_winograd(struct product *p, tq_winograd *winograd, const tq_gemm_weights *weights, size_t rows,
                             void *out)
{
    void *packed = make_aligned(winograd->packed_bytes);
    void *scratch = make_aligned(tq_winograd_scratch_bytes(winograd, (int)p->threads));
    const bool exact = tq_winograd_pack(winograd, weights, packed);
    tq_gemm_rows in = {p->data, rows, p->depth, &p->scan};
    if (exact)
        tq_winograd_run(winograd, &in, &p->store, out, p->out_stride, scratch, (int)p->threads);
    free_aligned(packed);
    free_aligned(scratch);
    winograds += exact;
    return exact;
}

static void compute_product(struct product *p, const tq_gemm_weights *weights, size_t rows, void *out)
{
    tq_gemm gemm;
    if (tq_gemm_plan(&gemm, p->in, p->channels, tq_scan_taps(&p->scan), p->depth, flags_of(p), NULL) != TQ_OK)
        exit(2);
    tq_winograd winograd;
    if (p->groups == 1 && p->out != TQ_i32 && tq_winograd_plan(&winograd, &gemm, &p->scan, weights) &&
        compute_winograd(p, &winograd, weights, rows, out))
        return;
    if (random32() % 2)
        tq_gemm_plan_windows(&gemm, &p->scan, p->depth * p->groups,
                             rows / ((size_t)p->scan.out_h * (size_t)p->scan.out_w));
    void *packed = make_aligned(gemm.packed_bytes);
    void *scratch = make_aligned(tq_gemm_scratch_bytes(&gemm, (int)p->threads));
    tq_gemm_pack(&gemm, weights, packed);
    const bool plain = tq_scan_is_plain(&p->scan) && random32() % 2;
    tq_gemm_rows in = {p->data, rows, p->depth * p->groups, plain ? NULL : &p->scan};
    tq_gemm_run(&gemm, &in, &p->store, out, p->out_stride, scratch, (int)p->threads);
    free_aligned(packed);
    free_aligned(scratch);
}

static void compute_depthwise(struct product *p, const tq_gemm_weights *weights, size_t rows, void *out)
{
    tq_depthwise d;
    size_t pixels = p->images * (size_t)p->scan.in_h * (size_t)p->scan.in_w;
    if (tq_depthwise_plan(&d, p->in, p->channels, p->channels / p->groups, p->depth, &p->scan, flags_of(p), NULL))
        exit(2);
    void *packed = make_aligned(d.packed_bytes);
    void *scratch = make_aligned(tq_depthwise_scratch_bytes(&d, pixels, (int)p->threads));
    tq_depthwise_pack(&d, weights, packed);
    tq_gemm_rows in = {p->data, rows, p->groups * p->depth, &p->scan};
    tq_depthwise_run(&d, &in, &p->store, out, p->out_stride, scratch, (int)p->threads);
    free_aligned(packed);
    free_aligned(scratch);
}

static double real_at(const void *real, size_t channel)
{
    return ((const double *)real)[channel];
}

static void *compute(struct product *p, size_t rows)
{
    const size_t size = tq_element_size(p->out), taps = tq_scan_taps(&p->scan);
    void *columns = make_aligned(tq_gemm_store_bytes(p->channels));
    void *out = make(((rows - 1) * p->out_stride + p->channels) * size);
    tq_gemm_weights weights = {
        .data = p->weights,
        .type = p->weight_type,
        .channel_stride = p->depthwise ? 1 : taps * p->depth,
        .k_stride = p->depthwise ? p->channels : 1,
        .zero_point = p->weight_zero_point,
        .row_zero_point = p->zero_point,
        .bias = p->bias,
        .bias_type = p->in == TQ_f32 ? TQ_f32
                     : p->wide       ? TQ_GEMM_BIAS_I64
                                     : TQ_i32,
    };
    if (p->out != TQ_i32 && p->out != TQ_f32)
        tq_gemm_store_make(&p->store, p->channels, real_at, p->real, columns);
    (p->depthwise ? compute_depthwise : compute_product)(p, &weights, rows, out);
    free_aligned(columns);
    return out;
}

static void release(struct product *p)
{
    free(p->data);
    free(p->weights);
    free(p->bias);
    free(p->real);
}

/* Whether sizes are refused whose table of taps or padding would be beyond memory, though there are no weights. */
static bool refuses_the_endless(void)
{
    tq_gemm gemm;
    const size_t endless = SIZE_MAX / 4 + 1;
    return tq_gemm_plan(&gemm, TQ_i8, 1, endless, 0, 0, NULL) && tq_gemm_plan(&gemm, TQ_i8, 1, 0, endless, 0, NULL);
}

/* Whether channels without weights are refused, or their biases and sums counted: 8 GB, which 32 bits do not count. */
static bool counts_channels_without_weights(void)
{
    tq_gemm gemm;
    const size_t channels = (size_t)1 << 30;
    return tq_gemm_plan(&gemm, TQ_i8, channels, 1, 0, 0, NULL) || gemm.packed_bytes / 8 >= channels;
}

/* The one argument: how many products of each instruction set. */
int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 1500;
    unsigned products = 0;
    const uint32_t features = tq_cpu_detect(NULL);
    tq_kernels_choose(features);
    for (int feature = 0; feature < TQ_CPU_FEATURES; feature++) {
        if (!(features >> feature & 1))
            continue;
        tq_kernels_force(feature);
        if (!refuses_the_endless()) {
            printf("%s: a product without weights and without end is planned\n", tq_cpu_name(feature));
            return 1;
        }
        if (!counts_channels_without_weights()) {
            printf("%s: memory of many channels is not counted\n", tq_cpu_name(feature));
            return 1;
        }
        for (int i = 0; i < rounds; i++, products++) {
            struct product p = choose();
            size_t rows = p.images * (size_t)p.scan.out_h * (size_t)p.scan.out_w;
            void *out = compute(&p, rows);
            for (size_t r = 0; r < rows; r++)
                for (size_t c = 0; c < p.channels; c++)
                    if (!is_right(&p, out, r, c)) {
                        printf("%s: %s %d, rows of element %d to %d, rule %d, wide %d, taps %d depth %zu channels %zu: "
                               "row %zu channel %zu\n",
                               tq_cpu_name(feature), p.depthwise ? "depthwise" : "product", i, p.in, p.out,
                               p.store.rule, p.wide, (int)tq_scan_taps(&p.scan), p.depth, p.channels, r, c);
                        return 1;
                    }
            free(out);
            release(&p);
        }
    }
    printf("%u products, %u of them by Winograd's transforms\n", products, winograds);
    return 0;
}
