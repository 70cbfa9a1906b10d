/* SPDX-License-Identifier: Apache-2.0
 *
 * The terms that the weights' zero point adds to sums: adjust[i] = row_factor * sum over row i of (element - row zero
 * point), modulo 2^32.
 */
#include <string.h>

#include "kernels/gemm/gemm_parts.h"

/* to[i] = the sum of row i's elements, by tiles of the panel of ones. */
static void sum_rows(const tq_gemm_call *call, const tq_gemm_space *space, size_t count, int32_t *to)
{
    static const int32_t zeros[TQ_LANES];
    const tq_gemm *g = call->gemm;
    const tq_gemm_kernel *k = g->kernel;
    _Alignas(TQ_GEMM_ALIGN) int32_t sums[TQ_TILE_ROWS * TQ_LANES];
    tq_tile tile = {
        .step = call->step,
        .down = call->down,
        .runs = call->runs,
        .length = call->reads_lines ? call->length : g->length,
        .panel = (const char *)g->panel + g->panels * g->panel_bytes,
        .panel_bytes = g->panel_bytes,
        .group_bytes = tq_gemm_group_bytes(g),
        .bias = zeros,
        .flip = tq_gemm_flip(g),
        .sums = sums,
        .sums_stride = k->lanes * sizeof *sums,
    };
    for (size_t i = 0, rows; i < count; i += rows) {
        rows = k->tall_panels && count - i >= TQ_TALL_ROWS ? TQ_TALL_ROWS : tq_gemm_tile_rows(count - i, k->rows);
        tile.row = space->table + i;
        k->tile(rows, 1)(&tile);
        for (size_t r = 0; r < rows; r++)
            to[i + r] = sums[r * k->lanes];
    }
}

/* The same, run by run. */
static void sum_runs(const tq_gemm_call *call, const tq_gemm_space *space, size_t count, int32_t *to)
{
    const tq_gemm *g = call->gemm;
    const size_t length = call->reads_lines ? call->line * g->depth : g->length;
    for (size_t i = 0; i < count; i++) {
        uint32_t sum = 0;
        for (size_t t = 0; t < call->runs; t++) {
            const char *run = (const char *)space->table[t * call->step + i] + t * call->down;
            sum += (uint32_t)g->kernel->row_sum(run, length, tq_gemm_flip(g));
        }
        to[i] = (int32_t)sum;
    }
}

void tq_gemm_find_adjust(const tq_gemm_call *call, const tq_gemm_space *space, size_t count)
{
    const tq_gemm *g = call->gemm;
    if (!g->row_factor) {
        memset(space->adjust, 0, count * sizeof *space->adjust);
        return;
    }
    const size_t elements = g->taps * g->depth;
    const uint32_t zeros = (uint32_t)elements * (uint32_t)g->row_zero_point;
    (tq_gemm_has_ones(g) ? sum_rows : sum_runs)(call, space, count, space->adjust);
    for (size_t i = 0; i < count; i++)
        space->adjust[i] = (int32_t)(((uint32_t)space->adjust[i] - zeros) * (uint32_t)g->row_factor);
}
