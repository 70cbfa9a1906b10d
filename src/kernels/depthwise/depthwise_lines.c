/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolutions of floats by image lines, with stride 1.  Input lines are copied once to a ring, with their
 * padding, so that the pixels that a tap of the filter reads for an output line lie one behind the other.  An output
 * line is then one run of values.  Channels that do not fill a vector continue with the next pixel, and weights repeat
 * after a block of vectors.
 */
#include <string.h>

#include "base/stop.h"
#include "kernels/depthwise/depthwise_parts.h"

#define BLOCK_VECTORS 4      /* at least: a tile loads pointers once a block */
#define BLOCKS 16            /* of a tile */
#define FEW_CHANNELS 48      /* more of them, in whole vectors, are as fast without the copies; so are small images */
#define MOST_VECTORS 16      /* of a block: weights are to stay in the first-level cache */
#define MOST_BYTES (1 << 20) /* of a job: beyond the second-level cache, copies would not pay */

tq_depthwise_lines tq_depthwise_plan_lines(const tq_depthwise_kernel *kernel, const tq_scan *s, size_t channels)
{
    const tq_depthwise_lines none = {0};
    const size_t lanes = kernel->lanes;
    if (channels == 0 || (channels % lanes == 0 && (channels >= FEW_CHANNELS || tq_depthwise_is_small(s))) ||
        s->out_w < 1 || s->out_w > 1 << 16 || s->stride_w != 1 || s->filter_h > TQ_DEPTHWISE_SIDE ||
        s->filter_w > TQ_DEPTHWISE_SIDE || s->dilation_h > 64 || s->dilation_w > 64 || s->pad_w < 0)
        return none;
    const size_t period = channels / tq_common_divisor(channels, lanes);
    if (period > MOST_VECTORS)
        return none;
    tq_depthwise_lines l = {.vectors = period * tq_divide_up(BLOCK_VECTORS, period)};
    l.blocks = tq_divide_up((size_t)s->out_w * channels, l.vectors * lanes);
    l.ring = ((size_t)s->filter_h - 1) * (size_t)s->dilation_h + 1;
    const size_t shift = ((size_t)s->filter_w - 1) * (size_t)s->dilation_w * channels;
    l.line_bytes = tq_round_up((l.blocks * l.vectors * lanes + shift) * sizeof(float), TQ_DEPTHWISE_ALIGN);
    l.job_bytes = (l.ring + 1) * l.line_bytes + l.vectors * lanes * sizeof(float) +
                  tq_round_up(tq_scan_taps(s) * (BLOCKS + 1) * sizeof(void *), TQ_DEPTHWISE_ALIGN);
    return l.job_bytes <= MOST_BYTES ? l : none;
}

/* Copies input line y to its place in the ring.  The padding beside it is zero already. */
static void copy_line(const tq_depthwise *d, const char *image, size_t y, char *ring)
{
    const size_t pixel = d->channels * sizeof(float), pad = (size_t)d->scan.pad_w * pixel;
    const size_t width = (size_t)d->scan.in_w * pixel, room = d->lines.line_bytes;
    memcpy(ring + y % d->lines.ring * room + pad, image + y * width, tq_min_size(width, room > pad ? room - pad : 0));
}

/* first[t]: the value that tap t multiplies first, for output line y of an image. */
static void find_taps(const tq_depthwise *d, size_t y, const char *ring, const char **first)
{
    const tq_scan *s = &d->scan;
    const size_t h = (size_t)s->filter_h, w = (size_t)s->filter_w;
    const size_t step = (size_t)s->dilation_w * d->channels * sizeof(float);
    const size_t down = s->columns_first ? 1 : w, right = s->columns_first ? h : 1;
    for (size_t i = 0; i < h; i++) {
        const int64_t in_y = (int64_t)y * s->stride_h - s->pad_h + (int64_t)i * s->dilation_h;
        const size_t line = in_y >= 0 && in_y < s->in_h ? (size_t)in_y % d->lines.ring : d->lines.ring;
        for (size_t j = 0; j < w; j++)
            first[i * down + j * right] = ring + line * d->lines.line_bytes + j * step;
    }
}

/* Blocks [at, at + count) of an output line, the first `vectors` of each. */
static void run_blocks(const tq_depthwise *d, const char *const *first, size_t at, size_t count, size_t vectors,
                       const tq_gemm_store *store, const void **table, char *out)
{
    const size_t block = d->lines.vectors * d->kernel->lanes * sizeof(float);
    for (size_t t = 0; t < d->taps; t++)
        for (size_t b = 0; b < count; b++)
            table[t * BLOCKS + b] = first[t] + (at + b) * block;
    d->kernel->tile(&(tq_depthwise_tile){
        .row = table,
        .step = BLOCKS,
        .taps = d->taps,
        .rows = count,
        .vectors = vectors,
        .weights = d->weights,
        .vector_bytes = tq_depthwise_vector_bytes(d),
        .bias = d->bias,
        .sums = out,
        .sums_stride = block,
        .floor = store->floor,
        .ceiling = store->ceiling,
    });
}

void tq_depthwise_run_lines(const tq_depthwise *d, const char *data, size_t first, size_t end,
                            const tq_gemm_store *store, char *out, char *scratch)
{
    const tq_depthwise_lines *l = &d->lines;
    const tq_scan *s = &d->scan;
    const size_t out_h = (size_t)s->out_h, pixel = d->channels * sizeof(float), line = (size_t)s->out_w * pixel;
    const size_t image_bytes = (size_t)s->in_h * (size_t)s->in_w * pixel;
    const size_t block = l->vectors * d->kernel->lanes * sizeof(float), whole = line / block;
    const size_t last_vectors = tq_divide_up(line - whole * block, d->kernel->lanes * sizeof(float));
    char *last = scratch + (l->ring + 1) * l->line_bytes;
    const char **taps = (const char **)(void *)(last + block);
    const void **table = (const void **)(void *)(taps + d->taps);
    int64_t copied = 0;
    size_t work = 0;
    memset(scratch, 0, (l->ring + 1) * l->line_bytes);
    for (size_t row = first; row < end && !tq_stop_count(&work, line / sizeof(float) * d->taps / 8); row++) {
        const size_t y = row % out_h;
        const int64_t begin = (int64_t)y * s->stride_h - s->pad_h, stop = begin + (int64_t)l->ring;
        copied = y == 0 || copied < begin ? (begin < 0 ? 0 : begin) : copied;
        for (; copied < stop && copied < s->in_h; copied++)
            copy_line(d, data + row / out_h * image_bytes, (size_t)copied, scratch);
        find_taps(d, y, scratch, taps);
        char *to = out + row * line;
        for (size_t b = 0; b < whole; b += BLOCKS)
            run_blocks(d, taps, b, tq_min_size(BLOCKS, whole - b), l->vectors, store, table, to + b * block);
        if (whole < l->blocks) {
            run_blocks(d, taps, whole, 1, last_vectors, store, table, last);
            memcpy(to + whole * block, last, line - whole * block);
        }
    }
}
