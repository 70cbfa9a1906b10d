/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolutions of floats with a filter of 3 x 3 or 5 x 5 taps, by bands of four output lines: sums of a
 * vector of channels in all four, then of the next vector, pixel by pixel.  So each input line is read in the order of
 * its addresses, which prefetchers follow, and in the first-level cache where it serves several output lines.  Tiles of
 * four neighbours read their pixels' vectors in turn, and wait for the third-level cache or memory.  Columns at the
 * edges leave out the taps beside the image.
 */
#include <string.h>

#include "base/stop.h"
#include "kernels/depthwise/depthwise_parts.h"

#define LEAST_WIDTH 8        /* of the output: narrower images are as fast by tiles */
#define MOST_BYTES (1 << 20) /* of a line */

/* Compilers would unroll these short loops, which take a hundredth of the time, to kilobytes. */
#define EACH(i, n) _Pragma("GCC unroll 1") for (size_t i = 0; i < (n); i++)

/* Whether so much of the last vectors would be lost that lines (depthwise_lines.c), which have stride 1, are faster. */
static bool loses_much(const tq_depthwise_kernel *kernel, const tq_scan *s, size_t channels)
{
    const size_t lost = tq_round_up(channels, kernel->lanes) - channels;
    return s->stride_w == 1 && lost > channels / 8;
}

tq_depthwise_bands tq_depthwise_plan_bands(const tq_depthwise_kernel *kernel, const tq_scan *s, size_t channels)
{
    const tq_depthwise_bands none = {0};
    if (!kernel->band || kernel->band_columns_first != s->columns_first || channels < kernel->lanes ||
        loses_much(kernel, s, channels) || s->filter_h != s->filter_w || (s->filter_h != 3 && s->filter_h != 5) ||
        s->dilation_h < 1 || s->dilation_w < 1 || s->out_w < LEAST_WIDTH || s->in_w < 1 ||
        channels > MOST_BYTES / sizeof(float) / (size_t)s->in_w)
        return none;
    return (tq_depthwise_bands){
        .line_bytes = (size_t)s->in_w * channels * sizeof(float),
        .tail = channels % kernel->lanes != 0,
    };
}

/* Output lines of an image, and the input lines that each filter row meets: of the image, or of padding. */
struct band {
    const tq_depthwise *d;
    const tq_gemm_store *store;
    const char *row[TQ_BAND_SIDE][TQ_BAND_LINES];
    char *out;
    size_t lines, pixel, out_line; /* pixel, out_line: bytes */
};

/* Vectors [vector, vector + count) of a band, from channel `channel` on. */
static void run_vectors(const struct band *b, tq_depthwise_band band, size_t vector, size_t count, size_t channel)
{
    const tq_depthwise *d = b->d;
    const size_t lanes = d->kernel->lanes, at = channel * sizeof(float);
    EACH (r, TQ_BAND_LINES) {
        band.out[r] += at;
        EACH (i, band.side)
            band.row[i][r] += at;
    }
    band.vectors = count;
    band.gap = b->pixel - count * lanes * sizeof(float);
    band.skip = (size_t)(d->scan.stride_w - 1) * b->pixel + band.gap;
    band.weights = (const char *)d->weights + vector * tq_depthwise_vector_bytes(d);
    band.bias = (const char *)d->bias + vector * lanes * sizeof(float);
    d->kernel->band(&band);
}

/* Columns [begin, end), of whose taps columns [from, to) of the filter lie inside the lines.  In a band of one line or
   two, parts of the lines stand for lines; the last part may begin in the one before.  Channels that fill no vector
   are computed with those before them, by the last packed vector. */
static void run_columns(const struct band *b, size_t begin, size_t end, size_t from, size_t to)
{
    const tq_depthwise *d = b->d;
    const tq_scan *s = &d->scan;
    const size_t parts = TQ_BAND_LINES / b->lines, lanes = d->kernel->lanes;
    tq_depthwise_band band = {
        .side = (size_t)s->filter_h,
        .from = from,
        .to = to,
        .pixels = tq_divide_up(end - begin, parts),
        .column = (size_t)s->dilation_w * b->pixel,
        .floor = b->store->floor,
        .ceiling = b->store->ceiling,
    };
    EACH (r, TQ_BAND_LINES) {
        const size_t line = tq_min_size(r / parts, b->lines - 1);
        const size_t x = tq_min_size(begin + r % parts * band.pixels, end - band.pixels);
        const int64_t in_x = (int64_t)x * s->stride_w - s->pad_w + (int64_t)from * s->dilation_w;
        band.out[r] = b->out + line * b->out_line + x * b->pixel;
        EACH (i, band.side)
            band.row[i][r] = b->row[i][line] + (from < to ? (size_t)in_x * b->pixel : 0);
    }
    run_vectors(b, band, 0, d->channels / lanes, 0);
    if (d->bands.tail)
        run_vectors(b, band, tq_depthwise_vectors(d), 1, d->channels - lanes);
}

/* The first column of the filter whose taps, for output column x, lie at input column `in_x` or behind it. */
static size_t first_tap(const tq_scan *s, size_t x, int64_t in_x)
{
    const int64_t apart = in_x + s->pad_w - (int64_t)x * s->stride_w;
    return apart <= 0 ? 0 : tq_min_size(tq_divide_up((size_t)apart, (size_t)s->dilation_w), (size_t)s->filter_w);
}

static void run_band(const struct band *b)
{
    const tq_scan *s = &b->d->scan;
    const size_t out_w = (size_t)s->out_w, side = (size_t)s->filter_w;
    /* the columns whose taps all lie inside: from `left` on, before `right` */
    const int64_t last = (int64_t)s->in_w - 1 - ((int64_t)side - 1) * s->dilation_w + s->pad_w;
    const size_t left = s->pad_w <= 0 ? 0 : tq_min_size(tq_divide_up((size_t)s->pad_w, (size_t)s->stride_w), out_w);
    const size_t right = last < 0 ? 0 : tq_min_size((size_t)(last / s->stride_w) + 1, out_w);
    for (size_t x = 0; x < out_w; x++)
        if (x == left && left < right) {
            run_columns(b, left, right, 0, side);
            x = right - 1;
        } else {
            run_columns(b, x, x + 1, first_tap(s, x, 0), first_tap(s, x, s->in_w));
        }
}

void tq_depthwise_run_bands(const tq_depthwise *d, const char *data, size_t first, size_t end,
                            const tq_gemm_store *store, char *out, char *scratch)
{
    const tq_scan *s = &d->scan;
    const size_t out_h = (size_t)s->out_h, out_w = (size_t)s->out_w, line_bytes = d->bands.line_bytes;
    struct band b = {.d = d, .store = store, .pixel = d->channels * sizeof(float)};
    size_t work = 0;
    b.out_line = out_w * b.pixel;
    memset(scratch, 0, line_bytes); /* a line of padding */
    for (size_t row = first; row < end; row += b.lines) {
        const char *image = data + row / out_h * (size_t)s->in_h * line_bytes;
        b.lines = tq_min_size(tq_min_size(TQ_BAND_LINES, out_h - row % out_h), end - row);
        b.out = out + row * b.out_line;
        if (tq_stop_count(&work, b.lines * out_w * d->channels * d->taps / 8))
            return;
        EACH (i, (size_t)s->filter_h)
            EACH (r, b.lines) {
                const int64_t y = (int64_t)(row % out_h + r) * s->stride_h - s->pad_h + (int64_t)i * s->dilation_h;
                b.row[i][r] = y >= 0 && y < s->in_h ? image + (size_t)y * line_bytes : scratch;
            }
        run_band(&b);
    }
}
