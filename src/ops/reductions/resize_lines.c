/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines of resize_lines.h, part by part of the output's width, on the stack.
 */
#include "ops/reductions/resize_lines.h"

#include <string.h>

#include "base/sizes.h"
#include "base/stop.h"
#include "kernels/isa.h"

enum { COLUMNS = 128, FEW = 4 /* channels */, MOST = 2048 /* elements of a line */, BLOCK = 16 };

typedef struct part {
    tq_sample columns[COLUMNS];
    size_t column, columns_count, channel, channels;
    int32_t weights[COLUMNS * FEW]; /* of each channel's second pixel; of few channels alone */
} part;

/* ---- sums by columns ---- */

/* Few channels of all columns: their pixels are copied side by side first. */
#define COPY_PIXELS(count)                                                    \
    for (size_t k = 0; k < n; k++) {                                          \
        memcpy(low + k * count, row + p->columns[k].low * r->depth, count);   \
        memcpy(high + k * count, row + p->columns[k].high * r->depth, count); \
    }
TQ_BODY void mix_few(const tq_resize_lines *r, const part *p, const uint8_t *row, int32_t *restrict line)
{
    uint8_t low[COLUMNS * FEW], high[COLUMNS * FEW];
    const size_t n = p->columns_count;
    const int32_t one = 1 << r->mix.bits, flip = r->mix.flip;
    switch (p->channels) {
    case 1: COPY_PIXELS(1); break;
    case 2: COPY_PIXELS(2); break;
    case 3: COPY_PIXELS(3); break;
    case 4: COPY_PIXELS(4); break;
    }
    for (size_t i = 0; i < n * p->channels; i++)
        line[i] = ((low[i] ^ flip) - flip) * (one - p->weights[i]) + ((high[i] ^ flip) - flip) * p->weights[i];
}

/* `count` channels of two pixels.  Inlined with a constant count: a vector. */
TQ_BODY void mix_pixels(const uint8_t *low, const uint8_t *high, const tq_sample *x, const tq_fixed_mix *m,
                        int32_t *line, size_t count)
{
    const int32_t second = x->fixed, first = (1 << m->bits) - second, flip = m->flip;
    for (size_t i = 0; i < count; i++)
        line[i] = ((low[i] ^ flip) - flip) * first + ((high[i] ^ flip) - flip) * second;
}

/* The same of eight channels, by extension: compilers find no vectors of so few.  For 32-byte vectors. */
enum { HALF = BLOCK / 2 };
typedef uint8_t bytes __attribute__((vector_size(HALF)));
typedef int32_t ints __attribute__((vector_size(4 * HALF)));

TQ_BODY void mix_eight(const uint8_t *low, const uint8_t *high, const tq_sample *x, const tq_fixed_mix *m,
                       int32_t *line)
{
    const int32_t second = x->fixed, first = (1 << m->bits) - second;
    bytes a, b;
    memcpy(&a, low, sizeof a);
    memcpy(&b, high, sizeof b);
    const ints left = __builtin_convertvector(a ^ m->flip, ints) - m->flip;
    const ints right = __builtin_convertvector(b ^ m->flip, ints) - m->flip;
    const ints sum = left * first + right * second;
    memcpy(line, &sum, sizeof sum);
}

/* `count` channels of n columns; row: those channels of the first pixel.  More than a block of channels: blocks, of
   which the last may overlap the one before. */
TQ_BODY void mix_columns(const tq_resize_lines *r, const uint8_t *row, const tq_sample *columns, size_t n, size_t count,
                         int32_t *line, const bool has_eights)
{
    const tq_fixed_mix mix = r->mix;
    const size_t depth = r->depth, block = has_eights ? HALF : BLOCK;
    for (size_t k = 0; k < n; k++, line += count) {
        const uint8_t *low = row + columns[k].low * depth, *high = row + columns[k].high * depth;
        if (count < block) {
            mix_pixels(low, high, &columns[k], &mix, line, count);
            continue;
        }
        for (size_t i = 0; i < count; i += block) {
            const size_t at = tq_min_size(i, count - block);
            if (has_eights)
                mix_eight(low + at, high + at, &columns[k], &mix, line + at);
            else
                mix_pixels(low + at, high + at, &columns[k], &mix, line + at, BLOCK);
        }
    }
}

/* ---- sums of two lines ---- */

/* |sum| <= 2^8 2^(2 bits) <= 2^30 */
TQ_BODY void mix_lines(const int32_t *low, const int32_t *high, int32_t fixed, const tq_fixed_mix *m, uint8_t *out,
                       size_t n)
{
    const int32_t second = fixed, first = (1 << m->bits) - second, shift = 2 * m->bits, half = 1 << (shift - 1);
    const int32_t away = -m->away;
    for (size_t i = 0; i < n; i++) {
        const int32_t sum = low[i] * first + high[i] * second;
        out[i] = (uint8_t)((sum + half + ((sum >> 31) & away)) >> shift);
    }
}

/* ---- a part of the width ---- */

TQ_BODY void run_part(const tq_resize_lines *r, const part *p, size_t begin, size_t end, const bool has_eights)
{
    int32_t lines[2][MOST];
    const size_t n = p->columns_count * p->channels, line_bytes = r->in_width * r->depth;
    size_t held[2] = {SIZE_MAX, SIZE_MAX}; /* the rows of the input of which lines[k] is the sum by columns */
    for (size_t row = begin; row < end && !tq_stop_after(n); row++) {
        const size_t image = row / r->out_height * r->in_height;
        const tq_sample y =
            r->find(r->context, (int64_t)(row % r->out_height), (int64_t)r->in_height, (int64_t)r->out_height);
        const size_t wanted[2] = {image + y.low, image + y.high};
        int at[2];
        for (int k = 0; k < 2; k++) {
            const size_t other = wanted[1 - k];
            at[k] = held[0] == wanted[k] ? 0 : held[1] == wanted[k] ? 1 : k == 1 ? 1 - at[0] : held[0] == other;
            if (held[at[k]] == wanted[k])
                continue;
            held[at[k]] = wanted[k];
            const uint8_t *in = r->in + wanted[k] * line_bytes + p->channel;
            if (p->channels <= FEW)
                mix_few(r, p, in, lines[at[k]]);
            else
                mix_columns(r, in, p->columns, p->columns_count, p->channels, lines[at[k]], has_eights);
        }
        uint8_t *out = r->out + (row * r->out_width + p->column) * r->depth + p->channel;
        mix_lines(lines[at[0]], lines[at[1]], y.fixed, &r->mix, out, n);
    }
}

#define RUN(isa, target)                                                                            \
    target static void run_##isa(const tq_resize_lines *r, const part *p, size_t begin, size_t end) \
    {                                                                                               \
        run_part(r, p, begin, end, TQ_FLOATS_##isa > 4);                                            \
    }
TQ_EVERY_ISA(RUN)

void tq_resize_lines_run(const tq_resize_lines *r, size_t begin, size_t end)
{
    static void (*const bodies[TQ_ISAS])(const tq_resize_lines *, const part *, size_t, size_t) = TQ_ISA_FUNCTIONS(run);
    part p;
    const size_t most = r->depth < MOST ? tq_min_size(COLUMNS, MOST / r->depth) : 1; /* more channels: pixel by pixel */
    for (p.channel = 0; p.channel < r->depth; p.channel += p.channels) {
        p.channels = tq_min_size(MOST, r->depth - p.channel);
        for (p.column = 0; p.column < r->out_width; p.column += p.columns_count) {
            p.columns_count = tq_min_size(most, r->out_width - p.column);
            for (size_t k = 0; k < p.columns_count; k++)
                p.columns[k] =
                    r->find(r->context, (int64_t)(p.column + k), (int64_t)r->in_width, (int64_t)r->out_width);
            for (size_t i = 0; p.channels <= FEW && i < p.columns_count * p.channels; i++)
                p.weights[i] = p.columns[i / p.channels].fixed;
            bodies[tq_isa()](r, &p, begin, end);
        }
    }
}
