/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rounding/tiles.h"

#include <string.h>

#include "base/stop.h"
#include "kernels/isa.h"

typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));

/* Rows of a tile at a time: as many as an instruction set's registers hold sums of. */
TQ_BODY void panel_product(const double *a, const double *b, size_t depth, double *out, int rows)
{
    for (int first = 0; first < TQ_PANEL; first += rows) {
        lanes sum[TQ_PANEL];
        for (int i = 0; i < rows; i++)
            sum[i] = (lanes){0};
        for (size_t p = 0; p < depth; p++) {
            const lanes right = *(const lanes *)(b + TQ_PANEL * p);
            for (int i = 0; i < rows; i++)
                sum[i] += right * a[TQ_PANEL * p + first + i];
        }
        for (int i = 0; i < rows; i++)
            *(lanes *)(out + TQ_PANEL * (first + i)) = sum[i];
    }
}

TQ_BODY void lane_rows(const double *a, size_t stride, size_t step, const double *b, size_t depth, double *out,
                       int rows)
{
    lanes low[4], high[4];
    for (int i = 0; i < rows; i++) {
        low[i] = *(const lanes *)(out + TQ_LANES * i);
        high[i] = *(const lanes *)(out + TQ_LANES * i + 8);
    }
    for (size_t p = 0; p < depth; p++) {
        const lanes left = *(const lanes *)(b + TQ_LANES * p), right = *(const lanes *)(b + TQ_LANES * p + 8);
        for (int i = 0; i < rows; i++) {
            low[i] += left * a[(size_t)i * stride + p * step];
            high[i] += right * a[(size_t)i * stride + p * step];
        }
    }
    for (int i = 0; i < rows; i++) {
        *(lanes *)(out + TQ_LANES * i) = low[i];
        *(lanes *)(out + TQ_LANES * i + 8) = high[i];
    }
}

TQ_BODY void lane_product(const double *a, size_t stride, size_t step, size_t rows, const double *b, size_t depth,
                          double *out, int many)
{
    size_t i = 0;
    for (; i + (size_t)many <= rows; i += (size_t)many)
        lane_rows(a + i * stride, stride, step, b, depth, out + TQ_LANES * i, many);
    for (; i < rows; i++)
        lane_rows(a + i * stride, stride, step, b, depth, out + TQ_LANES * i, 1);
}

#define PRODUCTS(isa, target, panel_rows, lane_rows_at_a_time)                                                \
    target static void panels_##isa(const double *a, const double *b, size_t depth, double *out)              \
    {                                                                                                         \
        panel_product(a, b, depth, out, panel_rows);                                                          \
    }                                                                                                         \
    target static void lanes_##isa(const double *a, size_t stride, size_t step, size_t rows, const double *b, \
                                   size_t depth, double *out)                                                 \
    {                                                                                                         \
        lane_product(a, stride, step, rows, b, depth, out, lane_rows_at_a_time);                              \
    }

PRODUCTS(scalar, , 2, 1)
#if TQ_X86
PRODUCTS(avx2, TQ_TARGET_AVX2, 4, 2)
PRODUCTS(avx512, TQ_TARGET_AVX512, 8, 4)
#endif
static const tq_panel_product_fn panels[TQ_ISAS] = TQ_ISA_FUNCTIONS(panels);
static const tq_lane_product_fn lane_products[TQ_ISAS] = TQ_ISA_FUNCTIONS(lanes);

tq_tiles tq_tiles_here(void)
{
    const int isa = tq_isa();
    return (tq_tiles){panels[isa], lane_products[isa]};
}

void tq_panels_of(const double *matrix, size_t stride, size_t depth, size_t columns, double *panels_out)
{
    for (size_t first = 0; first < columns; first += TQ_PANEL, panels_out += TQ_PANEL * depth) {
        const size_t width = columns - first < TQ_PANEL ? columns - first : TQ_PANEL;
        for (size_t p = 0; p < depth; p++) {
            double *to = panels_out + TQ_PANEL * p;
            memcpy(to, matrix + p * stride + first, width * sizeof *to);
            for (size_t i = width; i < TQ_PANEL; i++)
                to[i] = 0;
        }
    }
}

int tq_tile_threads(int wanted, double terms)
{
    const double terms_a_thread = 4e6;
    const double most = terms / terms_a_thread;
    return most < 1 ? 1 : most < wanted ? (int)most : wanted;
}

/* ---- pairs of panels ---- */

#define SUPER ((size_t)8) /* panels of a side of a square */

/* Number `index` of the pairs (*i, *j), *i <= *j < count, row by row. */
static void pair_of(size_t index, size_t count, size_t *i, size_t *j)
{
    size_t row = 0;
    for (; index >= count - row; row++)
        index -= count - row;
    *i = row;
    *j = row + index;
}

static size_t squares_of(size_t count)
{
    return (count + SUPER - 1) / SUPER;
}

size_t tq_square_count(size_t count)
{
    return squares_of(count) * (squares_of(count) + 1) / 2;
}

void tq_each_pair(size_t count, size_t depth, size_t begin, size_t end, void (*tile)(void *context, size_t i, size_t j),
                  void *context)
{
    for (size_t at = begin; at < end; at++) {
        size_t above, beside;
        pair_of(at, squares_of(count), &above, &beside);
        for (size_t i = above * SUPER; i < (above + 1) * SUPER && i < count; i++)
            for (size_t j = beside * SUPER > i ? beside * SUPER : i; j < (beside + 1) * SUPER && j < count; j++)
                tile(context, i, j);
        if (tq_stop_after(SUPER * SUPER * TQ_PANEL * depth))
            return;
    }
}
