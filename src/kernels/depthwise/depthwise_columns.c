/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolutions of 8-bit pixels by columns: pixels of up to four image rows are interleaved once, to columns
 * of four values a channel, and an output adds the product of a column with its four weights for each column of the
 * filter.  Every output that a column reaches reads the same copy.
 *
 * A filter of one row is taken as four rows, each one tap further: a column has the pixels of four taps of a line.
 *
 * Two output rows share columns where these have room for the rows of both: weights of the second stand one row lower.
 * Where a thread's part ends between the two, each thread interleaves columns for its own row: so two threads share 14
 * rows evenly.
 *
 * An output row is computed in chunks of pixels.  With stride 1 a chunk is one run of values: channels that do not fill
 * a vector continue with the next pixel, and weights repeat after `period` vectors.  With other strides each pixel is a
 * run of its own.
 */
#include <string.h>

#include "base/stop.h"
#include "kernels/depthwise/depthwise_parts.h"

#define LANES 16
#define CHUNK_BYTES (16 << 10) /* of a chunk's columns: a third to half of the first-level cache */
#define ROW_BYTES (24 << 10) /* of the columns of a row that is one chunk; chunks repeat columns of others */
#define LEAST_PIXELS 8
#define COLUMN 4 /* bytes of a column: four rows */
#define SLACK 128 /* bytes that a vector may reach past columns and sums */

/* Columns of the input that `pixels` outputs read. */
static size_t columns_of(const tq_depthwise_columns *c, const tq_scan *s, size_t pixels)
{
    return (pixels - 1) * (size_t)s->stride_w + (c->width - 1) * c->apart + 1;
}

/* Pixels of a line that these columns hold, where they have four taps. */
static size_t line_pixels(const tq_depthwise_columns *c, const tq_scan *s, size_t pixels)
{
    return columns_of(c, s, pixels) + 3 * (size_t)s->dilation_w;
}

static bool is_line(const tq_scan *s)
{
    return s->filter_h == 1;
}

/* Whether columns take less time than tiles, by measurement: the columns of a line are made once, tiles gather the
   vectors of each output. */
static bool line_pays(const tq_depthwise_columns *c, const tq_scan *s, size_t channels)
{
    const size_t out_w = (size_t)s->out_w, gathered = out_w * (c->width * tq_divide_up(channels, LANES) + 1) * LANES;
    return columns_of(c, s, out_w) * channels * 3 < gathered * 2;
}

tq_depthwise_columns tq_depthwise_plan_columns(const tq_depthwise_kernel *kernel, tq_element in, const tq_scan *s,
                                               size_t channels)
{
    tq_depthwise_columns c = {0};
    const size_t vectors = tq_divide_up(channels, LANES), period = channels / tq_common_divisor(channels, LANES);
    /* few outputs would not pay for interleaving, nor would one tap */
    if (!kernel->columns || channels == 0 || s->dilation_w < 1 || s->filter_w < 1 || s->filter_h < 1 ||
        (s->filter_w == 1 && s->filter_h == 1) || s->filter_h > 64 || s->filter_w > 64 || s->dilation_w > 64 ||
        s->stride_w > 64 || s->out_w < 3 || channels > 1 << 20)
        return c;
    if (kernel->columns_channels &&
        (channels > kernel->columns_channels || s->filter_w * s->filter_h > 9 || s->filter_h > 4))
        return c;
    c.groups = tq_divide_up((size_t)s->filter_h, 4);
    c.width = is_line(s) ? tq_divide_up((size_t)s->filter_w, 4) : (size_t)s->filter_w;
    c.apart = (size_t)s->dilation_w * (is_line(s) ? 4 : 1);
    if (is_line(s) && !line_pays(&c, s, channels))
        return (tq_depthwise_columns){0};
    c.rows = s->stride_h == 1 && s->dilation_h == 1 && s->filter_h % 4 && !is_line(s) ? 2 : 1;
    c.run = s->stride_w == 1 && period <= 2 * vectors + 3;
    c.period = c.run ? period : vectors;
    const bool whole = columns_of(&c, s, (size_t)s->out_w) <= ROW_BYTES / COLUMN / channels;
    c.pixels = whole ? (size_t)s->out_w : CHUNK_BYTES / COLUMN / channels;
    c.pixels = c.pixels < LEAST_PIXELS ? LEAST_PIXELS : c.pixels > TQ_COLUMN_PIXELS ? TQ_COLUMN_PIXELS : c.pixels;
    c.pixels = tq_min_size(c.pixels, (size_t)s->out_w);
    c.pixels = tq_divide_up((size_t)s->out_w, tq_divide_up((size_t)s->out_w, c.pixels)); /* nearly equal chunks */
    c.sums_stride = c.run ? channels : vectors * LANES;
    c.group_bytes = tq_round_up(columns_of(&c, s, c.pixels) * channels * COLUMN + SLACK, TQ_DEPTHWISE_ALIGN);
    c.parts = in == TQ_u8 ? 2 : 1; /* weights less their zero point have 9 bits */
    c.weight_bytes = c.rows * c.period * c.groups * c.width * c.parts * LANES * COLUMN;
    c.bias_bytes = c.period * LANES * sizeof(int32_t);
    c.line_bytes = is_line(s) ? tq_round_up(line_pixels(&c, s, c.pixels) * channels, TQ_DEPTHWISE_ALIGN) : 0;
    c.job_bytes = c.groups * c.group_bytes + c.line_bytes +
                  tq_round_up(c.pixels * c.sums_stride * sizeof(int32_t) + SLACK, TQ_DEPTHWISE_ALIGN);
    return c;
}

/* Products of a channel's weights with what the columns add to its elements beyond the kernel's flip. */
static int32_t flipped_sum(const tq_depthwise *d, const tq_gemm_weights *w, size_t channel)
{
    int32_t sum = 0;
    if (d->kernel->columns_flip == d->kernel->flip)
        return 0;
    for (size_t tap = 0; tap < d->taps; tap++)
        sum += tq_depthwise_weight(w, tap, channel) * 128;
    return sum;
}

/* Weights of lane `at` of all vectors, of a filter that stands `down` rows below the columns' first. */
static void pack_lane(const tq_depthwise *d, const tq_gemm_weights *w, size_t channel, size_t at, size_t down,
                      int8_t *to)
{
    const tq_scan *s = &d->scan;
    const size_t h = (size_t)s->filter_h, width = (size_t)s->filter_w;
    for (size_t i = 0; i < h; i++)
        for (size_t j = 0; j < width; j++) {
            const size_t row = is_line(s) ? j % 4 : i + down, tap = s->columns_first ? j * h + i : i * width + j;
            const size_t right = is_line(s) ? j / 4 : j;
            const size_t column = (at / LANES * d->columns.groups + row / 4) * d->columns.width + right;
            int8_t *part = to + (column * d->columns.parts * LANES + at % LANES) * COLUMN + row % 4;
            const int32_t weight = tq_depthwise_weight(w, tap, channel);
            const int32_t first = weight < INT8_MIN ? INT8_MIN : weight > INT8_MAX ? INT8_MAX : weight;
            part[0] = (int8_t)first;
            if (d->columns.parts > 1)
                part[LANES * COLUMN] = (int8_t)(weight - first);
        }
}

void tq_depthwise_pack_columns(const tq_depthwise *d, const tq_gemm_weights *w, const int32_t *sums, int8_t *to,
                               int32_t *bias)
{
    const tq_depthwise_columns *c = &d->columns;
    for (size_t at = 0; at < c->period * LANES && !tq_stop_after(d->taps); at++) {
        const size_t channel = c->run ? at % d->channels : at;
        if (channel >= d->channels)
            continue;
        bias[at] = (int32_t)((uint32_t)sums[channel] - (uint32_t)flipped_sum(d, w, channel));
        for (size_t r = 0; r < c->rows; r++)
            pack_lane(d, w, channel, at, r, to + r * c->weight_bytes / c->rows);
    }
}

/* ---- running ---- */

/* Interleaves the columns of output pixels [x, x + pixels) of output row y of an image. */
static void fill_columns(const tq_depthwise *d, const char *image, int64_t y, int64_t x, size_t pixels, char *columns)
{
    const tq_scan *s = &d->scan;
    const int64_t total = (int64_t)columns_of(&d->columns, s, pixels), begin = x * s->stride_w - s->pad_w;
    int64_t left = begin < 0 ? -begin : 0, right = s->in_w - begin;
    left = left < total ? left : total;
    right = right < left ? left : right < total ? right : total;
    const size_t channels = d->channels, inside = (size_t)(right - left) * channels;
    const int padding = *(const uint8_t *)d->padding ^ d->kernel->columns_flip;
    for (size_t g = 0; g < d->columns.groups; g++, columns += d->columns.group_bytes) {
        const char *row[4];
        size_t step[4];
        for (int64_t k = 0; k < 4; k++) {
            const int64_t i = (int64_t)g * 4 + k, in_y = y * s->stride_h - s->pad_h + i * s->dilation_h;
            const bool real = i < s->filter_h + (int64_t)d->columns.rows - 1 && in_y >= 0 && in_y < s->in_h && inside;
            row[k] = real ? image + (in_y * s->in_w + begin + left) * (int64_t)channels : d->padding;
            step[k] = real;
            if (i > 0 && i >= s->filter_h + (int64_t)d->columns.rows - 1) /* weights are 0: any row will do */
                row[k] = row[k ? k - 1 : k], step[k] = step[k ? k - 1 : k];
        }
        memset(columns, padding, (size_t)left * channels * COLUMN);
        d->kernel->interleave(row, step, inside, d->kernel->columns_flip, columns + (size_t)left * channels * COLUMN);
        memset(columns + (size_t)right * channels * COLUMN, padding, (size_t)(total - right) * channels * COLUMN);
    }
}

/* The same for a filter of one row, by way of a padded copy of the line. */
static void fill_line(const tq_depthwise *d, const char *image, int64_t y, int64_t x, size_t pixels, char *columns,
                      char *line)
{
    static const size_t step[4] = {1, 1, 1, 1};
    const tq_scan *s = &d->scan;
    const size_t channels = d->channels, apart = (size_t)s->dilation_w * channels;
    const int64_t total = (int64_t)line_pixels(&d->columns, s, pixels), in_y = y * s->stride_h - s->pad_h;
    const int64_t begin = x * s->stride_w - s->pad_w, inside = in_y >= 0 && in_y < s->in_h ? s->in_w : 0;
    const int64_t left = begin >= 0 ? 0 : -begin < total ? -begin : total;
    const int64_t rest = inside - begin < total ? inside - begin : total, right = rest < left ? left : rest;
    const int padding = *(const uint8_t *)d->padding;
    memset(line, padding, (size_t)left * channels);
    if (right > left)
        memcpy(line + (size_t)left * channels, image + (in_y * s->in_w + begin + left) * (int64_t)channels,
               (size_t)(right - left) * channels);
    memset(line + (size_t)right * channels, padding, (size_t)(total - right) * channels);
    const char *const row[4] = {line, line + apart, line + 2 * apart, line + 3 * apart};
    d->kernel->interleave(row, step, columns_of(&d->columns, s, pixels) * channels, d->kernel->columns_flip, columns);
}

/* Sums of output row y + r. */
static void sum_columns(const tq_depthwise *d, size_t r, const char *columns, size_t pixels, int32_t *sums)
{
    const tq_scan *s = &d->scan;
    const tq_depthwise_columns *c = &d->columns;
    const size_t vectors = tq_divide_up(pixels * d->channels, LANES), pixel = d->channels * COLUMN;
    tq_column_tile tile = {
        .groups = c->groups,
        .width = c->width,
        .parts = c->parts,
        .group_bytes = c->group_bytes,
        .column_bytes = c->apart * pixel,
        .weights = (const int8_t *)d->weights + r * c->weight_bytes / c->rows,
        .bias = d->bias,
        .step = c->run ? c->period * LANES * COLUMN : (size_t)s->stride_w * pixel,
        .sums_step = c->run ? c->period * LANES : c->sums_stride,
    };
    for (size_t v = 0; v < c->period; v++) {
        tile.count = c->run ? (vectors > v ? tq_divide_up(vectors - v, c->period) : 0) : pixels;
        tile.columns = columns + v * LANES * COLUMN;
        tile.sums = sums + v * LANES;
        d->kernel->columns(&tile);
        tile.weights += c->groups * tile.width * c->parts * LANES * COLUMN;
        tile.bias += LANES;
    }
}

/* A unit is a chunk of one output row.  Those of rows that share columns follow one another, also where an image lacks
   the second row.  Rows that share columns, of an image: */
static size_t unit_rows(const tq_depthwise *d)
{
    return tq_divide_up((size_t)d->scan.out_h, d->columns.rows);
}

static size_t chunks_of(const tq_depthwise *d)
{
    return tq_divide_up((size_t)d->scan.out_w, d->columns.pixels);
}

size_t tq_depthwise_column_units(const tq_depthwise *d, size_t images)
{
    return images * unit_rows(d) * chunks_of(d) * d->columns.rows;
}

void tq_depthwise_run_columns(const tq_depthwise *d, const char *data, size_t first, size_t end,
                              const tq_gemm_store *store, char *out, size_t out_stride, char *scratch)
{
    static const int32_t no_adjust[TQ_COLUMN_PIXELS];
    const tq_depthwise_columns *c = &d->columns;
    const tq_scan *s = &d->scan;
    const size_t out_w = (size_t)s->out_w, out_h = (size_t)s->out_h,
                 pixel_bytes = out_stride * tq_element_size(store->out);
    const size_t image_bytes = (size_t)s->in_h * (size_t)s->in_w * d->channels;
    const size_t most = store->out == TQ_i16 ? TQ_TILE_CHANNELS : d->channels; /* of a store */
    int32_t *sums = (int32_t *)(void *)(scratch + c->groups * c->group_bytes);
    size_t work = 0;
    for (size_t unit = first, units; unit < end; unit += units) {
        units = tq_min_size(c->rows - unit % c->rows, end - unit);
        const size_t chunk = unit / c->rows, row = chunk / chunks_of(d), image = row / unit_rows(d);
        const size_t x = chunk % chunks_of(d) * c->pixels, pixels = tq_min_size(c->pixels, out_w - x);
        const size_t y = row % unit_rows(d) * c->rows + unit % c->rows;
        const size_t rows = tq_min_size(units, out_h - y); /* y <= out_h */
        if (rows == 0)
            continue;
        if (tq_stop_count(&work, rows * pixels * d->channels * d->taps / 8))
            return;
        if (c->line_bytes)
            fill_line(d, data + image * image_bytes, (int64_t)y, (int64_t)x, pixels, scratch,
                      scratch + c->job_bytes - c->line_bytes);
        else
            fill_columns(d, data + image * image_bytes, (int64_t)y, (int64_t)x, pixels, scratch);
        for (size_t r = 0; r < rows; r++) {
            sum_columns(d, r, scratch, pixels, sums);
            for (size_t channel = 0; channel < d->channels; channel += most)
                tq_depthwise_store(d, &(tq_tile_store){
                                          .store = store,
                                          .sums = sums + channel,
                                          .sums_stride = c->sums_stride,
                                          .adjust = no_adjust,
                                          .rows = pixels,
                                          .channels = tq_min_size(most, d->channels - channel),
                                          .first = channel,
                                          .out = out + ((image * out_h + y + r) * out_w + x) * pixel_bytes +
                                                 channel * tq_element_size(store->out),
                                          .out_stride = out_stride,
                                      });
        }
    }
}
