/* SPDX-License-Identifier: Apache-2.0
 *
 * tq_depthwise_run: how pixels and channels are cut into tiles.
 *
 * Kernels read whole vectors of channels, and so past a pixel's last channel: into the next pixel.  At the end of the
 * input they read a copy of the last pixels, which has slack behind it.  A depth multiplier above 1 becomes 1 by
 * repeating each input channel, and so do groups.
 */
#include <string.h>

#include "base/checked.h"
#include "base/stop.h"
#include "base/threads.h"
#include "kernels/depthwise/depthwise_parts.h"
#include "kernels/isa.h"

#define BLOCK_BYTES (16 << 10) /* of a block's indirection buffer */
#define BLOCK_ROWS 64
#define PART_VECTORS 4 /* that a tile writes at once (depthwise_simd.h) */
#define WIDE_TAPS 510 /* |x * weight| <= 2^22 */
#define WORK_A_THREAD (24 << 10) /* multiply-adds: 0.8 microseconds where these are fastest */

struct run {
    const tq_depthwise *d;
    const tq_scan *scan;
    const tq_gemm_store *store;
    const char *data; /* pixels with as many channels as the output */
    size_t stride;    /* bytes from a pixel to the next */
    size_t count;     /* output pixels */
    char *out;
    size_t out_stride, out_size;
    const char *last_pixels, *last_end, *last_copy; /* the pixels [last_pixels, last_end) are read from last_copy */
    char *scratch;
    size_t block;
    size_t share;               /* bytes of a thread's scratch */
    size_t units, parts, each;  /* rows, lines or chunks of columns, cut into parts; `each`: parts of a thread */
    size_t together;            /* units that are computed together: no part of a thread ends between them */
};

static size_t block_rows(const tq_depthwise *d)
{
    size_t rows = tq_min_size(BLOCK_BYTES / sizeof(void *) / d->taps, BLOCK_ROWS);
    return rows ? rows : 1;
}

static size_t share_bytes(const tq_depthwise *d)
{
    const size_t tiles = tq_round_up(block_rows(d) * d->taps * sizeof(void *), TQ_DEPTHWISE_ALIGN);
    const size_t by_pixels = tiles > d->columns.job_bytes ? tiles : d->columns.job_bytes;
    const size_t by_lines = d->lines.job_bytes > d->bands.line_bytes ? d->lines.job_bytes : d->bands.line_bytes;
    return by_pixels > by_lines ? by_pixels : by_lines;
}

/* How many last pixels there are: a vector that begins in them may read past the input. */
static size_t last_pixel_count(const tq_depthwise *d)
{
    return TQ_DEPTHWISE_SLACK / (d->channels * tq_element_size(d->in)) + 1;
}

static size_t last_pixels_bytes(const tq_depthwise *d)
{
    return tq_round_up(last_pixel_count(d) * d->channels * tq_element_size(d->in) + TQ_DEPTHWISE_SLACK,
                       TQ_DEPTHWISE_ALIGN);
}

static bool expands(const tq_depthwise *d)
{
    return d->multiplier > 1 || d->depth > 1;
}

uint64_t tq_depthwise_scratch_bytes(const tq_depthwise *depthwise, size_t pixels, int threads)
{
    uint64_t expanded = 0, total;
    const uint64_t pixel = (uint64_t)depthwise->channels * tq_element_size(depthwise->in) * depthwise->depth;
    if (expands(depthwise) && (!tq_mul_u64(pixels, pixel, &expanded) || expanded > PTRDIFF_MAX))
        return UINT64_MAX;
    if (!depthwise->channels || !depthwise->taps)
        return 0;
    total = tq_share_bytes(share_bytes(depthwise), threads) * (uint64_t)threads + last_pixels_bytes(depthwise);
    return total + tq_round_up((size_t)expanded, TQ_DEPTHWISE_ALIGN);
}

#define REPEAT(type)                       \
    for (size_t c = 0; c < inputs; c++)    \
        for (size_t m = 0; m < times; m++) \
    ((type *)(void *)to)[c * times + m] = ((const type *)(const void *)from)[c]

/* A pixel of elements of a constant size, which need no call of memcpy.  times: a constant where compilers are to write
   vectors. */
TQ_BODY void repeat_elements(const char *from, size_t inputs, size_t size, size_t times, char *to)
{
    switch (size) {
    case 1: REPEAT(uint8_t); break;
    case 2: REPEAT(uint16_t); break;
    default: REPEAT(uint32_t); break;
    }
}

static void repeat_channels(const tq_depthwise *d, const char *from, size_t pixels, size_t stride, char *to)
{
    const size_t inputs = d->channels / d->multiplier, size = tq_element_size(d->in);
    for (size_t p = 0; p < pixels && !tq_stop_after(d->channels); p++, from += stride, to += d->channels * size)
        switch (d->multiplier) {
        case 2: repeat_elements(from, inputs, size, 2, to); break;
        case 3: repeat_elements(from, inputs, size, 3, to); break;
        case 4: repeat_elements(from, inputs, size, 4, to); break;
        case 8: repeat_elements(from, inputs, size, 8, to); break;
        default: repeat_elements(from, inputs, size, d->multiplier, to); break;
        }
}

/* The same for groups.  of_group, depth: constants where compilers are to write several groups' channels at once. */
TQ_BODY void repeat_groups_of(const tq_depthwise *d, const float *restrict from, size_t groups, float *restrict to,
                              size_t of_group, size_t depth)
{
    for (size_t k = 0; k < depth; k++, to += d->channels)
        for (size_t g = 0; g < groups; g++)
            for (size_t c = 0; c < of_group; c++)
                to[g * of_group + c] = from[g * depth + k];
}

TQ_BODY void repeat_pixel_groups(const tq_depthwise *d, const float *from, size_t groups, float *to)
{
    const size_t of_group = d->multiplier, depth = d->depth;
    if (of_group == 2 && depth == 2)
        repeat_groups_of(d, from, groups, to, 2, 2);
    else if (of_group == 3 && depth == 3)
        repeat_groups_of(d, from, groups, to, 3, 3);
    else if (of_group == 4 && depth == 4)
        repeat_groups_of(d, from, groups, to, 4, 4);
    else if (of_group == 2)
        repeat_groups_of(d, from, groups, to, 2, depth);
    else if (of_group == 4)
        repeat_groups_of(d, from, groups, to, 4, depth);
    else
        repeat_groups_of(d, from, groups, to, of_group, depth);
}

#define REPEAT_GROUPS(isa, target)                                                                                 \
    target static void repeat_groups_##isa(const tq_depthwise *d, const float *from, size_t pixels, size_t stride, \
                                           float *to)                                                              \
    {                                                                                                              \
        const size_t groups = d->channels / d->multiplier, expanded = d->channels * d->depth;                      \
        for (size_t p = 0; p < pixels && !tq_stop_after(expanded); p++, from += stride, to += expanded)            \
            repeat_pixel_groups(d, from, groups, to);                                                              \
    }
TQ_EVERY_ISA(REPEAT_GROUPS)

/* Pixels of a line that output pixels up to `last` of a line read: all, or up to its last tap. */
static size_t reach(const tq_scan *s, size_t last)
{
    const int64_t x = (int64_t)last * s->stride_w - s->pad_w + (int64_t)(s->filter_w - 1) * s->dilation_w + 1;
    return x < 0 ? 0 : x < s->in_w ? (size_t)x : (size_t)s->in_w;
}

/* Whether output pixels from `first` to `last` can read the last pixels. */
static bool reads_last_pixels(const struct run *run, size_t first, size_t last)
{
    const tq_scan *s = run->scan;
    const size_t out_w = (size_t)s->out_w, out_h = (size_t)s->out_h;
    int64_t y = (int64_t)(last / out_w % out_h) * s->stride_h - s->pad_h + (int64_t)(s->filter_h - 1) * s->dilation_h;
    y = y < 0 ? 0 : y < s->in_h ? y : s->in_h - 1;
    const size_t lines =
        last / out_w / out_h * (size_t)s->in_h + (size_t)y; /* of all images, before the last one read */
    const size_t pixels = first / out_w == last / out_w ? reach(s, last % out_w) : (size_t)s->in_w;
    return run->data + (lines * (size_t)s->in_w + pixels) * run->stride > run->last_pixels;
}

/* Fills the indirection buffer for output pixels [first, first + count); the last pixels are read from their copy. */
static void fill_indirection(const struct run *run, const void **table, size_t first, size_t count)
{
    const tq_depthwise *d = run->d;
    if (d->offsets)
        tq_depthwise_point(d, run->data, first, count, table, run->block);
    else
        tq_scan_pixels(run->scan, run->data, run->stride, first, count, d->padding, table, run->block);
    if (d->channels % d->kernel->lanes == 0 || !reads_last_pixels(run, first, first + count - 1))
        return;
    const uintptr_t last_pixels = (uintptr_t)run->last_pixels, end = (uintptr_t)run->last_end;
    for (size_t t = 0; t < d->taps; t++)
        for (size_t i = 0; i < count; i++) {
            uintptr_t at = (uintptr_t)table[t * run->block + i];
            if (at >= last_pixels && at < end)
                table[t * run->block + i] = run->last_copy + (at - last_pixels);
        }
}

static void store_tile(const struct run *run, const void *sums, size_t out_row, size_t rows, size_t channel, size_t n,
                       size_t width)
{
    static const int32_t no_adjust[TQ_TILE_ROWS];
    const tq_tile_store store = {
        .store = run->store,
        .sums = sums,
        .sums_stride = width,
        .adjust = no_adjust,
        .rows = rows,
        .channels = n,
        .first = channel,
        .out = run->out + (out_row * run->out_stride + channel) * run->out_size,
        .out_stride = run->out_stride,
    };
    tq_depthwise_store(run->d, &store);
}

/* For weights that are not finite, padding is skipped: 0 times such a weight is NaN. */
static void skip_padding(const struct run *run, const void *const *row, size_t out_row, size_t rows)
{
    const tq_depthwise *d = run->d;
    const size_t lanes = d->kernel->lanes;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < d->channels && !tq_stop_after(d->taps); c++) {
            const char *vector = (const char *)d->weights + c / lanes * tq_depthwise_vector_bytes(d);
            const float *w = (const float *)(const void *)vector + c % lanes;
            float sum = 0;
            for (size_t t = 0; t < d->taps; t++)
                if (row[t * run->block + r] != d->padding)
                    sum += ((const float *)row[t * run->block + r])[c] * w[t * lanes];
            sum += ((const float *)d->bias)[c];
            const tq_tile_store store = {
                .store = run->store,
                .sums = &sum,
                .rows = 1,
                .channels = 1,
                .out = run->out + ((out_row + r) * run->out_stride + c) * sizeof(float),
            };
            tq_store_floats_scalar(&store);
        }
}

/* Whether a tile may write floats to the output.  A last vector that is not full reaches into the next rows: these must
   be written later, by the same call, which ends at `end`.  Tiles write a row's first four vectors for several rows at
   once.
 */
static bool is_in_place(const struct run *run, size_t row_end, size_t end, size_t channel, size_t width)
{
    const tq_depthwise *d = run->d;
    if (d->in != TQ_f32)
        return false;
    if (channel + width <= d->channels)
        return true;
    return channel == 0 && width <= PART_VECTORS * d->kernel->lanes && run->out_stride == d->channels &&
           row_end + width / d->channels < end;
}

/* One tile: at most TQ_TILE_ROWS rows and TQ_TILE_CHANNELS channels; end: of the call's rows. */
static void run_tile(const struct run *run, const void *const *row, size_t out_row, size_t rows, size_t end,
                     size_t vector, size_t vectors)
{
    static const int32_t zeros[TQ_TILE_CHANNELS];
    const tq_depthwise *d = run->d;
    const size_t lanes = d->kernel->lanes, width = vectors * lanes, channel = vector * lanes;
    const size_t n = tq_min_size(width, d->channels - channel);
    const bool in_place = is_in_place(run, out_row + rows, end, channel, width);
    const char *weights = (const char *)d->weights + vector * tq_depthwise_vector_bytes(d);
    _Alignas(TQ_DEPTHWISE_ALIGN) float sums[TQ_TILE_ROWS * TQ_TILE_CHANNELS];
    tq_depthwise_tile tile = {
        .row = row,
        .step = run->block,
        .taps = d->taps,
        .rows = rows,
        .vectors = vectors,
        .offset = channel * tq_element_size(d->in),
        .weights = weights,
        .vector_bytes = tq_depthwise_vector_bytes(d),
        .bias = (const char *)d->bias + channel * 4,
        .sums = in_place ? run->out + (out_row * run->out_stride + channel) * sizeof(float) : (char *)sums,
        .sums_stride = (in_place ? run->out_stride : width) * 4,
        .floor = run->store->floor,
        .ceiling = run->store->ceiling,
    };
    if (!d->wide) {
        d->kernel->tile(&tile);
        if (!in_place)
            store_tile(run, sums, out_row, rows, channel, n, width);
        return;
    }
    uint64_t wide[TQ_TILE_ROWS * TQ_TILE_CHANNELS];
    for (size_t r = 0; r < rows; r++)
        memcpy(wide + r * width, (const uint64_t *)d->bias + channel, width * sizeof *wide);
    tile.bias = zeros;
    for (size_t t = 0; t < d->taps; t += WIDE_TAPS) {
        tile.row = row + t * run->block;
        tile.taps = tq_min_size(WIDE_TAPS, d->taps - t);
        tile.weights = weights + t * lanes * d->kernel->weight_bytes;
        d->kernel->tile(&tile);
        for (size_t i = 0; i < rows * width; i++)
            wide[i] += (uint64_t)(int64_t)((const int32_t *)(const void *)sums)[i];
    }
    store_tile(run, wide, out_row, rows, channel, n, width);
}

/* Rows [first, end) by tiles. */
static void run_rows(const struct run *run, size_t first, size_t end, char *scratch)
{
    const tq_depthwise *d = run->d;
    const void **table = (const void **)(void *)scratch;
    const size_t vectors = tq_depthwise_vectors(d), most = TQ_TILE_CHANNELS / d->kernel->lanes;
    size_t work = 0;
    for (; first < end; first += run->block) {
        size_t count = tq_min_size(run->block, end - first);
        if (tq_stop_count(&work, count * d->taps))
            return;
        fill_indirection(run, table, first, count);
        if (d->non_finite) {
            skip_padding(run, table, first, count);
            continue;
        }
        for (size_t v = 0; v < vectors && !tq_stop_count(&work, count * d->taps); v += most)
            for (size_t r = 0; r < count; r += TQ_TILE_ROWS)
                run_tile(run, table + r, first + r, tq_min_size(TQ_TILE_ROWS, count - r), end, v,
                         tq_min_size(most, vectors - v));
    }
}

static bool goes_by_lines(const struct run *run)
{
    const tq_depthwise *d = run->d;
    const bool contiguous = run->out_stride == d->channels && run->stride == d->channels * sizeof(float);
    return (d->lines.vectors || d->bands.line_bytes) && !d->non_finite && contiguous;
}

static size_t first_unit(const struct run *run, size_t part)
{
    const size_t at = run->units * part / run->parts;
    return part % run->each ? at - at % run->together : at;
}

static void run_parts(void *context, size_t share, size_t begin, size_t end)
{
    const struct run *run = context;
    const tq_depthwise *d = run->d;
    const size_t first = first_unit(run, begin), last = first_unit(run, end);
    char *scratch = run->scratch + share * run->share;
    if (d->columns.period)
        tq_depthwise_run_columns(d, run->data, first, last, run->store, run->out, run->out_stride, scratch);
    else if (goes_by_lines(run))
        (d->lines.vectors ? tq_depthwise_run_lines : tq_depthwise_run_bands)(d, run->data, first, last, run->store,
                                                                             run->out, scratch);
    else
        run_rows(run, first, last, scratch);
}

/* Sets the parts.  Returns the threads that compute them. */
static size_t find_parts(struct run *run, int threads)
{
    const tq_depthwise *d = run->d;
    const size_t lines = run->count / (size_t)run->scan->out_w;
    const double work = (double)run->count * (double)d->channels * (double)d->taps / WORK_A_THREAD;
    const size_t used = tq_working_threads(work, threads);
    if (d->columns.period) {
        run->units = tq_depthwise_column_units(d, lines / (size_t)run->scan->out_h);
        run->together = d->columns.rows;
    } else if (goes_by_lines(run)) {
        run->units = lines;
        run->together = d->lines.vectors ? 1 : TQ_BAND_LINES;
    } else {
        run->units = run->count;
        run->together = run->block;
    }
    run->each = tq_parts_of_thread(work, used, run->units / run->together);
    run->parts = used * run->each;
    return used;
}

void tq_depthwise_run(const tq_depthwise *depthwise, const tq_gemm_rows *rows, const tq_gemm_store *store, void *out,
                      size_t out_stride, void *scratch, int threads)
{
    static void (*const bodies[TQ_ISAS])(const tq_depthwise *, const float *, size_t, size_t, float *) =
        TQ_ISA_FUNCTIONS(repeat_groups);
    const tq_scan *w = &depthwise->scan;
    const size_t size = tq_element_size(depthwise->in);
    if (!rows->count || !depthwise->channels)
        return;
    const size_t pixels = rows->count / ((size_t)w->out_h * (size_t)w->out_w) * (size_t)w->in_h * (size_t)w->in_w;
    struct run run = {
        .d = depthwise,
        .scan = w,
        .store = store,
        .data = rows->data,
        .stride = (expands(depthwise) ? depthwise->channels : rows->stride) * size,
        .count = rows->count,
        .out = out,
        .out_stride = out_stride,
        .out_size = tq_element_size(store->out),
        .block = block_rows(depthwise),
        .scratch = scratch,
    };
    const size_t used = find_parts(&run, threads);
    run.share = (size_t)tq_share_bytes(share_bytes(depthwise), (int)used);
    char *at = run.scratch + run.share * used;
    if (expands(depthwise)) {
        if (depthwise->depth > 1)
            bodies[tq_isa()](depthwise, rows->data, pixels / depthwise->depth, rows->stride, (float *)(void *)at);
        else
            repeat_channels(depthwise, rows->data, pixels, rows->stride * size, at);
        run.data = at;
        at += tq_round_up(pixels * run.stride, TQ_DEPTHWISE_ALIGN);
    }
    const size_t last_pixels = tq_min_size(last_pixel_count(depthwise), pixels);
    run.last_pixels = run.data + (pixels - last_pixels) * run.stride;
    run.last_end = run.last_pixels + last_pixels * run.stride;
    run.last_copy = at;
    memcpy(at, run.last_pixels, last_pixels * run.stride);
    tq_parallel_shares(run.parts, (int)used, run_parts, &run);
}
