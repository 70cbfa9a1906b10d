/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recurrent/rows.h"

#include "base/sizes.h"
#include "base/stop.h"
#include "kernels/isa.h"
#include "ops/products/dot.h"

enum { SOME = 64 }; /* rows whose integer sums lie on the stack */

/* sums[i] += f32(dots[i] - zero point * row_sums[i]) * f32(scale of row i * scale) */
TQ_BODY void add_scaled(const int32_t *dots, const int32_t *row_sums, size_t n, const float *scale, const size_t step,
                        tq_hybrid_row by, float *sums)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t shift = (uint32_t)by.zero_point * (uint32_t)row_sums[i];
        sums[i] += (float)(int32_t)((uint32_t)dots[i] - shift) * (scale[step * i] * by.scale);
    }
}

static void add_hybrid(const tq_tensor *matrix, const int32_t *row_sums, const tq_rows *rows, size_t b, size_t first,
                       size_t count, float *sums)
{
    const tq_affine *q = &matrix->quantization;
    const int8_t *weights = (const int8_t *)matrix->data + first * rows->width;
    int32_t dots[SOME];
    tq_dot_rows_i8(weights, count, rows->quantized + b * rows->width, rows->width, dots);
    if (q->count > 1)
        add_scaled(dots, row_sums + first, count, q->scale + first, 1, rows->scales[b], sums);
    else
        add_scaled(dots, row_sums + first, count, q->scale, 0, rows->scales[b], sums);
}

static void add_floats(const tq_tensor *matrix, const tq_rows *rows, size_t b, size_t first, size_t count, float *sums)
{
    const float *weights = (const float *)matrix->data + first * rows->width, *x = rows->data + b * rows->stride;
    for (size_t i = 0; i < count; i++)
        sums[i] = tq_add_dot_f32(sums[i], weights + i * rows->width, x, rows->width);
}

void tq_rows_add_products(const tq_tensor *matrix, const int32_t *row_sums, const tq_rows *rows, size_t b, size_t first,
                          size_t count, float *sums)
{
    for (size_t i = 0, n; i < count && !tq_stop_after(SOME * rows->width / 8); i += n) {
        n = tq_min_size(SOME, count - i);
        if (rows->quantized)
            add_hybrid(matrix, row_sums, rows, b, first + i, n, sums + i);
        else
            add_floats(matrix, rows, b, first + i, n, sums + i);
    }
}
