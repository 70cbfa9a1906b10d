/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights packed into panels (products.h), with their biases, sums and padding.
 *
 * The rows' zero point is folded into the biases: bias - row zero point * sum of the channel's weights.
 */
#include <string.h>

#include "base/sizes.h"
#include "base/stop.h"
#include "kernels/isa.h"
#include "kernels/gemm/gemm_parts.h"

#if TQ_X86
#include <immintrin.h>
#endif

/* ---- memory ---- */

/* Offsets in the packed memory, behind the panels; bytes. */
struct offsets {
    uint64_t bias, sums, padding, end;
};

static struct offsets offsets_of(const tq_gemm *g)
{
    struct offsets at;
    at.bias = g->in_place ? 0 : tq_gemm_part((uint64_t)g->panel_bytes * (g->panels + tq_gemm_has_ones(g)));
    at.sums = at.bias + tq_gemm_part((uint64_t)g->panels * g->lanes * (g->wide ? 8 : 4));
    at.padding = at.sums + tq_gemm_part((uint64_t)g->channels * sizeof(int32_t));
    at.end = at.padding + tq_gemm_part((uint64_t)tq_gemm_padding_elements(g) * g->in_bytes + TQ_GEMM_SLACK);
    return at;
}

uint64_t tq_gemm_packed_bytes(const tq_gemm *gemm)
{
    return offsets_of(gemm).end;
}

/* ---- weights ---- */

static uint8_t flip_of(const tq_gemm_weights *w)
{
    return w->type == TQ_u8 ? 0x80 : w->flip;
}

enum { BLOCK = 4 };

/* Words of four bytes: word c of row k of `to` is word k of row c of `from`, its bits flipped by `flip`, for c, k <
   BLOCK.  Rows lie from_stride and to_stride bytes apart.  Words of pairs are split: of row k, the first two bytes go
   to row 2k, the others to the row behind it. */
static inline void transpose_block(const char *from, size_t from_stride, char *to, size_t to_stride, uint32_t flip,
                                   bool pairs)
{
#if TQ_X86
    const __m128 flips = _mm_castsi128_ps(_mm_set1_epi32((int32_t)flip));
    __m128 rows[BLOCK];
    for (size_t c = 0; c < BLOCK; c++)
        rows[c] = _mm_xor_ps(_mm_loadu_ps((const float *)(const void *)(from + c * from_stride)), flips);
    _MM_TRANSPOSE4_PS(rows[0], rows[1], rows[2], rows[3]);
    for (size_t k = 0; k < BLOCK; k++) {
        if (!pairs) {
            _mm_storeu_ps((float *)(void *)(to + k * to_stride), rows[k]);
            continue;
        }
        enum { SPLIT = 0 | 2 << 2 | 1 << 4 | 3 << 6 };
        const __m128i row = _mm_castps_si128(rows[k]);
        const __m128i split = _mm_shuffle_epi32(_mm_shufflehi_epi16(_mm_shufflelo_epi16(row, SPLIT), SPLIT), SPLIT);
        _mm_storel_epi64((__m128i *)(void *)(to + 2 * k * to_stride), split);
        _mm_storel_epi64((__m128i *)(void *)(to + (2 * k + 1) * to_stride), _mm_unpackhi_epi64(split, split));
    }
#else
    for (size_t k = 0; k < BLOCK; k++)
        for (size_t c = 0; c < BLOCK; c++) {
            uint32_t word;
            memcpy(&word, from + c * from_stride + 4 * k, sizeof word);
            word ^= flip;
            const char *bytes = (const char *)&word;
            if (!pairs) {
                memcpy(to + k * to_stride + 4 * c, bytes, 4);
                continue;
            }
            memcpy(to + 2 * k * to_stride + 2 * c, bytes, 2);
            memcpy(to + (2 * k + 1) * to_stride + 2 * c, bytes + 2, 2);
        }
#endif
}

/* Word i of four bytes: byte i of each of four rows that lie `stride` bytes apart. */
static inline uint32_t word_of(const uint8_t *from, size_t stride, size_t i)
{
    return from[i] | (uint32_t)from[stride + i] << 8 | (uint32_t)from[2 * stride + i] << 16 |
           (uint32_t)from[3 * stride + i] << 24;
}

/* to: n such words, their bits flipped by `flip`. */
#define INTERLEAVE(isa, target)                                                                                    \
    target static void interleave_##isa(const uint8_t *from, size_t stride, size_t n, uint32_t flip, uint32_t *to) \
    {                                                                                                              \
        for (size_t i = 0; i < n; i++)                                                                             \
            to[i] = word_of(from, stride, i) ^ flip;                                                               \
    }
TQ_EVERY_ISA(INTERLEAVE)

/* to: byte i of each of two rows that lie `stride` bytes apart, their bits flipped by `flip`. */
static inline void interleave_pairs(const uint8_t *from, size_t stride, size_t n, uint8_t flip, char *to)
{
    size_t i = 0;
#if TQ_X86
    const __m128i flips = _mm_set1_epi8((char)flip);
    for (; i + 8 <= n; i += 8) {
        const __m128i first = _mm_loadl_epi64((const __m128i *)(const void *)(from + i));
        const __m128i second = _mm_loadl_epi64((const __m128i *)(const void *)(from + stride + i));
        _mm_storeu_si128((__m128i *)(void *)(to + 2 * i), _mm_xor_si128(_mm_unpacklo_epi8(first, second), flips));
    }
#endif
    for (; i < n; i++) {
        to[2 * i] = (char)(from[i] ^ flip);
        to[2 * i + 1] = (char)(from[stride + i] ^ flip);
    }
}

enum { HALF = 8 }; /* channels of a half panel, and bytes of its groups */

/* to: bytes i of each of HALF rows that lie `stride` bytes apart, for i < HALF, their bits flipped by `flip`. */
static inline void transpose_bytes(const uint8_t *from, size_t stride, uint8_t flip, char *to)
{
#if TQ_X86
    const __m128i flips = _mm_set1_epi8((char)flip);
    __m128i rows[HALF], pairs[HALF / 2], fours[HALF / 2];
    for (size_t k = 0; k < HALF; k++)
        rows[k] = _mm_xor_si128(_mm_loadl_epi64((const __m128i *)(const void *)(from + k * stride)), flips);
    for (size_t k = 0; k < HALF / 2; k++)
        pairs[k] = _mm_unpacklo_epi8(rows[2 * k], rows[2 * k + 1]);
    for (size_t k = 0; k < HALF / 2; k += 2) {
        fours[k] = _mm_unpacklo_epi16(pairs[k], pairs[k + 1]);
        fours[k + 1] = _mm_unpackhi_epi16(pairs[k], pairs[k + 1]);
    }
    for (size_t c = 0; c < 2; c++) {
        _mm_storeu_si128((__m128i *)(void *)(to + 32 * c), _mm_unpacklo_epi32(fours[c], fours[c + 2]));
        _mm_storeu_si128((__m128i *)(void *)(to + 32 * c + 16), _mm_unpackhi_epi32(fours[c], fours[c + 2]));
    }
#else
    for (size_t c = 0; c < HALF; c++)
        for (size_t k = 0; k < HALF; k++)
            to[c * HALF + k] = (char)(from[k * stride + c] ^ flip);
#endif
}

/* Packs the whole groups of a run whose channels lie side by side, as the right matrix of a product has them: `from` is
   its first row.  Returns the weights of a channel that are packed. */
static size_t pack_columns(const tq_gemm *g, const tq_gemm_weights *w, const uint8_t *from, size_t n, char *panel,
                           size_t stride)
{
    static void (*const bodies[TQ_ISAS])(const uint8_t *, size_t, size_t, uint32_t, uint32_t *) =
        TQ_ISA_FUNCTIONS(interleave);
    const size_t group = g->kernel->group, whole = g->length - g->length % group;
    const uint32_t flip = flip_of(w) * 0x01010101u;
    size_t k = 0;
    if (group == 2)
        for (; k < whole && !tq_stop_after(n); k += group, panel += stride, from += group * w->k_stride)
            interleave_pairs(from, w->k_stride, n, flip_of(w), panel);
    if (group == HALF && n == HALF)
        for (; k < whole && !tq_stop_after(n); k += group, panel += stride, from += group * w->k_stride)
            transpose_bytes(from, w->k_stride, flip_of(w), panel);
    for (; k < whole && !tq_stop_after(n); k += 4, from += 4 * w->k_stride) {
        uint32_t *to = (uint32_t *)(void *)(panel + k / group * stride + k % group);
        if (group == 4)
            bodies[tq_isa()](from, w->k_stride, n, flip, to);
        else
            for (size_t i = 0; i < n; i++) /* half panels: few */
                to[i * group / 4] = word_of(from, w->k_stride, i) ^ flip;
    }
    return k;
}

/* Whether the kernel packs the weights. */
static bool has_packer(const tq_gemm *g, const tq_gemm_weights *w)
{
    return g->kernel->pack && w->k_stride == 1 && g->lanes == g->kernel->lanes;
}

/* pack_bytes by the kernel. */
static void pack_by_kernel(const tq_gemm *g, const tq_gemm_weights *w, size_t first, size_t n, char *panel,
                           size_t stride)
{
    const uint8_t *from = (const uint8_t *)w->data + first * w->channel_stride;
    const size_t groups = tq_divide_up(g->length, g->kernel->group);
    tq_panel_rows rows = {from, w->channel_stride, n, g->length, flip_of(w)};
    for (size_t run = 0; run < g->runs && !tq_stop_after(n * g->length / 16); run++) {
        g->kernel->pack(&rows, panel, stride);
        rows.from += g->length, panel += groups * stride;
    }
}

/* Packs channels [first, first + n) into a panel, whose groups lie `stride` bytes apart; the rest of it is zero
   already.  A cache line of each channel at a time: channels lie a page or more apart in the weights, and side by side
   in the panel. */
static void pack_bytes(const tq_gemm *g, const tq_gemm_weights *w, size_t first, size_t n, char *panel, size_t stride)
{
    enum { LINE = 64 };
    const size_t group = g->kernel->group;
    const uint8_t *from = (const uint8_t *)w->data + first * w->channel_stride;
    const uint8_t flip = flip_of(w);
    const size_t groups = (g->length + group - 1) / group; /* of a run */
    for (size_t run = 0; run < g->runs; run++, from += g->length * w->k_stride, panel += groups * stride) {
        const bool columns = group % 2 == 0 && w->channel_stride == 1 && w->k_stride != 1;
        const size_t packed = columns ? pack_columns(g, w, from, n, panel, stride) : 0;
        for (size_t line = packed; line < g->length && !tq_stop_after(n * LINE / 4); line += LINE) {
            const size_t some = tq_min_size(LINE, g->length - line);
            const bool words = group % 4 == 0 && w->k_stride == 1;
            const size_t block = w->k_stride == 1 && (group == 4 || group == 2) ? some / 16 * 16 : 0;
            const size_t blocks = n / BLOCK * BLOCK; /* these by transposition */
            for (size_t c = 0; c < blocks; c += BLOCK)
                for (size_t k = 0; k < block; k += 4 * BLOCK)
                    transpose_block((const char *)from + c * w->channel_stride + line + k, w->channel_stride,
                                    panel + (line + k) / group * stride + group * c, stride, flip * 0x01010101u,
                                    group == 2);
            for (size_t c = 0; c < n; c++) {
                size_t k = c < blocks ? block : 0;
                const uint8_t *weight = from + c * w->channel_stride + line * w->k_stride;
                char *to = panel + (line + k) / group * stride + c * group;
                if (words)
                    for (; k + group <= some; k += group, to += stride)
                        for (size_t i = 0; i < group; i += 4) {
                            uint32_t four;
                            memcpy(&four, weight + k + i, sizeof four);
                            four ^= flip * 0x01010101u;
                            memcpy(to + i, &four, sizeof four);
                        }
                for (; k < some; k += group, to += stride)
                    for (size_t i = 0; i < group && k + i < some; i++)
                        to[i] = (char)(weight[(k + i) * w->k_stride] ^ flip);
            }
        }
    }
}

/* As memcpy, whose call takes as long as a row of a panel. */
static inline void copy_floats(float *to, const float *from, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        memcpy(to + i, from + i, 8 * sizeof *to);
    for (; i < n; i++)
        to[i] = from[i];
}

static void pack_floats(const tq_gemm *g, const tq_gemm_weights *w, size_t first, size_t n, char *panel, size_t stride)
{
    enum { LINE = 16 };
    const size_t step = stride / sizeof(float),
                 all = g->runs * g->length; /* a group is one element: runs follow each other */
    const float *from = (const float *)w->data + first * w->channel_stride;
    float *to = (float *)(void *)panel;
    for (size_t line = 0; line < all && !tq_stop_after(n * LINE / 4); line += LINE) {
        const size_t some = tq_min_size(LINE, all - line);
        if (w->channel_stride == 1) { /* the right matrix of a product */
            for (size_t k = line; k < line + some; k++)
                copy_floats(to + k * step, from + k * w->k_stride, n);
            continue;
        }
        const size_t whole = w->k_stride == 1 && some == LINE ? n / BLOCK * BLOCK : 0;
        for (size_t c = 0; c < whole; c += BLOCK)
            for (size_t k = line; k < line + LINE; k += BLOCK)
                transpose_block((const char *)(from + c * w->channel_stride + k), w->channel_stride * sizeof *from,
                                (char *)(to + k * step + c), stride, 0, false);
        for (size_t c = whole; c < n; c++)
            for (size_t k = line; k < line + some; k++)
                to[k * step + c] = from[c * w->channel_stride + k * w->k_stride];
    }
}

/* The sign bit of the result is set where an exponent has all bits: of infinities and NaN. */
#define EXPONENTS(isa, target)                                            \
    target static uint32_t exponents_##isa(const float *values, size_t n) \
    {                                                                     \
        uint32_t any = 0;                                                 \
        for (size_t i = 0; i < n; i++) {                                  \
            uint32_t bits;                                                \
            memcpy(&bits, values + i, sizeof bits);                       \
            any |= (bits & 0x7F800000) + 0x00800000;                      \
        }                                                                 \
        return any;                                                       \
    }
TQ_EVERY_ISA(EXPONENTS)

static bool are_finite(const tq_gemm *g)
{
    static uint32_t (*const bodies[TQ_ISAS])(const float *, size_t) = TQ_ISA_FUNCTIONS(exponents);
    return !(bodies[tq_isa()](g->panel, g->panels * g->panel_bytes / sizeof(float)) >> 31);
}

/* ---- biases ---- */

static int32_t sum_of_channel(const tq_gemm *g, const tq_gemm_weights *w, size_t channel)
{
    const uint8_t *from = (const uint8_t *)w->data + channel * w->channel_stride;
    const uint8_t flip = flip_of(w);
    const size_t n = g->taps * g->depth;
    uint32_t sum = 0;
    if (g->kernel->flip_i8 && w->k_stride == 1) /* row_sum adds unsigned bytes, each 128 more */
        return (int32_t)((uint32_t)g->kernel->row_sum(from, n, flip ^ 0x80) - (uint32_t)n * 128);
    if (w->k_stride == 1) /* vectorized */
        for (size_t k = 0; k < n; k++)
            sum += (uint32_t)(int8_t)(from[k] ^ flip);
    else
        for (size_t k = 0; k < n; k++)
            sum += (uint32_t)(int8_t)(from[k * w->k_stride] ^ flip);
    return (int32_t)sum;
}

/* The sums of all channels that lie side by side, row by row. */
#define SUM_COLUMNS(isa, target)                                                                                  \
    target static void sum_columns_##isa(const uint8_t *from, size_t rows, size_t stride, uint8_t flip, size_t n, \
                                         int32_t *sums)                                                           \
    {                                                                                                             \
        memset(sums, 0, n * sizeof *sums);                                                                        \
        for (size_t k = 0; k < rows && !tq_stop_after(n / 8); k++, from += stride)                                \
            for (size_t c = 0; c < n; c++)                                                                        \
                sums[c] = (int32_t)((uint32_t)sums[c] + (uint32_t)(int8_t)(from[c] ^ flip));                      \
    }
TQ_EVERY_ISA(SUM_COLUMNS)

static void sum_channels(const tq_gemm *g, const tq_gemm_weights *w, int32_t *sums)
{
    static void (*const bodies[TQ_ISAS])(const uint8_t *, size_t, size_t, uint8_t, size_t, int32_t *) =
        TQ_ISA_FUNCTIONS(sum_columns);
    if (w->channel_stride == 1 && w->k_stride != 1) {
        bodies[tq_isa()](w->data, g->taps * g->depth, w->k_stride, flip_of(w), g->channels, sums);
        return;
    }
    for (size_t c = 0; c < g->channels && !tq_stop_after(g->taps * g->depth / 8); c++)
        sums[c] = sum_of_channel(g, w, c);
}

/* The same from the panels. */
static void sum_panels(const tq_gemm *g, int32_t *sums)
{
    const size_t groups = g->runs * tq_divide_up(g->length, g->kernel->group);
    for (size_t i = 0; i < g->panels && !tq_stop_after(groups); i++) {
        const size_t first = i * g->lanes;
        const tq_gemm_panel p = tq_gemm_panel_at(g, i);
        g->kernel->sum((const char *)g->panel + p.at, groups, p.group, tq_min_size(g->lanes, g->channels - first),
                       sums + first);
    }
}

static int64_t bias_of_channel(const tq_gemm_weights *w, size_t channel)
{
    if (!w->bias)
        return 0;
    return w->bias_type == TQ_GEMM_BIAS_I64 ? ((const int64_t *)w->bias)[channel] : ((const int32_t *)w->bias)[channel];
}

/* bias - row zero point * sum of weights; wraps, as all sums do. */
static void pack_bias(const tq_gemm *g, const tq_gemm_weights *w, void *bias)
{
    if (!g->wide && !w->bias) { /* vectorized */
        for (size_t c = 0; c < g->channels; c++)
            ((uint32_t *)bias)[c] = -(uint32_t)g->row_zero_point * (uint32_t)g->sums[c];
        return;
    }
    for (size_t c = 0; c < g->channels; c++) {
        uint64_t folded = (uint64_t)(int64_t)g->row_zero_point * (uint64_t)(int64_t)g->sums[c];
        uint64_t sum = (uint64_t)bias_of_channel(w, c) - folded;
        if (g->wide)
            ((uint64_t *)bias)[c] = sum;
        else
            ((uint32_t *)bias)[c] = (uint32_t)sum;
    }
}

/* ---- padding ---- */

static void fill_padding(const tq_gemm *g, int32_t zero_point, void *padding)
{
    const size_t size = g->in_bytes, count = tq_gemm_padding_elements(g);
    if (size == 1)
        memset(padding, (uint8_t)zero_point, count + TQ_GEMM_SLACK);
    else if (g->in == TQ_i16)
        for (size_t k = 0; k < count; k++)
            ((int16_t *)padding)[k] = (int16_t)zero_point;
    else
        memset(padding, 0, count * size + TQ_GEMM_SLACK);
}

uint64_t tq_gemm_padding_bytes(const tq_gemm *gemm)
{
    return (uint64_t)tq_gemm_padding_elements(gemm) + TQ_GEMM_SLACK;
}

tq_gemm tq_gemm_with_padding(const tq_gemm *gemm, int8_t value, void *memory)
{
    tq_gemm padded = *gemm;
    fill_padding(gemm, value, memory);
    padded.padding = memory;
    return padded;
}

/* ---- all of it ---- */

/* Panel i of those at `panels`. */
static void pack_panel(const tq_gemm *g, const tq_gemm_weights *weights, size_t i, char *panels)
{
    const size_t first = i * g->lanes, n = tq_min_size(g->lanes, g->channels - first);
    const tq_gemm_panel p = tq_gemm_panel_at(g, i);
    if (has_packer(g, weights))
        pack_by_kernel(g, weights, first, n, panels + p.at, p.group);
    else
        (g->in == TQ_f32 ? pack_floats : pack_bytes)(g, weights, first, n, panels + p.at, p.group);
}

void tq_gemm_pack(tq_gemm *gemm, const tq_gemm_weights *weights, void *memory)
{
    const tq_gemm_kernel *k = gemm->kernel;
    const struct offsets at = offsets_of(gemm);
    char *panel = memory, *bias = panel + at.bias;
    int32_t *sums = (int32_t *)(void *)(panel + at.sums);
    /* zeros that remain: lanes past the last channel, the rest of a run's last group, missing biases */
    const bool all = gemm->panel_bytes == gemm->runs * gemm->length * gemm->lanes * k->weight_bytes;
    const size_t whole = gemm->channels / gemm->lanes, tile = gemm->row_panels ? gemm->row_panels : 1;
    const size_t written = all && !gemm->in_place ? whole / tile * tile * gemm->panel_bytes : 0;
    tq_fill(panel + written, 0, (size_t)at.end - written);
    for (size_t i = 0; i < gemm->panels && !gemm->in_place; i++)
        pack_panel(gemm, weights, i, panel);
    if (tq_gemm_has_ones(gemm)) {
        static const int8_t one = 1;
        const tq_gemm_weights ones = {.data = &one, .type = TQ_i8};
        pack_bytes(gemm, &ones, 0, gemm->lanes, panel + gemm->panels * gemm->panel_bytes, tq_gemm_group_bytes(gemm));
    }
    gemm->panel = gemm->in_place ? weights->data : panel;
    gemm->bias = bias, gemm->sums = sums, gemm->padding = panel + at.padding;
    fill_padding(gemm, weights->row_zero_point, panel + at.padding);
    if (gemm->in == TQ_f32) {
        for (size_t c = 0; weights->bias && c < gemm->channels; c++) { /* plain sums, which are never -0: 0 for -0 */
            const float x = ((const float *)weights->bias)[c];
            ((float *)(void *)bias)[c] = gemm->fused ? x : x + 0;
        }
        gemm->non_finite = !gemm->fused && !gemm->in_place && !are_finite(gemm); /* in place: no padding */
        return;
    }
    const bool widens = tq_gemm_widens(gemm); /* copies subtract the zero point */
    const int32_t flipped = gemm->in == TQ_u8 ? (k->flip_u8 ? -128 : 0) : k->flip_i8 ? 128 : 0;
    gemm->row_zero_point = widens ? 0 : weights->row_zero_point + (gemm->in == TQ_i16 ? 0 : flipped);
    gemm->row_factor = (weights->type == TQ_u8 ? 128 : 0) - weights->zero_point;
    gemm->copied_zero_point = weights->row_zero_point;
    if (gemm->row_zero_point || !gemm->unsummed)
        (k->sum && gemm->lanes == k->lanes ? sum_panels(gemm, sums) : sum_channels(gemm, weights, sums));
    pack_bias(gemm, weights, bias);
}
