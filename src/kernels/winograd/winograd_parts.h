/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract of a body: the transforms and products of tiles.
 */
#ifndef TQ_KERNELS_WINOGRAD_PARTS_H
#define TQ_KERNELS_WINOGRAD_PARTS_H

#include "kernels/gemm/products.h"
#include "kernels/winograd/winograd.h"

enum {
    TQ_WINOGRAD_OUT = 4,     /* pixels of a tile's side: outputs */
    TQ_WINOGRAD_IN = 6,      /* inputs */
    TQ_WINOGRAD_POINTS = 36, /* of a transformed tile */
    TQ_WINOGRAD_DEPTH = 16,  /* a multiple of these are input channels */
    TQ_WINOGRAD_LANES = 32   /* channels of a panel, at most */
};

/* Tiles along a side of `pixels` outputs. */
static inline size_t tq_winograd_tiles(int32_t pixels)
{
    return ((size_t)pixels + TQ_WINOGRAD_OUT - 1) / TQ_WINOGRAD_OUT;
}

struct tq_winograd_body {
    uint8_t lanes; /* channels of a panel */
    /* to[point][depth]: B X B' of the 36 pixels, for `depth` channels. */
    void (*transform)(const void *const *pixels, size_t depth, uint8_t flip, int32_t zero_point, int16_t *to);
    /* sums[tile][point][lanes]: products of tiles[tile][point][depth] with a panel of weights. */
    void (*multiply)(const int16_t *tiles, size_t count, size_t depth, const int16_t *panel, int32_t *sums);
    /* to[r * stride + c][lanes], r, c < 4: the outputs of sums[point][lanes], plus bias[lanes]. */
    void (*finish)(const int32_t *sums, const int32_t *bias, int32_t *to, size_t stride);
};

#if TQ_X86
extern const tq_winograd_body tq_winograd__avx2, tq_winograd__avx512, tq_winograd__avx512vnni;
#if TQ_X86_AVXVNNI
extern const tq_winograd_body tq_winograd__avxvnni;
#endif

/* The transforms of an instruction set, which others share. */
#define TRANSFORMS(isa)                                                                                          \
    void tq_winograd_transform__##isa(const void *const *pixels, size_t depth, uint8_t flip, int32_t zero_point, \
                                      int16_t *to);                                                              \
    void tq_winograd_finish__##isa(const int32_t *sums, const int32_t *bias, int32_t *to, size_t stride);
TRANSFORMS(avx2)
TRANSFORMS(avx512)
#undef TRANSFORMS
#endif

#endif
