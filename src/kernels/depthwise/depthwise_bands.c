/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolutions of floats with a filter of 3 x 3 taps, by bands of four output lines: sums of a vector of
 * channels in all four, then of the next vector, pixel by pixel.  So each input line is read in the order of its
 * addresses, which prefetchers follow, and in the first-level cache where it serves several output lines.  Tiles of
 * four neighbours read their pixels' vectors in turn, and wait for the third-level cache or memory.  Columns with taps
 * beside the image are tiles.
 */
#include <string.h>

#include "base/stop.h"
#include "kernels/depthwise/depthwise_parts.h"

#define SIDE 3               /* of the filter */
#define LEAST_WIDTH 8        /* of the output: narrower images are as fast by tiles */
#define MOST_BYTES (1 << 20) /* of a line */

/* Compilers would unroll these short loops, which take a hundredth of the time, to kilobytes. */
#define EACH(i, n) _Pragma("GCC unroll 1") for (size_t i = 0; i < (n); i++)

tq_depthwise_bands tq_depthwise_plan_bands(const tq_depthwise_kernel *kernel, const tq_scan *s, size_t channels)
{
    const tq_depthwise_bands none = {0};
    if (!kernel->band || kernel->band_columns_first != s->columns_first || channels == 0 ||
        channels % kernel->lanes != 0 || s->filter_h != SIDE || s->filter_w != SIDE || s->dilation_h < 1 ||
        s->dilation_w < 1 || s->out_w < LEAST_WIDTH || s->in_w < 1 ||
        channels > MOST_BYTES / sizeof(float) / (size_t)s->in_w)
        return none;
    const size_t line = (size_t)s->in_w * channels * sizeof(float);
    return (tq_depthwise_bands){
        .line_bytes = line,
        .job_bytes = tq_round_up(line, TQ_DEPTHWISE_ALIGN) +
                     tq_round_up(SIDE * SIDE * TQ_BAND_LINES * sizeof(void *), TQ_DEPTHWISE_ALIGN),
    };
}

/* Output lines of an image, and the input lines that each filter row meets: of the image, or of padding. */
struct band {
    const tq_depthwise *d;
    const tq_gemm_store *store;
    const char *row[SIDE][TQ_BAND_LINES];
    char *out;
    size_t lines, pixel, out_line; /* pixel, out_line: bytes */
};

/* Column x of the band. */
static void run_column(const struct band *b, size_t x, const void **table)
{
    const tq_depthwise *d = b->d;
    const tq_scan *s = &d->scan;
    EACH (t, SIDE * SIDE) {
        const size_t i = s->columns_first ? t % SIDE : t / SIDE, j = s->columns_first ? t / SIDE : t % SIDE;
        const int64_t in_x = (int64_t)x * s->stride_w - s->pad_w + (int64_t)j * s->dilation_w;
        const bool inside = in_x >= 0 && in_x < s->in_w;
        EACH (r, TQ_BAND_LINES)
            table[t * TQ_BAND_LINES + r] = inside ? b->row[i][r] + (size_t)in_x * b->pixel : d->padding;
    }
    d->kernel->tile(&(tq_depthwise_tile){
        .row = table,
        .step = TQ_BAND_LINES,
        .taps = d->taps,
        .rows = b->lines,
        .vectors = tq_depthwise_vectors(d),
        .weights = d->weights,
        .vector_bytes = tq_depthwise_vector_bytes(d),
        .bias = d->bias,
        .sums = b->out + x * b->pixel,
        .sums_stride = b->out_line,
        .floor = b->store->floor,
        .ceiling = b->store->ceiling,
    });
}

/* Columns [begin, end) of the band, whose taps lie inside the lines.  In a band of one line or two, parts of the lines
   stand for lines; the last part may begin in the one before. */
static void run_inner(const struct band *b, size_t begin, size_t end)
{
    const tq_depthwise *d = b->d;
    const tq_scan *s = &d->scan;
    const size_t parts = TQ_BAND_LINES / b->lines;
    tq_depthwise_band band = {
        .pixels = tq_divide_up(end - begin, parts),
        .vectors = tq_depthwise_vectors(d),
        .column = (size_t)s->dilation_w * b->pixel,
        .skip = (size_t)(s->stride_w - 1) * b->pixel,
        .weights = d->weights,
        .bias = d->bias,
        .floor = b->store->floor,
        .ceiling = b->store->ceiling,
    };
    EACH (r, TQ_BAND_LINES) {
        const size_t line = tq_min_size(r / parts, b->lines - 1);
        const size_t x = tq_min_size(begin + r % parts * band.pixels, end - band.pixels);
        band.out[r] = b->out + line * b->out_line + x * b->pixel;
        EACH (i, SIDE)
            band.row[i][r] = b->row[i][line] + (size_t)((int64_t)x * s->stride_w - s->pad_w) * b->pixel;
    }
    d->kernel->band(&band);
}

void tq_depthwise_run_bands(const tq_depthwise *d, const char *data, size_t first, size_t end,
                            const tq_gemm_store *store, char *out, char *scratch)
{
    const tq_scan *s = &d->scan;
    const size_t out_h = (size_t)s->out_h, out_w = (size_t)s->out_w, line_bytes = d->bands.line_bytes;
    struct band b = {.d = d, .store = store, .pixel = d->channels * sizeof(float)};
    /* the columns whose taps all lie inside: from `left` on, before `right` */
    const int64_t last = (int64_t)s->in_w - 1 - (SIDE - 1) * (int64_t)s->dilation_w + s->pad_w;
    const size_t left = s->pad_w <= 0 ? 0 : tq_min_size(tq_divide_up((size_t)s->pad_w, (size_t)s->stride_w), out_w);
    const size_t right = last < 0 ? 0 : tq_min_size((size_t)(last / s->stride_w) + 1, out_w);
    const void **table = (const void **)(void *)(scratch + tq_round_up(line_bytes, TQ_DEPTHWISE_ALIGN));
    size_t work = 0;
    b.out_line = out_w * b.pixel;
    memset(scratch, 0, line_bytes); /* a line of padding */
    for (size_t row = first; row < end; row += b.lines) {
        const char *image = data + row / out_h * (size_t)s->in_h * line_bytes;
        b.lines = tq_min_size(tq_min_size(TQ_BAND_LINES, out_h - row % out_h), end - row);
        b.out = out + row * b.out_line;
        if (tq_stop_count(&work, b.lines * out_w * d->channels * d->taps / 8))
            return;
        EACH (i, SIDE)
            EACH (r, TQ_BAND_LINES) {
                const int64_t y = (int64_t)(row % out_h + r) * s->stride_h - s->pad_h + (int64_t)i * s->dilation_h;
                b.row[i][r] = y >= 0 && y < s->in_h ? image + (size_t)y * line_bytes : scratch;
            }
        for (size_t x = 0; x < out_w; x++)
            if (x == left && left < right) {
                run_inner(&b, left, right);
                x = right - 1;
            } else {
                run_column(&b, x, table);
            }
    }
}
