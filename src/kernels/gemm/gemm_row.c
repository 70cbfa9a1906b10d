/* SPDX-License-Identifier: Apache-2.0
 *
 * One short row, as streaming models and the last layers of others have: without the jobs, blocks and indirection of
 * gemm_run.c, which take longer than the row.  Rows of few channels by dot products.
 */
#include "base/stop.h"
#include "kernels/gemm/gemm_parts.h"

void tq_gemm_run_dots(const tq_gemm_call *call, const tq_gemm_space *space, size_t first, size_t count)
{
    const tq_gemm *g = call->gemm;
    const tq_gemm_kernel *k = g->kernel;
    _Alignas(TQ_GEMM_ALIGN) int32_t sums[TQ_LANES + TQ_GEMM_SLACK / sizeof(int32_t)] = {0};
    tq_gemm_position at = {.rows = 1, .panels = 1};
    for (; at.row < count && !tq_stop_after(g->channels * g->length / 32); at.row++) {
        for (size_t c = 0; c < g->channels; c++) {
            const char *weights = (const char *)g->panel + c * g->panel_bytes;
            const int32_t dot = k->dot(space->table[at.row], weights, g->length, tq_gemm_flip(g));
            sums[c] = (int32_t)((uint32_t)dot + ((const uint32_t *)g->bias)[c]);
        }
        at.out_row = first + at.row;
        tq_gemm_store_tile(call, sums, space->adjust + at.row, &at);
    }
}

/* The row in the kernel's form; scratch has room for more rows than one. */
static const void *kernel_row(const tq_gemm *gemm, const void *row, void *scratch)
{
    if (!tq_gemm_widens(gemm))
        return row;
    if (gemm->in == TQ_i8)
        gemm->kernel->copy_i8(row, scratch, gemm->length, gemm->copied_zero_point);
    else
        gemm->kernel->copy_u8(row, scratch, gemm->length, gemm->copied_zero_point);
    return scratch;
}

void tq_gemm_run_one_row(const tq_gemm *gemm, const void *only, const tq_gemm_store *store, void *out, void *scratch)
{
    const tq_gemm_kernel *k = gemm->kernel;
    const tq_gemm_call call = {
        .gemm = gemm, .store = store, .out = out, .out_size = tq_element_size(store->out), .block = 1, .runs = 1};
    const void *row = kernel_row(gemm, only, scratch);
    _Alignas(TQ_GEMM_ALIGN) float sums[TQ_TILE_CHANNELS + TQ_GEMM_SLACK / sizeof(float)];
    int32_t adjust = 0;
    const tq_gemm_space space = {.table = &row, .adjust = &adjust};
    if (gemm->row_factor)
        tq_gemm_find_adjust(&call, &space, 1);
    if (gemm->dots) {
        tq_gemm_run_dots(&call, &space, 0, 1);
        return;
    }
    tq_gemm_position at = {.rows = 1, .end = 1};
    for (; at.panel < gemm->panels; at.panel += at.panels) {
        at.panels = tq_gemm_fair_share(tq_gemm_panel_at(gemm, at.panel).left, k->wide_panels);
        tq_tile tile = {
            .row = &row,
            .step = 1,
            .runs = 1,
            .length = gemm->length,
            .bias = (const char *)gemm->bias + at.panel * k->lanes * 4,
            .flip = tq_gemm_flip(gemm),
            .sums = sums,
            .floor = store->floor,
            .ceiling = store->ceiling,
        };
        tq_gemm_point_panels(gemm, at.panel, &tile);
        k->tile(1, at.panels)(&tile);
        tq_gemm_store_tile(&call, sums, &adjust, &at);
    }
}
