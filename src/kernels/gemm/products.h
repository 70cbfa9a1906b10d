/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract of a body of the matrix products: a row of gemm.def.
 *
 * A body multiplies a tile: a few rows by a few panels of weights.  A panel is `lanes` channels.  For each group of
 * `group` elements of a row it holds the group's weights of the first channel, then of the second, and so on.  A run
 * whose length is no multiple of `group` is completed with weights 0.
 */
#ifndef TQ_KERNELS_PRODUCTS_H
#define TQ_KERNELS_PRODUCTS_H

#include <string.h>

#include "kernels/gemm/gemm.h"
#include "kernels/inline.h"

/* Whether the compiler has intrinsics for AVX-VNNI. */
#if TQ_X86 && ((defined(__clang__) && __clang_major__ >= 13) || (!defined(__clang__) && __GNUC__ >= 11))
#define TQ_X86_AVXVNNI 1
#endif

/* A vector of float sums, clamped to the bounds of tile t; NaN stays NaN. */
#define TQ_BOUNDED(x) clamp_f32(x, splat_f32(t->floor), splat_f32(t->ceiling))

/* One sum, clamped to [low, high]; NaN stays NaN. */
static inline float tq_bounded(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

#define TQ_TALL_ROWS 12
#define TQ_TILE_ROWS TQ_TALL_ROWS
#define TQ_TILE_CHANNELS 128 /* sums of a tile: at most TQ_TILE_ROWS * TQ_TILE_CHANNELS */
#define TQ_LANES 16          /* of the widest panel */

/* sums[r][c] = bias[c] + products, for r < rows and c < panels * lanes: modulo 2^32, or floats in gemm.h's order.
   Floats are clamped to [floor, ceiling], so that `sums` may be the output. */
typedef struct tq_tile {
    const void *const *row;    /* the indirection buffer: tq_tile_run */
    size_t tiles;              /* one below the other, where the body repeats; elsewhere and for 0 it is one */
    size_t apart;              /* of even tiles: bytes from row[0], which has the first row, to the next */
    size_t step, down;         /* from a run to the next, in row: pointers; behind the pointer: bytes */
    size_t runs, length;       /* length: elements of a run */
    const char *panel;
    size_t panel_bytes; /* from a panel to the next */
    size_t group_bytes; /* from a panel's group to its next */
    size_t ahead;       /* from a panel to the one that is prefetched meanwhile; 0: none */
    size_t after;       /* of even tiles: so many of them prefetch a panel, `ahead` and those behind it */
    bool fetches;       /* tiles prefetch rows that stand below */
    const void *bias;   /* [panels * lanes] */
    uint8_t flip;       /* exclusive-ored with 8-bit elements */
    void *sums;
    size_t sums_stride; /* bytes from a row to the next */
    float floor, ceiling;
} tq_tile;

/* A run of row r. */
TQ_INLINE const void *tq_tile_run(const tq_tile *tile, size_t run, size_t r)
{
    return (const char *)tile->row[run * tile->step + r] + run * tile->down;
}

/* From sums to outputs: out[r * out_stride + c], with the parameters of channels from `first` on. */
typedef struct tq_tile_store {
    const tq_gemm_store *store;
    const void *sums; /* int32_t; int64_t for store_wide; float for store_f32 */
    size_t sums_stride;
    const int32_t *adjust; /* [rows]: added to each int32_t sum of the row */
    bool adjusted;         /* whether one of them may differ from 0 */
    size_t rows, channels, first;
    void *out;
    size_t out_stride; /* elements */
} tq_tile_store;

typedef void (*tq_tile_fn)(const tq_tile *tile);
typedef void (*tq_store_fn)(const tq_tile_store *store);

/* The store of each output type; i16_wide: from 64-bit sums. */
typedef struct tq_stores {
    tq_store_fn i8, u8, i16, i16_wide, f32;
} tq_stores;

extern const tq_stores tq_stores__scalar;
#if TQ_X86
extern const tq_stores tq_stores__avx2, tq_stores__avx512;
#endif
#if TQ_ARM64
extern const tq_stores tq_stores__neon;
#endif

/* The weights of a panel's channels, one run of each: channel c begins at from + c * stride. */
typedef struct tq_panel_rows {
    const uint8_t *from;
    size_t stride, channels, length; /* bytes; 1 to `lanes`; elements */
    uint8_t flip; /* bits of each weight that are inverted */
} tq_panel_rows;

struct tq_gemm_kernel {
    const char *isa;
    uint8_t lanes, group;
    uint8_t row_bytes, weight_bytes; /* of an element */
    uint8_t rows, panels;            /* of the largest tile; at most TQ_TILE_ROWS and TQ_TILE_CHANNELS / lanes */
    uint8_t wide_panels;             /* of the largest tile with one row */
    uint8_t tall_panels;             /* of the largest tile with TQ_TALL_ROWS rows; 0: there is none */
    bool repeats;                    /* a call computes tq_tile.tiles tiles, as calls for tall tiles always do */
    uint8_t flip_i8, flip_u8;        /* exclusive-ored with int8, uint8 elements, gives what the kernel multiplies */
    tq_tile_fn (*tile)(size_t rows, size_t panels); /* the function for tiles of this size; rows: 1, 2, 4, 6 up to
                                                       `rows`, and TQ_TALL_ROWS */
    tq_tile_fn (*even_tile)(size_t rows, size_t panels); /* the same where rows are one run each and lie evenly: the
                                                            size that is best for so many panels, else NULL.  Such
                                                            tiles repeat; NULL: there is none */
    tq_tile_fn (*half_tile)(size_t rows, size_t panels); /* the same where the last panel has at most half as many
                                                            channels as lanes; NULL: as others */
    const tq_gemm_kernel *half_panels; /* the same operation in panels of half the channels; NULL: there is none */
    const tq_stores *stores;
    /* integers: the dot product of n flipped elements and weights that lie side by side, in whole panels, behind the
       last 0; NULL: there is none */
    int32_t (*dot)(const void *row, const char *weights, size_t n, uint8_t flip);
    int32_t (*row_sum)(const void *run, size_t n, uint8_t flip); /* integers: the sum of n flipped elements */
    /* int8 weights: writes a run to a panel whose groups lie `group` bytes apart; sums[channels] of such a panel's
       groups; NULL: there are none */
    void (*pack)(const tq_panel_rows *rows, char *panel, size_t group);
    void (*sum)(const char *panel, size_t groups, size_t group, size_t channels, int32_t *sums);
    void (*copy_i8)(const int8_t *from, int16_t *to, size_t n, int32_t zero_point); /* gemm_i16 only */
    void (*copy_u8)(const uint8_t *from, int16_t *to, size_t n, int32_t zero_point);
};

typedef enum tq_product_operation {
#define PRODUCT_OPERATION(name) TQ_PRODUCT_##name,
#include "kernels/gemm/gemm.def"
    TQ_PRODUCT_OPERATIONS
} tq_product_operation;

#define PRODUCT(operation, isa) extern const tq_gemm_kernel tq_##operation##__##isa;
#include "kernels/gemm/gemm.def"

static inline tq_store_fn tq_store_fn_of(const tq_stores *stores, tq_element out, bool wide)
{
    return out == TQ_i8    ? stores->i8
           : out == TQ_u8  ? stores->u8
           : out == TQ_f32 ? stores->f32
           : wide          ? stores->i16_wide
                           : stores->i16;
}

/* ---- stores ---- */

/* The scalar stores: the definition, and the fallback of vector stores. */
void tq_store_integers_scalar(const tq_tile_store *store);
void tq_store_wide_scalar(const tq_tile_store *store);
void tq_store_floats_scalar(const tq_tile_store *store);

/* n bytes, in pieces of 8, 4 and 1 that may overlap. */
static inline void tq_copy_part(char *to, const char *from, size_t n)
{
    if (n >= 8) {
        for (size_t i = 0; i + 8 < n; i += 8)
            memcpy(to + i, from + i, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else {
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}

/* n bytes of a row, 1 to 3, as the low bytes of a group of four; the other bytes are 0.  Reads n bytes. */
static inline uint32_t tq_few_bytes(const void *p, size_t n)
{
    const uint8_t *byte = p;
    uint32_t four = byte[0];
    if (n > 1)
        four |= (uint32_t)byte[1] << 8;
    if (n > 2)
        four |= (uint32_t)byte[2] << 16;
    return four;
}

#endif
