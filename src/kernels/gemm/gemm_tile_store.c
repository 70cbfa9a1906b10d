/* SPDX-License-Identifier: Apache-2.0
 *
 * The sums of tiles, stored to the output.
 */
#include "kernels/gemm/gemm_parts.h"

static void store_sums(const tq_gemm_call *call, const int32_t *sums, const int32_t *adjust, const tq_gemm_position *at,
                       size_t n)
{
    const size_t stride = at->panels * call->gemm->kernel->lanes, first = at->panel * call->gemm->kernel->lanes;
    for (size_t r = 0; r < at->rows; r++) {
        uint32_t *to = (uint32_t *)(void *)call->out + (at->out_row + r) * call->out_stride + first;
        const uint32_t *from = (const uint32_t *)sums + r * stride;
        for (size_t c = 0; c < n; c++)
            to[c] = from[c] + (uint32_t)adjust[r];
    }
}

void tq_gemm_store_tile(const tq_gemm_call *call, const void *sums, const int32_t *adjust, const tq_gemm_position *at)
{
    const tq_gemm *g = call->gemm;
    const size_t lanes = g->kernel->lanes, first = at->panel * lanes;
    const size_t n = tq_min_size(at->panels * lanes, g->channels - first);
    if (call->store->out == TQ_i32) {
        store_sums(call, sums, adjust, at, n);
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
