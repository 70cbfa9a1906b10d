/* SPDX-License-Identifier: Apache-2.0
 *
 * Prepare: whether a convolution is planned, and its transformed weights.
 */
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "base/stop.h"
#include "kernels/features.h"
#include "kernels/gemm/gemm_parts.h"
#include "kernels/winograd/winograd_parts.h"

/* ---- the plan ---- */

#define LIMIT (1 << 25) /* of |output - bias| */
/* Bytes of packed weights, which are eight times those of the file: more would be read from memory at each run. */
#define MOST_BYTES (8 << 20)

/* The last row that is usable is chosen; NULL: there is none.  fewer, tiles, depth: a convolution gains, where it has
   so many times fewer products, so many tiles an image, and so many input channels. */
static const struct body_row {
    const tq_winograd_body *body;
    const char *isa;
    uint8_t feature, fewer, tiles, depth;
} bodies[] = {
#if TQ_X86
    {&tq_winograd__avx2, "avx2", tq_feature_avx2, 2, 1, 16},
#if TQ_X86_AVXVNNI
    {&tq_winograd__avxvnni, "avxvnni", tq_feature_avxvnni, 3, 4, 16},
#endif
    {&tq_winograd__avx512, "avx512", tq_feature_avx512, 2, 1, 16},
    {&tq_winograd__avx512vnni, "avx512vnni", tq_feature_avx512vnni, 3, 4, 32},
#else
    {NULL, "scalar", tq_feature_scalar, 0, 0, 0},
#endif
};

static const struct body_row *find_body(void)
{
    static const struct body_row none;
    const struct body_row *found = &none;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (tq_kernels_usable() >> bodies[i].feature & 1)
            found = &bodies[i];
    return found;
}

bool tq_winograd_variant(size_t i, tq_variant *row)
{
    if (i >= sizeof bodies / sizeof *bodies || !bodies[i].body)
        return false;
    *row = (tq_variant){"winograd_i8", bodies[i].isa, tq_kernels_features() >> bodies[i].feature & 1,
                        find_body() == &bodies[i]};
    return true;
}

static bool gains(const struct body_row *row, const tq_winograd *w, const tq_scan *s)
{
    const bool form = s->filter_h == 3 && s->filter_w == 3 && s->stride_h == 1 && s->stride_w == 1 &&
                      s->dilation_h == 1 && s->dilation_w == 1;
    const uint64_t pixels = (uint64_t)s->out_h * (uint64_t)s->out_w;
    const uint64_t tiles = (uint64_t)tq_winograd_tiles(s->out_h) * tq_winograd_tiles(s->out_w);
    return form && w->depth % TQ_WINOGRAD_DEPTH == 0 && w->depth >= row->depth && tiles >= row->tiles &&
           row->fewer * tiles * TQ_WINOGRAD_POINTS * w->panels * w->lanes <= 9 * pixels * w->channels;
}

/* Offsets in the packed memory, behind the weights; bytes. */
struct offsets {
    uint64_t bias, padding, end;
};

static struct offsets offsets_of(const tq_winograd *w)
{
    struct offsets at;
    at.bias = (uint64_t)w->panels * TQ_WINOGRAD_POINTS * w->lanes * w->depth * sizeof(int16_t);
    at.padding = at.bias + (uint64_t)w->panels * w->lanes * sizeof(int32_t);
    at.end = at.padding + tq_gemm_part(w->depth);
    return at;
}

bool tq_winograd_plan(tq_winograd *winograd, const tq_gemm *gemm, const tq_scan *scan, const tq_gemm_weights *weights)
{
    const struct body_row *row = find_body();
    const size_t lanes = row->body ? row->body->lanes : 1;
    tq_winograd w = {
        .body = row->body,
        .stores = gemm->kernel->stores,
        .channels = gemm->channels,
        .depth = gemm->depth,
        .lanes = lanes,
        .panels = gemm->channels / lanes + (gemm->channels % lanes != 0),
        .flip = gemm->in == TQ_u8 ? 0x80 : 0,
        .zero_point = weights->row_zero_point - (gemm->in == TQ_u8 ? 128 : 0),
    };
    w.packed_bytes = offsets_of(&w).end;
    if (gemm->in_bytes != 1 || !gains(row, &w, scan) || w.packed_bytes > MOST_BYTES || weights->k_stride != 1)
        w.body = NULL;
    *winograd = w;
    return w.body != NULL;
}

/* ---- weights ---- */

/* Weights less their zero point. */
typedef struct reader {
    const uint8_t *data;
    size_t channel_stride;
    uint8_t flip;
    int16_t add;
} reader;

static reader reader_of(const tq_gemm_weights *w)
{
    const bool u8 = w->type == TQ_u8;
    return (reader){w->data, w->channel_stride, u8 ? 0x80 : w->flip, (int16_t)((u8 ? 128 : 0) - w->zero_point)};
}

/* The weights [at, at + n) of a channel. */
static inline void read_weights(const reader *from, size_t channel, size_t at, size_t n, int16_t *restrict to)
{
    const uint8_t *bytes = from->data + channel * from->channel_stride + at, flip = from->flip;
    const int16_t add = from->add;
    for (size_t i = 0; i < n; i++)
        to[i] = (int16_t)((int8_t)(bytes[i] ^ flip) + add);
}

/* Whether |output - bias| < LIMIT for all values of the rows, which lie `most` above and `least` below their zero point
   at most.  MOST_BYTES bounds the sums far below 2^31. */
static bool is_exact(const tq_winograd *winograd, const reader *from)
{
    const uint64_t least = (uint64_t)(winograd->zero_point + 128), most = 255 - least;
    for (size_t c = 0; c < winograd->channels; c++) {
        int32_t sum = 0, magnitudes = 0;
        for (size_t k = 0; k < 9 * winograd->depth; k += TQ_WINOGRAD_DEPTH) {
            int16_t weights[TQ_WINOGRAD_DEPTH];
            read_weights(from, c, k, TQ_WINOGRAD_DEPTH, weights);
            for (size_t i = 0; i < TQ_WINOGRAD_DEPTH; i++)
                sum += weights[i], magnitudes += abs(weights[i]);
        }
        const uint64_t positive = (uint64_t)(magnitudes + sum) / 2, negative = (uint64_t)(magnitudes - sum) / 2;
        if (positive * most + negative * least >= LIMIT || negative * most + positive * least >= LIMIT)
            return false;
    }
    return true;
}

/* Of a panel: the weights of two input channels for all channels, side by side. */
enum { PAIRS = 2 * TQ_WINOGRAD_LANES };

/* y = G x for each of `pairs` columns, vector by vector; rows of x are `from` apart, of y `to`. */
static void transform_lines(const int16_t *x, size_t from, int16_t *y, size_t to, size_t pairs)
{
    enum { SIDE = 8 };
    for (size_t at = 0; at < pairs; at += SIDE, x += SIDE, y += SIDE) {
        int16_t lines[6][SIDE];
        for (size_t i = 0; i < SIDE; i++) {
            const int first = x[i], middle = x[from + i], last = x[2 * from + i];
            const int sum = first + last, far = first + 4 * last;
            lines[0][i] = (int16_t)(3 * first);
            lines[1][i] = (int16_t)(-sum - middle);
            lines[2][i] = (int16_t)(middle - sum);
            lines[3][i] = (int16_t)(far + 2 * middle);
            lines[4][i] = (int16_t)(far - 2 * middle);
            lines[5][i] = (int16_t)(3 * last);
        }
        for (size_t l = 0; l < 6; l++)
            memcpy(y + l * to, lines[l], sizeof lines[l]);
    }
}

/* The weights of a panel for TQ_WINOGRAD_DEPTH input channels: [tap][channel][input channel]. */
typedef int16_t filters_t[9][TQ_WINOGRAD_LANES][TQ_WINOGRAD_DEPTH];

/* Those of input channels k and k + 1 and n channels: to[point * step][lanes][2]. */
static void pack_pairs(const tq_winograd *w, const filters_t *all, size_t n, size_t k, int16_t *to)
{
    const size_t step = w->depth * w->lanes;
    int16_t filters[9 * PAIRS] = {0}, columns[6 * 3 * PAIRS];
    for (size_t t = 0; t < 9; t++)
        for (size_t c = 0; c < n; c++)
            memcpy(filters + t * PAIRS + 2 * c, (*all)[t][c] + k, 2 * sizeof *filters);
    for (size_t j = 0; j < 3; j++)
        transform_lines(filters + j * PAIRS, 3 * PAIRS, columns + j * PAIRS, 3 * PAIRS, 2 * w->lanes);
    for (size_t i = 0; i < 6; i++)
        transform_lines(columns + i * 3 * PAIRS, PAIRS, to + i * 6 * step, step, 2 * w->lanes);
}

static void pack_panel(const tq_winograd *w, const reader *from, size_t first, size_t n, int16_t *to)
{
    filters_t filters;
    for (size_t k = 0; k < w->depth && !tq_stop_after(n * TQ_WINOGRAD_POINTS * TQ_WINOGRAD_DEPTH / 2);
         k += TQ_WINOGRAD_DEPTH) {
        for (size_t t = 0; t < 9; t++)
            for (size_t c = 0; c < n; c++)
                read_weights(from, first + c, t * w->depth + k, TQ_WINOGRAD_DEPTH, filters[t][c]);
        for (size_t i = 0; i < TQ_WINOGRAD_DEPTH; i += 2)
            pack_pairs(w, (const filters_t *)&filters, n, i, to + (k + i) * w->lanes);
    }
}

bool tq_winograd_pack(tq_winograd *winograd, const tq_gemm_weights *weights, void *memory)
{
    const struct offsets at = offsets_of(winograd);
    const size_t lanes = winograd->lanes;
    const size_t panel = TQ_WINOGRAD_POINTS * lanes * winograd->depth;
    int16_t *to = memory;
    int32_t *bias = (int32_t *)(void *)((char *)memory + at.bias);
    const reader from = reader_of(weights);
    if (!is_exact(winograd, &from))
        return false;
    for (size_t p = 0; p < winograd->panels; p++, to += panel) {
        const size_t first = p * lanes;
        pack_panel(winograd, &from, first, tq_min_size(lanes, winograd->channels - first), to);
    }
    memset(bias, 0, winograd->panels * lanes * sizeof *bias);
    if (weights->bias)
        memcpy(bias, weights->bias, winograd->channels * sizeof *bias);
    memset((char *)memory + at.padding, (uint8_t)weights->row_zero_point, winograd->depth);
    winograd->weights = memory, winograd->bias = bias, winograd->padding = (char *)memory + at.padding;
    return true;
}
