/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: the depthwise convolution of 8-bit pixels by vpdpbusd.  The includer defines:
 *
 *   TARGET, INLINE              attributes of functions
 *   DOT_LANES                   channels of a vector: 8 or 16
 *   vi, save_s32, IN_REGISTER   as in gemm_simd.h
 *   load_vector(p)              DOT_LANES * 4 bytes
 *   dot(sums, bytes, weights)   adds the products of four unsigned bytes with four signed weights, for each lane
 *   four_taps(tap, at)          DOT_LANES channels of four taps, from byte `at` of each on, with 128 added
 */
#define EACH(i, n) _Pragma("GCC unroll 8") for (int i = 0; i < n; i++)

/* Vectors [at, at + count) of rows [r, r + rows): rows share the loads of weights. */
INLINE void part(const tq_depthwise_tile *t, size_t r, const int rows, size_t at, const int count)
{
    vi sums[2][4];
    const size_t offset = t->offset + at * DOT_LANES, vector_bytes = t->vector_bytes;
    const char *weights = t->weights + at * vector_bytes;
    const int32_t *bias = (const int32_t *)t->bias + at * DOT_LANES;
    EACH (i, rows)
        EACH (k, count)
            sums[i][k] = load_vector(bias + k * DOT_LANES);
    const void *const *row = t->row + r;
    const size_t step = t->step;
    for (size_t left = t->taps; left > 0; left = left < 4 ? 0 : left - 4, row += 4 * step, weights += DOT_LANES * 4) {
        /* weights past the last tap are 0: any pixel will do */
        const size_t at1 = left > 1 ? step : 0, at2 = left > 2 ? 2 * step : 0, at3 = left > 3 ? 3 * step : 0;
        const char *tap[2][4];
        EACH (i, rows) {
            tap[i][0] = (const char *)row[i] + offset;
            tap[i][1] = (const char *)row[at1 + (size_t)i] + offset;
            tap[i][2] = (const char *)row[at2 + (size_t)i] + offset;
            tap[i][3] = (const char *)row[at3 + (size_t)i] + offset;
        }
        EACH (k, count) {
            vi w = load_vector(weights + (size_t)k * vector_bytes);
            IN_REGISTER(w);
            EACH (i, rows)
                sums[i][k] = dot(sums[i][k], four_taps(tap[i], (size_t)k * DOT_LANES), w);
        }
    }
    EACH (i, rows)
        EACH (k, count)
            save_s32((int32_t *)t->sums + ((r + (size_t)i) * t->vectors + at + (size_t)k) * DOT_LANES, sums[i][k]);
}

INLINE void some_rows(const tq_depthwise_tile *t, size_t r, const int rows)
{
    size_t at = 0;
    for (; at + 4 <= t->vectors; at += 4)
        part(t, r, rows, at, 4);
    switch (t->vectors - at) {
    case 3: part(t, r, rows, at, 3); break;
    case 2: part(t, r, rows, at, 2); break;
    case 1: part(t, r, rows, at, 1); break;
    default: break;
    }
}

static TARGET void tile(const tq_depthwise_tile *t)
{
    size_t r = 0;
    for (; r + 2 <= t->rows; r += 2)
        some_rows(t, r, 2);
    if (r < t->rows)
        some_rows(t, r, 1);
}

/* ---- by columns (tq_column_tile): a part of the weights is 64 bytes ---- */

/* Sums n, n + 1 ... of a tile: they share the loads of weights. */
INLINE void some_columns(const tq_column_tile *t, size_t n, const int count)
{
    vi sums[4];
    const char *group = t->columns + n * t->step;
    const int8_t *weights = t->weights;
    EACH (i, count)
        sums[i] = load_vector(t->bias);
    for (size_t g = 0; g < t->groups; g++, group += t->group_bytes) {
        const char *column = group;
        for (size_t j = 0; j < t->width; j++, column += t->column_bytes)
            for (size_t p = 0; p < t->parts; p++, weights += 64) {
                vi w = load_vector(weights);
                EACH (i, count)
                    sums[i] = dot(sums[i], load_vector(column + (size_t)i * t->step), w);
            }
    }
    EACH (i, count)
        save_s32(t->sums + (n + (size_t)i) * t->sums_step, sums[i]);
}

/* All sums where the filter's weights fit the registers. */
INLINE void small_filter(const tq_column_tile *t, const int groups, const int width, const int parts)
{
    vi weights[2][5][2];
    const vi bias = load_vector(t->bias);
    const size_t group_bytes = t->group_bytes, column_bytes = t->column_bytes, step = t->step, to_step = t->sums_step;
    const char *columns = t->columns;
    int32_t *to = t->sums;
    EACH (g, groups)
        EACH (j, width)
            EACH (p, parts)
                weights[g][j][p] = load_vector(t->weights + ((g * width + j) * parts + p) * 64);
    for (size_t left = t->count; left > 0; left--, columns += step, to += to_step) {
        vi sum = bias;
        EACH (g, groups)
            EACH (j, width) {
                const vi column = load_vector(columns + (size_t)g * group_bytes + (size_t)j * column_bytes);
                EACH (p, parts)
                    sum = dot(sum, column, weights[g][j][p]);
            }
        save_s32(to, sum);
    }
}

INLINE void all_columns(const tq_column_tile *t)
{
    size_t n = 0;
    if (t->groups == 1 && t->width == 3) {
        if (t->parts == 1)
            small_filter(t, 1, 3, 1);
        else
            small_filter(t, 1, 3, 2);
        return;
    }
    if (t->groups == 2 && t->width == 5 && t->parts == 1) {
        small_filter(t, 2, 5, 1);
        return;
    }
    for (; n + 4 <= t->count; n += 4)
        some_columns(t, n, 4);
    for (; n < t->count; n++)
        some_columns(t, n, 1);
}

/* Columns are vectors of 16 channels. */
static TARGET void columns(const tq_column_tile *t)
{
    tq_column_tile part = *t;
    for (size_t lane = 0; lane < 16; lane += DOT_LANES) {
        part.columns = t->columns + lane * 4;
        part.weights = t->weights + lane * 4;
        part.bias = t->bias + lane;
        part.sums = t->sums + lane;
        all_columns(&part);
    }
}
