/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files of a depthwise convolution share: the contract of a body, and the layout of its weights.
 */
#ifndef TQ_KERNELS_DEPTHWISE_PARTS_H
#define TQ_KERNELS_DEPTHWISE_PARTS_H

#include <string.h>

#include "base/sizes.h"
#include "kernels/depthwise/depthwise.h"
#include "kernels/gemm/products.h"

#define TQ_DEPTHWISE_ALIGN 64  /* bytes: of each part of a memory */
#define TQ_DEPTHWISE_SLACK 128 /* bytes that a vector may reach past a pixel */

/* sums[r][c] = bias[c] + products of taps with weights, for `vectors` vectors of channels.  Weights are int8, int16 or
   float: [vector][group of taps][channel of the vector][tap of the group]; weights past the last tap are 0. */
typedef struct tq_depthwise_tile {
    const void *const *row; /* row[tap * step + r]: a pixel, of which whole vectors of channels may be read */
    size_t step, taps, rows, vectors;
    size_t offset; /* bytes from a pixel to the tile's first channel */
    const char *weights;
    size_t vector_bytes; /* of the weights of a vector */
    const void *bias;
    void *sums; /* [rows][vectors * lanes]; this and the fields below: as in tq_tile */
    size_t sums_stride;
    float floor, ceiling;
} tq_depthwise_tile;

/* sums[n * sums_step + lane] = bias[lane] + products, for n < count: of the columns at columns + n * step, in each
   group of four rows, with those `width` columns of the filter, column_bytes apart.  Columns are vectors of 16
   channels, of four unsigned bytes each.  A weight is the sum of its parts. */
typedef struct tq_column_tile {
    size_t groups, width, parts, count;
    const char *columns;
    size_t group_bytes, column_bytes, step; /* bytes */
    const int8_t *weights;                  /* [groups][width][parts][16][4] */
    const int32_t *bias;
    int32_t *sums;
    size_t sums_step;
} tq_column_tile;

/* `pixels` neighbours of each of four output lines, of a filter of `side` x `side` taps: out[r] is the first of line r,
   row[i][r] the input pixel that tap `from` of filter row i meets there.  Taps of filter columns [from, to) meet
   pixels; the others are left out. */
#define TQ_BAND_LINES 4
#define TQ_BAND_SIDE 5
typedef struct tq_depthwise_band {
    const char *row[TQ_BAND_SIDE][TQ_BAND_LINES];
    char *out[TQ_BAND_LINES];      /* these may overlap each other */
    size_t side, from, to;         /* side: 3 or 5 */
    size_t pixels, vectors;        /* vectors: full ones */
    size_t column; /* bytes from the pixel of a tap to that of the next tap in its filter row */
    size_t skip;   /* bytes from the end of an input pixel's vectors to those that the next output pixel meets */
    size_t gap;    /* bytes from the end of an output pixel's vectors to the next one's */
    const char *weights, *bias; /* this and the fields below: as in tq_depthwise_tile */
    float floor, ceiling;
} tq_depthwise_band;

struct tq_depthwise_kernel {
    const char *isa;
    uint8_t lanes, group, weight_bytes;
    uint8_t flip; /* the kernel exclusive-ors 8-bit elements with it */
    void (*tile)(const tq_depthwise_tile *tile);
    /* depthwise_columns.c; NULL: the kernel has none */
    void (*columns)(const tq_column_tile *tile);
    uint16_t columns_channels; /* the most channels for which columns of a 3 x 3 filter pay, larger filters' never; 0:
                                  columns always pay */
    uint8_t columns_flip; /* exclusive-ors the bytes of columns: signed elements are 128 more there */
    /* to[4 * i + k] = row[k][i * step[k]] ^ flip, for i < n; step: 0 (of a row whose first 32 bytes are equal) or 1.
       Up to 128 bytes more may be written. */
    void (*interleave)(const char *const row[4], const size_t step[4], size_t n, uint8_t flip, char *to);
    const tq_stores *stores;
    /* depthwise_bands.c; NULL: the kernel has none */
    void (*band)(const tq_depthwise_band *band);
    bool band_columns_first; /* the order of taps in `band` */
};

#define DEPTHWISE(in, isa) extern const tq_depthwise_kernel tq_depthwise_##in##__##isa;
#include "kernels/depthwise/depthwise.def"

/* Vectors that hold all channels; the last may be partly empty. */
static inline size_t tq_depthwise_vectors(const tq_depthwise *d)
{
    return tq_divide_up(d->channels, d->kernel->lanes);
}

/* Vectors of packed weights: by lines, channels begin anew behind the last; by bands, one more has the last channels.
 */
static inline size_t tq_depthwise_packed_vectors(const tq_depthwise *d)
{
    return d->lines.vectors ? d->lines.vectors : tq_depthwise_vectors(d) + d->bands.tail;
}

/* Bytes of the packed weights of one vector. */
static inline size_t tq_depthwise_vector_bytes(const tq_depthwise *d)
{
    return tq_round_up(d->taps, d->kernel->group) * d->kernel->lanes * d->kernel->weight_bytes;
}

static inline int32_t tq_depthwise_weight(const tq_gemm_weights *w, size_t tap, size_t channel)
{
    const size_t at = tap * w->k_stride + channel * w->channel_stride;
    return (w->type == TQ_u8 ? ((const uint8_t *)w->data)[at] : ((const int8_t *)w->data)[at]) - w->zero_point;
}

/* depthwise_columns.c: the plan, with period 0 where the convolution is not computed by columns; weights, into zeroed
   memory, and biases from `sums`, those of the channels; the units of `images` images, of nearly equal work, which
   threads split; units [first, end). */
tq_depthwise_columns tq_depthwise_plan_columns(const tq_depthwise_kernel *kernel, tq_element in, const tq_scan *scan,
                                               size_t channels);
void tq_depthwise_pack_columns(const tq_depthwise *d, const tq_gemm_weights *w, const int32_t *sums, int8_t *to,
                               int32_t *bias);
size_t tq_depthwise_column_units(const tq_depthwise *d, size_t images);
void tq_depthwise_run_columns(const tq_depthwise *d, const char *data, size_t first, size_t end,
                              const tq_gemm_store *store, char *out, size_t out_stride, char *scratch);

/* depthwise_lines.c: the plan, with no vectors where lines would not pay; output lines [first, end) of all images,
   whose pixels lie one behind the other. */
tq_depthwise_lines tq_depthwise_plan_lines(const tq_depthwise_kernel *kernel, const tq_scan *scan, size_t channels);
void tq_depthwise_run_lines(const tq_depthwise *d, const char *data, size_t first, size_t end,
                            const tq_gemm_store *store, char *out, char *scratch);

/* depthwise_bands.c: the plan, with line_bytes 0 where bands would not pay; output lines [first, end) of all images,
   whose pixels lie one behind the other. */
tq_depthwise_bands tq_depthwise_plan_bands(const tq_depthwise_kernel *kernel, const tq_scan *scan, size_t channels);
void tq_depthwise_run_bands(const tq_depthwise *d, const char *data, size_t first, size_t end,
                            const tq_gemm_store *store, char *out, char *scratch);

/* depthwise_offsets.c: whether the scan has few enough offsets; bytes of the offsets, 0 where there are none; the
   offsets, in zeroed memory; table[t * step + i], the pixel that tap t of output pixel first + i reads, of images that
   begin at `data`. */
bool tq_depthwise_is_small(const tq_scan *scan);
size_t tq_depthwise_offset_bytes(const tq_depthwise *d);
void tq_depthwise_pack_offsets(const tq_depthwise *d, int32_t *offsets);
void tq_depthwise_point(const tq_depthwise *d, const char *data, size_t first, size_t count, const void **table,
                        size_t step);

/* Any output type. */
static inline void tq_depthwise_store(const tq_depthwise *d, const tq_tile_store *t)
{
    if (t->store->out != TQ_i32) {
        tq_store_fn_of(d->kernel->stores, t->store->out, d->wide)(t);
        return;
    }
    for (size_t r = 0; r < t->rows; r++)
        memcpy((int32_t *)t->out + r * t->out_stride, (const int32_t *)t->sums + r * t->sums_stride,
               t->channels * sizeof(int32_t));
}

/* depthwise_plan.c: the last usable row of depthwise.def for `in`.  small_weights: weights less their zero point fit
   8 bits. */
const tq_depthwise_kernel *tq_depthwise_find(tq_element in, bool fused, bool small_weights);

#endif
