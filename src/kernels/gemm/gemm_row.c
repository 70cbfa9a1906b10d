/* SPDX-License-Identifier: Apache-2.0
 *
 * One short row, as streaming models and the last layers of others have: without the jobs, blocks and indirection of
 * gemm_run.c, which take longer than the row.
 */
#include "kernels/gemm/gemm_parts.h"

bool tq_gemm_is_one_row(const tq_gemm *gemm, const tq_gemm_rows *rows)
{
    return rows->count == 1 && gemm->taps == 1 && (!gemm->copies || tq_gemm_widens(gemm)) && !gemm->wide &&
           !gemm->narrow && gemm->channels < TQ_GEMM_WORK && gemm->length < TQ_GEMM_WORK / gemm->channels &&
           (!rows->scan || tq_scan_is_plain(rows->scan));
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

void tq_gemm_run_one_row(const tq_gemm *gemm, const tq_gemm_rows *rows, const tq_gemm_store *store, void *out,
                         void *scratch)
{
    const tq_gemm_kernel *k = gemm->kernel;
    const tq_gemm_call call = {
        .gemm = gemm, .store = store, .out = out, .out_size = tq_element_size(store->out), .block = 1, .runs = 1};
    const void *row = kernel_row(gemm, rows->data, scratch);
    _Alignas(TQ_GEMM_ALIGN) float sums[TQ_TILE_CHANNELS + TQ_GEMM_SLACK / sizeof(float)];
    int32_t adjust = 0;
    const tq_gemm_space space = {.table = &row, .adjust = &adjust};
    if (gemm->row_factor)
        tq_gemm_find_adjust(&call, &space, 1);
    tq_gemm_position at = {.rows = 1, .end = 1};
    for (; at.panel < gemm->panels; at.panel += at.panels) {
        at.panels = tq_gemm_fair_share(gemm->panels - at.panel, k->wide_panels);
        const tq_tile tile = {
            .row = &row,
            .step = 1,
            .runs = 1,
            .length = gemm->length,
            .panel = (const char *)gemm->panel + at.panel * gemm->panel_bytes,
            .panel_bytes = gemm->panel_bytes,
            .bias = (const char *)gemm->bias + at.panel * k->lanes * 4,
            .flip = tq_gemm_flip(gemm),
            .sums = sums,
            .floor = store->floor,
            .ceiling = store->ceiling,
        };
        k->tile(1, at.panels)(&tile);
        tq_gemm_store_tile(&call, sums, &adjust, &at);
    }
}
