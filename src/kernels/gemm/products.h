/* SPDX-License-Identifier: Apache-2.0
 *
 * What a body of the matrix products offers: the rows of gemm.def.
 *
 * Rows and weights meet in tiles.  Weights lie in panels: a panel is `lanes` channels, and holds for each group of
 * `group` elements of a row the weights of its first channel, then those of the next ...; a run of a row that is no
 * multiple of `group` is filled up with weights 0.
 */
#ifndef TQ_KERNELS_PRODUCTS_H
#define TQ_KERNELS_PRODUCTS_H

#include "kernels/gemm/gemm.h"

/* Compilers that know the instructions of AVX-VNNI. */
#if TQ_X86 && ((defined(__clang__) && __clang_major__ >= 13) || (!defined(__clang__) && __GNUC__ >= 11))
#define TQ_X86_AVXVNNI 1
#endif

/* Float sums between the bounds of tile t, in vectors; NaN stays. */
#define TQ_BOUNDED(x) clamp_f32(x, splat_f32(t->floor), splat_f32(t->ceiling))

/* The same of one sum. */
static inline float tq_bounded(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

#define TQ_TILE_ROWS 8
#define TQ_TILE_CHANNELS 128 /* sums of a tile: at most TQ_TILE_ROWS * TQ_TILE_CHANNELS */
#define TQ_LANES 16          /* of the widest panel */

/* sums[r][c] = bias[c] + products, for r < rows and c < panels * lanes; modulo 2^32, or fused in order; floats bounded
   by floor and ceiling, so that sums may be where the output lies. */
typedef struct tq_tile {
    const void *const *row; /* row[run * step + r] */
    size_t step, runs, length; /* length: of a run, in elements */
    const char *panel;
    size_t panel_bytes;
    const void *bias;
    uint8_t flip; /* exclusive-ored to 8-bit elements */
    void *sums;   /* aligned to 64 where they are integers */
    size_t sums_stride; /* bytes from a row to the next */
    float floor, ceiling;
} tq_tile;

/* Sums to values: out[r * out_stride + c], with the parameters of channels from `first` on. */
typedef struct tq_tile_store {
    const tq_gemm_store *store;
    const void *sums; /* int32_t; int64_t for store_wide; float for store_f32 */
    size_t sums_stride;
    const int32_t *adjust; /* [rows], added to all int32_t sums of a row */
    size_t rows, channels, first;
    void *out;
    size_t out_stride; /* in elements, as out is */
} tq_tile_store;

typedef void (*tq_tile_fn)(const tq_tile *tile);
typedef void (*tq_store_fn)(const tq_tile_store *store);

/* What each output wants; i16_wide: of 64-bit sums. */
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

struct tq_gemm_kernel {
    const char *isa;
    uint8_t lanes, group;
    uint8_t row_bytes, weight_bytes; /* of an element */
    uint8_t rows, panels;            /* of the largest tile */
    uint8_t wide_panels;             /* of that of one row */
    uint8_t flip_i8, flip_u8;        /* what makes 8-bit elements what the kernel reads */
    tq_tile_fn (*tile)(size_t rows, size_t panels); /* the function for tiles of that size */
    const tq_stores *stores;
    int32_t (*row_sum)(const void *run, size_t n, uint8_t flip); /* of elements as kernels see them; integers only */
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

/* The scalar stores, which vector bodies fall back on. */
void tq_store_integers_scalar(const tq_tile_store *store);
void tq_store_wide_scalar(const tq_tile_store *store);
void tq_store_floats_scalar(const tq_tile_store *store);

/* 1 to 3 bytes of a row as the lowest of a group of four; the others 0, without reading past them. */
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
