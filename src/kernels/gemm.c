/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products: which body, how weights are packed, how rows and channels are cut into tiles.
 *
 * A product is cut into blocks of rows; of a block, pointers to all runs of all rows are made (no copies), or, where
 * the kernel cannot read rows as they lie, copies.  Then panels of weights, some at a time, meet the block's rows,
 * tile by tile: the panels stay in the nearest cache, and the block in the next.  Threads split rows, or panels where
 * rows are few.  Float tiles write where the output lies; integer sums go through a buffer to a store.  Floats of one
 * channel, or of few channels and short rows, take loops of their own, in the same order.
 */
#include "kernels/gemm.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/sizes.h"
#include "base/threads.h"
#include "kernels/elementwise.h"
#include "kernels/features.h"
#include "kernels/isa.h"
#include "kernels/products.h"

#define ALIGN 64
#define SLACK 64               /* bytes past rows that whole-vector copies may write */
#define BLOCK_BYTES (48 << 10) /* of a block's pointers and copies */
#define BLOCK_ROWS 96
#define WIDE_LENGTH 510        /* |row * weight| <= 2^22, so that 510 of them fit int32; even */
#define WORK_A_THREAD (1 << 17) /* multiply-adds below which a thread costs more than it brings */

/* ---- the plan ---- */

static const tq_gemm_kernel *choose_kernel(tq_element in, bool fused)
{
    bool scalar, other_scalar;
    if (in == TQ_f32)
        return tq_product_find(fused ? TQ_PRODUCT_gemm_f32_fused : TQ_PRODUCT_gemm_f32, &scalar);
    const tq_gemm_kernel *words = tq_product_find(TQ_PRODUCT_gemm_i16, &other_scalar);
    if (in == TQ_i16)
        return words;
    const tq_gemm_kernel *bytes = tq_product_find(TQ_PRODUCT_gemm_i8, &scalar);
    return scalar && !other_scalar ? words : bytes;
}

/* Vectors of channels would be all but empty: sums of one channel, which wait for each other, or of a few that take more
   time to begin than to add up. */
static bool is_narrow(const tq_gemm *g)
{
    const bool few = g->channels == 1 || (g->channels && g->channels <= 4 && g->depth <= 4);
    return few && g->in == TQ_f32 && g->taps == 1;
}

static bool should_copy(const tq_gemm *g)
{
    const size_t size = g->in_bytes;
    if (size != g->kernel->row_bytes)
        return true;
    if (g->taps == 1)
        return false;
    if (g->wide) /* sums are cut anywhere */
        return true;
    if (g->in == TQ_f32)
        return g->depth < 8;
    return g->depth % g->kernel->group && g->depth < 64;
}

tq_status tq_gemm_plan(tq_gemm *gemm, tq_element in, size_t channels, size_t taps, size_t depth, int flags,
                       tq_error *error)
{
    const bool wide = flags & TQ_GEMM_WIDE, fused = flags & TQ_GEMM_FUSED;
    tq_gemm g = {.in = in, .channels = channels, .taps = taps, .depth = depth, .wide = wide, .fused = fused,
                 .in_bytes = tq_element_size(in)};
    const tq_gemm_kernel *k = g.kernel = choose_kernel(in, fused);
    g.copies = should_copy(&g);
    g.narrow = is_narrow(&g);
    const uint64_t lanes = g.lanes = g.narrow ? channels : k->lanes;
    uint64_t row, width, weights;
    bool fits = tq_mul_u64(taps, depth, &row) && row <= UINT32_MAX * (uint64_t)64 && channels <= UINT32_MAX;
    if (fits) {
        g.runs = g.copies ? 1 : taps;
        g.length = g.copies ? (size_t)row : depth;
        g.panels = channels / g.lanes + (channels % g.lanes != 0);
        fits = tq_mul_u64(tq_round_up(g.length, k->group), g.runs, &width) &&
               tq_mul_u64(width, lanes * k->weight_bytes, &width) && tq_mul_u64(width, g.panels, &weights) &&
               weights <= PTRDIFF_MAX / 2;
    }
    if (!fits)
        return tq_fail(error, TQ_NO_MEMORY, TQ_NO_OFFSET, "weights of %zu channels by %zu taps of %zu are too large",
                       channels, taps, depth);
    g.panel_bytes = (size_t)width;
    g.packed_bytes = tq_round_up((size_t)weights, ALIGN) + tq_round_up(g.panels * lanes * (wide ? 8 : 4), ALIGN) +
                     tq_round_up(channels * sizeof(int32_t), ALIGN) +
                     tq_round_up(depth * tq_element_size(in) + SLACK, ALIGN);
    *gemm = g;
    return TQ_OK;
}

/* ---- packing ---- */

/* Channels [first, first + n) into a panel, whose other weights are zero before.  A cache line of each channel at a
   time: weights lie channel after channel, a page or more apart, and a panel has all channels side by side. */
static void pack_bytes(const tq_gemm *g, const tq_gemm_weights *w, size_t first, size_t n, char *panel)
{
    enum { LINE = 64 };
    const size_t group = g->kernel->group, stride = g->kernel->lanes * group;
    const uint8_t *from = (const uint8_t *)w->data + first * w->channel_stride;
    const uint8_t flip = w->type == TQ_u8 ? 0x80 : 0;
    const size_t groups = (g->length + group - 1) / group; /* of a run */
    for (size_t run = 0; run < g->runs; run++, from += g->length * w->k_stride, panel += groups * stride)
        for (size_t line = 0; line < g->length; line += LINE) {
            const size_t some = tq_min_size(LINE, g->length - line);
            for (size_t c = 0; c < n; c++) {
                const uint8_t *weight = from + c * w->channel_stride + line * w->k_stride;
                char *to = panel + line / group * stride + c * group;
                size_t k = 0;
                if (group == 4 && w->k_stride == 1)
                    for (; k + 4 <= some; k += 4, to += stride) {
                        uint32_t four;
                        memcpy(&four, weight + k, sizeof four);
                        four ^= flip * 0x01010101u;
                        memcpy(to, &four, sizeof four);
                    }
                for (; k < some; k += group, to += stride)
                    for (size_t i = 0; i < group && k + i < some; i++)
                        to[i] = (char)(weight[(k + i) * w->k_stride] ^ flip);
            }
        }
}

static void pack_floats(const tq_gemm *g, const tq_gemm_weights *w, size_t first, size_t n, char *panel)
{
    enum { LINE = 16 };
    const size_t lanes = g->lanes, all = g->runs * g->length; /* a group is one element: runs follow each other */
    const float *from = (const float *)w->data + first * w->channel_stride;
    float *to = (float *)(void *)panel;
    for (size_t line = 0; line < all; line += LINE) {
        const size_t some = tq_min_size(LINE, all - line);
        for (size_t c = 0; c < n; c++)
            for (size_t k = line; k < line + some; k++)
                to[k * lanes + c] = from[c * w->channel_stride + k * w->k_stride];
    }
}

static bool are_finite(const tq_gemm *g)
{
    const float *weights = g->panel;
    uint32_t strange = 0;
    for (size_t i = 0; i < g->panels * g->panel_bytes / sizeof *weights; i++) {
        uint32_t bits;
        memcpy(&bits, weights + i, sizeof bits);
        strange |= (bits & 0x7F800000) == 0x7F800000; /* infinities and NaN */
    }
    return !strange;
}

static int32_t sum_of_channel(const tq_gemm *g, const tq_gemm_weights *w, size_t channel)
{
    const uint8_t *from = (const uint8_t *)w->data + channel * w->channel_stride;
    const uint8_t flip = w->type == TQ_u8 ? 0x80 : 0;
    const size_t n = g->taps * g->depth;
    uint32_t sum = 0;
    if (g->kernel->flip_i8 && w->k_stride == 1) /* a sum of unsigned bytes, each 128 more */
        return (int32_t)((uint32_t)g->kernel->row_sum(from, n, flip ^ 0x80) - (uint32_t)n * 128);
    if (w->k_stride == 1)
        for (size_t k = 0; k < n; k++)
            sum += (uint32_t)(int8_t)(from[k] ^ flip);
    else
        for (size_t k = 0; k < n; k++)
            sum += (uint32_t)(int8_t)(from[k * w->k_stride] ^ flip);
    return (int32_t)sum;
}

static int64_t bias_of_channel(const tq_gemm_weights *w, size_t channel)
{
    if (!w->bias)
        return 0;
    return w->bias_type == TQ_GEMM_BIAS_I64 ? ((const int64_t *)w->bias)[channel]
                                            : ((const int32_t *)w->bias)[channel];
}

/* The bias less row zero point * sum of weights; it may wrap, as all sums do. */
static void pack_bias(const tq_gemm *g, const tq_gemm_weights *w, void *bias)
{
    for (size_t c = 0; c < g->channels; c++) {
        uint64_t folded = (uint64_t)(int64_t)g->row_zero_point * (uint64_t)(int64_t)g->sums[c];
        uint64_t sum = (uint64_t)bias_of_channel(w, c) - folded;
        if (g->wide)
            ((uint64_t *)bias)[c] = sum;
        else
            ((uint32_t *)bias)[c] = (uint32_t)sum;
    }
}

static void fill_padding(const tq_gemm *g, int32_t zero_point, void *padding)
{
    const size_t size = g->in_bytes;
    if (size == 1)
        memset(padding, (uint8_t)zero_point, g->depth + SLACK);
    else if (g->in == TQ_i16)
        for (size_t k = 0; k < g->depth; k++)
            ((int16_t *)padding)[k] = (int16_t)zero_point;
    else
        memset(padding, 0, g->depth * size + SLACK);
}

uint64_t tq_gemm_padding_bytes(const tq_gemm *gemm)
{
    return (uint64_t)gemm->depth + SLACK;
}

tq_gemm tq_gemm_with_padding(const tq_gemm *gemm, int8_t code, void *memory)
{
    tq_gemm padded = *gemm;
    fill_padding(gemm, code, memory);
    padded.padding = memory;
    return padded;
}

void tq_gemm_pack(tq_gemm *gemm, const tq_gemm_weights *weights, void *memory)
{
    const tq_gemm_kernel *k = gemm->kernel;
    char *panel = memory;
    char *bias = panel + tq_round_up(gemm->panel_bytes * gemm->panels, ALIGN);
    char *sums = bias + tq_round_up(gemm->panels * gemm->lanes * (gemm->wide ? 8 : 4), ALIGN);
    char *padding = sums + tq_round_up(gemm->channels * sizeof(int32_t), ALIGN);
    /* what is not written below: lanes past the last channel, groups past a run's end, what has no bias */
    const size_t written = gemm->length % k->group ? 0 : gemm->channels / gemm->lanes * gemm->panel_bytes;
    memset(panel + written, 0, (size_t)gemm->packed_bytes - written);
    for (size_t i = 0; i < gemm->panels; i++)
        (gemm->in == TQ_f32 ? pack_floats : pack_bytes)(gemm, weights, i * gemm->lanes,
                                                        tq_min_size(gemm->lanes, gemm->channels - i * gemm->lanes),
                                                        panel + i * gemm->panel_bytes);
    gemm->panel = panel, gemm->bias = bias, gemm->sums = (int32_t *)(void *)sums, gemm->padding = padding;
    fill_padding(gemm, weights->row_zero_point, padding);
    if (gemm->in == TQ_f32) {
        if (weights->bias)
            memcpy(bias, weights->bias, gemm->channels * sizeof(float));
        gemm->strange = !gemm->fused && !are_finite(gemm);
        return;
    }
    for (size_t c = 0; c < gemm->channels; c++)
        ((int32_t *)(void *)sums)[c] = sum_of_channel(gemm, weights, c);
    const bool converts = gemm->in_bytes != k->row_bytes; /* and takes the zero point off */
    const int32_t flipped = gemm->in == TQ_u8 ? (k->flip_u8 ? -128 : 0) : k->flip_i8 ? 128 : 0;
    gemm->row_zero_point = converts ? 0 : weights->row_zero_point + (gemm->in == TQ_i16 ? 0 : flipped);
    gemm->row_factor = (weights->type == TQ_u8 ? 128 : 0) - weights->zero_point;
    gemm->copied_zero_point = weights->row_zero_point;
    pack_bias(gemm, weights, bias);
}

/* ---- stores ---- */

static size_t columns_of(size_t channels)
{
    return tq_round_up(channels, TQ_COLUMN_PADDING) + TQ_COLUMN_PADDING;
}

uint64_t tq_gemm_store_bytes(size_t channels)
{
    return (uint64_t)columns_of(channels) * (sizeof(tq_multiplier) + 3 * sizeof(float) + 5 * sizeof(int32_t));
}

void tq_gemm_store_make(tq_gemm_store *store, size_t channels, tq_real_fn real, const void *context, void *memory)
{
    const size_t n = columns_of(channels);
    tq_multiplier *multiplier = memory;
    float *slope = (float *)(void *)(multiplier + n), *offset = slope + n, *negative = offset + n;
    int32_t *fixed = (int32_t *)(void *)(negative + n), *left = fixed + n, *right = left + n;
    int32_t *reduced = right + n, *total = reduced + n;
    memset(memory, 0, (size_t)tq_gemm_store_bytes(channels));
    store->exact = false;
    for (size_t c = channels; c < n; c++) { /* lanes past the last channel must not look like ties */
        offset[c] = negative[c] = 32768;
        total[c] = 15;
    }
    for (size_t c = 0; c < channels; c++) {
        const tq_requantize_rule rule = c + store->tail < channels ? store->rule : TQ_REQUANTIZE_DOUBLE;
        const tq_multiplier m = tq_multiplier_of(real(context, c), rule);
        multiplier[c] = m;
        fixed[c] = m.fixed;
        left[c] = m.shift > 0 ? m.shift : 0;
        right[c] = m.shift < 0 ? -m.shift : 0;
        tq_reduce_multiplier(m.fixed, m.shift, &reduced[c], &total[c]);
        if (rule == TQ_REQUANTIZE_FLOAT32_EVEN)
            slope[c] = m.f32;
        else if (!tq_fixed_point_of(&multiplier[c], rule, store->out, store->zero_point, &slope[c], &offset[c],
                                    &negative[c]))
            store->exact = true;
    }
    store->multiplier = multiplier;
    store->slope = slope, store->offset = offset, store->offset_negative = negative;
    store->fixed = fixed, store->left = left, store->right = right, store->reduced = reduced, store->total = total;
}

/* ---- running ---- */

static uint8_t flip_of(const tq_gemm *g)
{
    return g->in == TQ_u8 ? g->kernel->flip_u8 : g->kernel->flip_i8;
}

struct run {
    const tq_gemm *gemm;
    const tq_gemm_rows *rows;
    const tq_gemm_store *store;
    char *out;
    size_t out_stride, out_size;
    char *scratch;
    size_t job_bytes, block; /* of scratch a job; rows a block */
    size_t row_parts, panel_parts;
    size_t line;       /* taps of a line of the filter, which may be neighbours; else 1 */
    const char *limit; /* the end of the rows' memory */
    bool plain;
};

/* What a job has in its share of scratch. */
struct space {
    const void **table; /* [runs, or taps where rows are copied][block] */
    int32_t *adjust;    /* [block] */
    char *copies;       /* [block][copied row] */
};

static size_t copied_row_bytes(const tq_gemm *g)
{
    return g->copies ? tq_round_up(g->length, g->kernel->group) * g->kernel->row_bytes : 0;
}

static size_t block_rows(const tq_gemm *g)
{
    size_t row = copied_row_bytes(g) + g->taps * sizeof(void *) + sizeof(int32_t);
    size_t rows = tq_min_size(BLOCK_BYTES / row, BLOCK_ROWS) / g->kernel->rows * g->kernel->rows;
    return rows ? rows : g->kernel->rows;
}

static uint64_t job_bytes(const tq_gemm *g)
{
    size_t block = block_rows(g);
    return tq_round_up((g->copies ? g->taps + 1 : g->runs) * block * sizeof(void *), ALIGN) +
           tq_round_up(block * sizeof(int32_t), ALIGN) + tq_round_up(block * copied_row_bytes(g) + SLACK, ALIGN);
}

uint64_t tq_gemm_scratch_bytes(const tq_gemm *gemm, size_t rows, int threads)
{
    (void)rows;
    return job_bytes(gemm) * (uint64_t)threads;
}

/* n bytes, of which a whole number of sixteens may be read and written, but not past limit. */
static inline void copy_bytes(char *to, const char *from, size_t n, const char *limit)
{
    if (n > 64) {
        memcpy(to, from, n);
        return;
    }
    for (; n > 16; n -= 16, to += 16, from += 16)
        memcpy(to, from, 16);
    if ((uintptr_t)from + 16 <= (uintptr_t)limit)
        memcpy(to, from, 16);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
}

/* n elements in the kernel's form; returns where the next ones go. */
static inline char *copy_elements(const struct run *run, char *to, const char *from, size_t n, const char *limit)
{
    const tq_gemm *g = run->gemm;
    const size_t size = g->in_bytes;
    if (size == g->kernel->row_bytes)
        copy_bytes(to, from, n * size, limit);
    else if (g->in == TQ_i8)
        g->kernel->copy_i8((const int8_t *)from, (int16_t *)(void *)to, n, g->copied_zero_point);
    else
        g->kernel->copy_u8((const uint8_t *)from, (int16_t *)(void *)to, n, g->copied_zero_point);
    return to + n * g->kernel->row_bytes;
}

/* Whether the taps of a line of the filter, table[i * step], are neighbours: the first and the last are inside the image
   and lie as far apart as neighbours do. */
static inline bool is_line(const void *const *table, size_t last, size_t step, size_t bytes, const void *padding)
{
    const char *from = table[0], *to = table[last * step];
    return to == from + last * bytes && from != padding && to != padding;
}

/* A line of the filter; returns where the next one goes. */
static char *copy_line(const struct run *run, const void *const *table, size_t step, char *to)
{
    const tq_gemm *g = run->gemm;
    const size_t bytes = g->depth * g->in_bytes;
    const char *pad_limit = (const char *)g->padding + bytes + SLACK;
    if (is_line(table, run->line - 1, step, bytes, g->padding))
        return copy_elements(run, to, table[0], run->line * g->depth, run->limit);
    for (size_t i = 0; i < run->line; i++) {
        const char *from = table[i * step];
        to = copy_elements(run, to, from, g->depth, from == g->padding ? pad_limit : run->limit);
    }
    return to;
}

/* Rows whose lines are short and copied as they are: what is the same for all stays in registers. */
static void copy_short_lines(const struct run *run, const void *const *table, size_t step, size_t count, char *to,
                             size_t row_bytes)
{
    const tq_gemm *g = run->gemm;
    const void *const padding = g->padding;
    const size_t line = run->line, bytes = g->depth * g->in_bytes, lines = g->taps / line, line_bytes = line * bytes;
    const size_t whole = tq_round_up(line_bytes, 16);
    const uintptr_t safe = (uintptr_t)run->limit - whole; /* the last place from which so much may be read */
    for (size_t i = 0; i < count; i++, to += row_bytes)
        for (size_t n = 0; n < lines; n++) {
            const void *const *taps = table + n * line * step + i;
            char *at = to + n * line_bytes;
            const char *from = taps[0];
            if (is_line(taps, line - 1, step, bytes, padding) && (uintptr_t)from <= safe)
                for (size_t k = 0; k < whole; k += 16)
                    memcpy(at + k, from + k, 16);
            else
                copy_line(run, taps, step, at);
        }
}

/* `count` rows of the block, whose taps are table[t * step + i]. */
static void copy_rows(const struct run *run, const void *const *table, size_t step, size_t count, char *to,
                      size_t row_bytes)
{
    const tq_gemm *g = run->gemm;
    if (g->in_bytes == g->kernel->row_bytes && run->line * g->depth * g->in_bytes <= SLACK) {
        copy_short_lines(run, table, step, count, to, row_bytes);
        return;
    }
    for (size_t i = 0; i < count; i++, to += row_bytes) {
        char *at = to;
        for (size_t t = 0; t < g->taps; t += run->line)
            at = copy_line(run, table + t * step + i, step, at);
    }
}

static void place_rows(const struct run *run, const struct space *space, size_t first, size_t count)
{
    const tq_gemm *g = run->gemm;
    const size_t stride = run->rows->stride * g->in_bytes, block = run->block;
    const char *data = run->rows->data;
    const void **taps = space->table + (g->copies ? block : 0);
    if (run->plain)
        for (size_t i = 0; i < count; i++)
            taps[i] = data + (first + i) * stride;
    else
        tq_scan_pixels(run->rows->scan, data, stride, first, count, g->padding, taps, block);
    if (!g->copies)
        return;
    const size_t row = copied_row_bytes(g);
    copy_rows(run, taps, block, count, space->copies, row);
    for (size_t i = 0; i < count; i++)
        space->table[i] = space->copies + i * row;
}

/* What weights' zero points add to a row's sums: row_factor * sum of (element - row zero point). */
static void find_adjust(const struct run *run, const struct space *space, size_t count)
{
    const tq_gemm *g = run->gemm;
    const uint8_t flip = flip_of(g);
    const int64_t zeros = (int64_t)(g->runs * g->length) * g->row_zero_point;
    if (!g->row_factor) {
        memset(space->adjust, 0, count * sizeof *space->adjust);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t sum = -zeros;
        for (size_t t = 0; t < g->runs; t++)
            sum += g->kernel->row_sum(space->table[t * run->block + i], g->length, flip);
        space->adjust[i] = (int32_t)(uint32_t)((uint64_t)sum * (uint64_t)(int64_t)g->row_factor);
    }
}

/* ---- tiles ---- */

/* For weights that are not finite, in padding's way: 0 times such a weight is NaN, where nothing is meant. */
static void skip_padding(const struct run *run, const struct space *space, size_t first, size_t count)
{
    const tq_gemm *g = run->gemm;
    const size_t lanes = g->lanes;
    const void **taps = space->table + (g->copies ? run->block : 0);
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < g->channels; c++) {
            const float *w = (const float *)(const void *)((const char *)g->panel + c / lanes * g->panel_bytes) + c % lanes;
            float sum = 0;
            for (size_t t = 0; t < g->taps; t++) {
                const float *x = taps[t * run->block + i];
                for (size_t k = 0; x != g->padding && k < g->depth; k++)
                    sum += x[k] * w[(t * g->depth + k) * lanes];
            }
            sum += ((const float *)g->bias)[c];
            sum = sum < run->store->floor ? run->store->floor : sum;
            ((float *)(void *)run->out)[(first + i) * run->out_stride + c] =
                sum > run->store->ceiling ? run->store->ceiling : sum;
        }
}

/* ---- few channels ---- */

enum { NARROW_ROWS = 16 };

static inline float add_up(const float *x, const float *weights, size_t n, size_t step)
{
    float sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += x[k] * weights[k * step];
    return sum;
}

/* NARROW_ROWS rows with one element each, which lie side by side: a vector. */
static inline void sum_single(const float *const *row, const float *weights, float sum[NARROW_ROWS])
{
    const float *x = row[0];
    for (size_t i = 0; i < NARROW_ROWS; i++)
        sum[i] = 0 + x[i] * weights[0];
}

/* The same for longer rows: side by side, since the additions of a row wait for each other. */
static inline void sum_rows(const float *const *row, const float *weights, size_t n, size_t step, float sum[NARROW_ROWS])
{
    for (size_t i = 0; i < NARROW_ROWS; i += 8) {
        float s[8] = {0};
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < 8; j++)
                s[j] += row[i + j][k] * weights[k * step];
        memcpy(sum + i, s, sizeof s);
    }
}

/* Fused sums, which begin with the bias; eight rows side by side. */
TQ_BODY void sum_fused(const float *const *row, size_t count, const float *weights, size_t n, size_t step, float bias,
                       float *sum)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        float s[8];
        for (size_t j = 0; j < 8; j++)
            s[j] = bias;
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < 8; j++)
                s[j] = fmaf(row[i + j][k], weights[k * step], s[j]);
        memcpy(sum + i, s, sizeof s);
    }
    for (; i < count; i++) {
        sum[i] = bias;
        for (size_t k = 0; k < n; k++)
            sum[i] = fmaf(row[i][k], weights[k * step], sum[i]);
    }
}

#define SUM_FUSED(isa, target)                                                                                       \
    target static void sum_fused_##isa(const float *const *row, size_t count, const float *weights, size_t n,        \
                                       size_t step, float bias, float *sum)                                          \
    {                                                                                                                \
        sum_fused(row, count, weights, n, step, bias, sum);                                                          \
    }
TQ_EVERY_ISA(SUM_FUSED)

typedef void (*sum_fused_fn)(const float *const *row, size_t count, const float *weights, size_t n, size_t step,
                             float bias, float *sum);

/* `count` rows, NARROW_ROWS at most, into rows from `first` on of the output. */
static void run_narrow_rows(const struct run *run, const float *const *row, size_t first, size_t count)
{
    const tq_gemm *g = run->gemm;
    const float low = run->store->floor, high = run->store->ceiling;
    const bool neighbours = g->depth == 1 && row[count - 1] == row[0] + (count - 1);
    static const sum_fused_fn fused[TQ_ISAS] = TQ_ISA_FUNCTIONS(sum_fused);
    for (size_t c = 0; c < g->channels; c++) {
        const float *weights = (const float *)g->panel + c, bias = ((const float *)g->bias)[c];
        float sum[NARROW_ROWS], *out = (float *)(void *)run->out + first * run->out_stride + c;
        if (g->fused)
            fused[tq_isa()](row, count, weights, g->depth, g->lanes, bias, sum);
        else if (count < NARROW_ROWS)
            for (size_t i = 0; i < count; i++)
                sum[i] = add_up(row[i], weights, g->depth, g->lanes);
        else if (neighbours)
            sum_single(row, weights, sum);
        else
            sum_rows(row, weights, g->depth, g->lanes, sum);
        for (size_t i = 0; i < count; i++) {
            float x = g->fused ? sum[i] : sum[i] + bias;
            x = x < low ? low : x;
            out[i * run->out_stride] = x > high ? high : x;
        }
    }
}

static void run_narrow(const struct run *run, const struct space *space, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i += NARROW_ROWS)
        run_narrow_rows(run, (const float *const *)(space->table + i), first + i, tq_min_size(NARROW_ROWS, count - i));
}

struct tile_place {
    size_t row, rows;     /* in the block */
    size_t panel, panels;
    size_t out_row;       /* in the product */
};

static void store_sums(const struct run *run, const int32_t *sums, const int32_t *adjust, const struct tile_place *at,
                       size_t n)
{
    const size_t stride = at->panels * run->gemm->kernel->lanes, first = at->panel * run->gemm->kernel->lanes;
    for (size_t r = 0; r < at->rows; r++) {
        uint32_t *to = (uint32_t *)(void *)run->out + (at->out_row + r) * run->out_stride + first;
        const uint32_t *from = (const uint32_t *)sums + r * stride;
        for (size_t c = 0; c < n; c++)
            to[c] = from[c] + (uint32_t)adjust[r];
    }
}

static void store_tile(const struct run *run, const void *sums, const int32_t *adjust, const struct tile_place *at)
{
    const tq_gemm *g = run->gemm;
    const size_t lanes = g->kernel->lanes, first = at->panel * lanes;
    const size_t n = tq_min_size(at->panels * lanes, g->channels - first);
    if (run->store->out == TQ_i32) {
        store_sums(run, sums, adjust, at, n);
        return;
    }
    tq_tile_store store = {
        .store = run->store,
        .sums = sums,
        .sums_stride = at->panels * lanes,
        .adjust = adjust,
        .rows = at->rows,
        .channels = n,
        .first = first,
        .out = run->out + (at->out_row * run->out_stride + first) * run->out_size,
        .out_stride = run->out_stride,
    };
    tq_store_fn_of(&g->kernel->stores, run->store->out, g->wide)(&store);
}

static void run_tile(const struct run *run, const struct space *space, const struct tile_place *at)
{
    const tq_gemm *g = run->gemm;
    const size_t lanes = g->kernel->lanes;
    const size_t first = at->panel * lanes, width = at->panels * lanes;
    _Alignas(ALIGN) float sums[TQ_TILE_ROWS * TQ_TILE_CHANNELS];
    const bool in_place = g->in == TQ_f32 && first + width <= g->channels;
    tq_tile tile = {
        .row = space->table + at->row,
        .step = run->block,
        .runs = g->runs,
        .length = g->length,
        .panel = (const char *)g->panel + at->panel * g->panel_bytes,
        .panel_bytes = g->panel_bytes,
        .bias = (const char *)g->bias + at->panel * lanes * 4,
        .flip = flip_of(g),
        .sums = in_place ? run->out + (at->out_row * run->out_stride + first) * sizeof(float) : (char *)sums,
        .sums_stride = (in_place ? run->out_stride : width) * 4,
        .floor = run->store->floor,
        .ceiling = run->store->ceiling,
    };
    g->kernel->tile(at->rows, at->panels)(&tile);
    if (!in_place)
        store_tile(run, sums, space->adjust + at->row, at);
}

/* As run_tile, with the rows cut into pieces whose sums fit 32 bits. */
static void run_wide_tile(const struct run *run, const struct space *space, const struct tile_place *at)
{
    static const int32_t zeros[TQ_TILE_CHANNELS];
    const tq_gemm *g = run->gemm;
    const size_t lanes = g->kernel->lanes, width = at->panels * lanes;
    _Alignas(ALIGN) int32_t part[TQ_TILE_ROWS * TQ_TILE_CHANNELS];
    uint64_t sums[TQ_TILE_ROWS * TQ_TILE_CHANNELS];
    const void *row[TQ_TILE_ROWS];
    for (size_t r = 0; r < at->rows; r++)
        memcpy(sums + r * width, (const uint64_t *)g->bias + at->panel * lanes, width * sizeof *sums);
    for (size_t k = 0; k < g->length; k += WIDE_LENGTH) {
        for (size_t r = 0; r < at->rows; r++)
            row[r] = (const int16_t *)space->table[at->row + r] + k;
        tq_tile tile = {
            .row = row,
            .step = TQ_TILE_ROWS,
            .runs = 1,
            .length = tq_min_size(WIDE_LENGTH, g->length - k),
            .panel = (const char *)g->panel + at->panel * g->panel_bytes + k * lanes,
            .panel_bytes = g->panel_bytes,
            .bias = zeros,
            .sums = part,
            .sums_stride = width * 4,
        };
        g->kernel->tile(at->rows, at->panels)(&tile);
        for (size_t i = 0; i < at->rows * width; i++)
            sums[i] += (uint64_t)(int64_t)part[i];
    }
    store_tile(run, sums, space->adjust + at->row, at);
}

/* The largest of equal parts, none above `most`. */
static size_t fair_share(size_t count, size_t most)
{
    size_t parts = count / most + (count % most != 0);
    return parts ? count / parts + (count % parts != 0) : 1;
}

static void run_block(const struct run *run, const struct space *space, size_t first, size_t count, size_t panel,
                      size_t panel_end)
{
    const tq_gemm_kernel *k = run->gemm->kernel;
    const size_t panels = fair_share(panel_end - panel, count == 1 ? k->wide_panels : k->panels);
    const size_t rows = fair_share(count, k->rows);
    struct tile_place at;
    for (at.panel = panel; at.panel < panel_end; at.panel += at.panels) {
        at.panels = tq_min_size(panels, panel_end - at.panel);
        for (at.row = 0; at.row < count; at.row += at.rows) {
            at.rows = tq_min_size(rows, count - at.row);
            at.out_row = first + at.row;
            (run->gemm->wide ? run_wide_tile : run_tile)(run, space, &at);
        }
    }
}

static void run_job(const struct run *run, size_t job)
{
    const tq_gemm *g = run->gemm;
    char *at = run->scratch + job * run->job_bytes;
    struct space space = {.table = (const void **)(void *)at};
    at += tq_round_up((g->copies ? g->taps + 1 : g->runs) * run->block * sizeof(void *), ALIGN);
    space.adjust = (int32_t *)(void *)at;
    space.copies = at + tq_round_up(run->block * sizeof(int32_t), ALIGN);

    const size_t row_part = job / run->panel_parts, panel_part = job % run->panel_parts;
    const size_t each = tq_round_up(run->rows->count / run->row_parts + 1, g->kernel->rows);
    const size_t end = tq_min_size(run->rows->count, (row_part + 1) * each);
    const size_t panel = g->panels * panel_part / run->panel_parts;
    const size_t panel_end = g->panels * (panel_part + 1) / run->panel_parts;
    if (panel == panel_end)
        return;
    for (size_t first = row_part * each; first < end; first += run->block) {
        size_t count = tq_min_size(run->block, end - first);
        place_rows(run, &space, first, count);
        if (g->strange && !run->plain) {
            skip_padding(run, &space, first, count);
            continue;
        }
        if (g->narrow) {
            run_narrow(run, &space, first, count);
            continue;
        }
        if (g->in != TQ_f32)
            find_adjust(run, &space, count);
        run_block(run, &space, first, count, panel, panel_end);
    }
}

static void run_jobs(void *context, size_t begin, size_t end)
{
    for (size_t job = begin; job < end; job++)
        run_job(context, job);
}

void tq_gemm_run(const tq_gemm *gemm, const tq_gemm_rows *rows, const tq_gemm_store *store, void *out,
                 size_t out_stride, void *scratch, int threads)
{
    if (!rows->count || !gemm->channels)
        return;
    const size_t size = gemm->in_bytes;
    struct run run = {
        .gemm = gemm,
        .rows = rows,
        .store = store,
        .out = out,
        .out_stride = out_stride,
        .out_size = tq_element_size(store->out),
        .scratch = scratch,
        .job_bytes = (size_t)job_bytes(gemm),
        .block = block_rows(gemm),
        .line = rows->scan && !rows->scan->columns_first ? (size_t)rows->scan->filter_w : 1,
        .plain = !rows->scan || tq_scan_is_plain(rows->scan),
    };
    const tq_scan *w = rows->scan;
    size_t pixels = rows->count;
    if (!run.plain)
        pixels = pixels / ((size_t)w->out_h * (size_t)w->out_w) * (size_t)w->in_h * (size_t)w->in_w;
    run.limit = (const char *)rows->data + ((pixels - 1) * rows->stride + gemm->depth) * size;

    const double work = (double)rows->count * (double)gemm->channels * (double)(gemm->taps * gemm->depth);
    size_t jobs = (size_t)(threads < 1 ? 1 : threads);
    jobs = work / WORK_A_THREAD < (double)jobs ? (size_t)(work / WORK_A_THREAD) : jobs;
    jobs = jobs ? jobs : 1;
    size_t tiles = rows->count / gemm->kernel->rows + (rows->count % gemm->kernel->rows != 0);
    run.row_parts = tq_min_size(jobs, tiles);
    run.panel_parts = tq_min_size(jobs / run.row_parts, gemm->panels);
    jobs = run.row_parts * run.panel_parts;
    tq_parallel_for(jobs, 1, (int)jobs, run_jobs, &run);
}

/* ---- bodies ---- */

static const struct {
    const tq_gemm_kernel *kernel;
    const char *name;
    uint8_t operation, feature;
} products[] = {
#define PRODUCT(operation, isa) {&tq_##operation##__##isa, #operation, TQ_PRODUCT_##operation, feature_##isa},
#include "kernels/gemm.def"
};

const tq_gemm_kernel *tq_product_find(tq_product_operation operation, bool *scalar)
{
    const uint32_t usable = tq_kernels_usable();
    const tq_gemm_kernel *found = NULL;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (products[i].operation == operation && usable >> products[i].feature & 1) {
            found = products[i].kernel;
            *scalar = products[i].feature == TQ_CPU_INDEX_SCALAR;
        }
    return found;
}

bool tq_gemm_variant(size_t i, tq_variant *row)
{
    if (i >= sizeof products / sizeof *products)
        return false;
    bool scalar;
    const tq_gemm_kernel *kernel = products[i].kernel;
    *row = (tq_variant){products[i].name, kernel->isa, tq_kernels_features() >> products[i].feature & 1,
                        tq_product_find(products[i].operation, &scalar) == kernel};
    return true;
}
