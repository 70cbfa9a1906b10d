/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums of tiles, stored to the output.
 */
#include <string.h>

#include "kernels/gemm/gemm_parts.h"

/* Copies n words in pieces of constant size, the last of which may overlap the one before. */
static inline void copy_words(const uint32_t *from, uint32_t *to, size_t n)
{
    enum { PIECE = 16 };
    if (n >= PIECE) {
        for (size_t i = 0; i + PIECE < n; i += PIECE)
            memcpy(to + i, from + i, PIECE * sizeof *to);
        memcpy(to + n - PIECE, from + n - PIECE, PIECE * sizeof *to);
    } else if (n >= PIECE / 2) {
        memcpy(to, from, PIECE / 2 * sizeof *to);
        memcpy(to + n - PIECE / 2, from + n - PIECE / 2, PIECE / 2 * sizeof *to);
    } else if (n >= PIECE / 4) {
        memcpy(to, from, PIECE / 4 * sizeof *to);
        memcpy(to + n - PIECE / 4, from + n - PIECE / 4, PIECE / 4 * sizeof *to);
    } else {
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}

/* adjust: NULL where all are 0. */
static void store_sums(const uint32_t *from, size_t stride, const int32_t *adjust, size_t rows, size_t n, uint32_t *to,
                       size_t out_stride)
{
    for (size_t r = 0; r < rows; r++, from += stride, to += out_stride)
        if (!adjust)
            copy_words(from, to, n);
        else
            for (size_t c = 0; c < n; c++)
                to[c] = from[c] + (uint32_t)adjust[r];
}

void tq_gemm_store_tile(const tq_gemm_call *call, const void *sums, const int32_t *adjust, const tq_gemm_position *at)
{
    const tq_gemm *g = call->gemm;
    const size_t lanes = g->kernel->lanes, first = at->panel * lanes;
    const size_t n = tq_min_size(at->panels * lanes, g->channels - first);
    const bool few_floats = g->in == TQ_f32 && n < lanes; /* clamped by tiles; stores of vectors take them one by one */
    if (call->store->out == TQ_i32 || few_floats) {
        store_sums(sums, at->panels * lanes, g->row_factor ? adjust : NULL, at->rows, n,
                   (uint32_t *)(void *)call->out + at->out_row * call->out_stride + first, call->out_stride);
        return;
    }
    tq_tile_store store = {
        .store = call->store,
        .sums = sums,
        .sums_stride = at->panels * lanes,
        .adjust = adjust,
        .adjusted = g->row_factor != 0,
        .rows = at->rows,
        .channels = n,
        .first = first,
        .out = call->out + (at->out_row * call->out_stride + first) * call->out_size,
        .out_stride = call->out_stride,
    };
    if (call->store->scaling)
        tq_gemm_scale_tile(&store, at->out_row);
    else
        tq_store_fn_of(g->kernel->stores, call->store->out, g->wide)(&store);
}
