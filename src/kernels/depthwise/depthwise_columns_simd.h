/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: the sums of columns (tq_column_tile).  The includer defines:
 *
 *   TARGET, INLINE              attributes of functions
 *   DOT_LANES                   channels of a vector: 8 or 16
 *   vi, save_s32                as in gemm_simd.h
 *   load_vector(p)              DOT_LANES * 4 bytes
 *   weights_t, load_weights(p, parts), PARTS_AT_ONCE(parts): weights of DOT_LANES columns; 1, or all parts in one
 *   dot(sums, bytes, weights)   adds the products of four unsigned bytes with four weights, for each lane
 */
#define EACH(i, n) _Pragma("GCC unroll 8") for (int i = 0; i < n; i++)

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
            for (size_t p = 0; p < t->parts; p += PARTS_AT_ONCE(t->parts), weights += PARTS_AT_ONCE(t->parts) * 64) {
                const weights_t w = load_weights(weights, t->parts);
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
    weights_t weights[2][5][2];
    const vi bias = load_vector(t->bias);
    const size_t group_bytes = t->group_bytes, column_bytes = t->column_bytes, step = t->step, to_step = t->sums_step;
    const char *columns = t->columns;
    int32_t *to = t->sums;
    EACH (g, groups)
        EACH (j, width)
            for (int p = 0; p < parts; p += PARTS_AT_ONCE(parts))
                weights[g][j][p] = load_weights(t->weights + ((g * width + j) * parts + p) * 64, parts);
    for (size_t left = t->count; left > 0; left--, columns += step, to += to_step) {
        vi sum = bias;
        EACH (g, groups)
            EACH (j, width) {
                const vi column = load_vector(columns + (size_t)g * group_bytes + (size_t)j * column_bytes);
                for (int p = 0; p < parts; p += PARTS_AT_ONCE(parts))
                    sum = dot(sum, column, weights[g][j][p]);
            }
        save_s32(to, sum);
    }
}

/* All sums of a filter of 3 columns and one group whose outputs begin one column apart: each column is read once, for
   three sums. */
INLINE void slide_columns(const tq_column_tile *t, const size_t parts)
{
    const weights_t w0 = load_weights(t->weights, parts), w1 = load_weights(t->weights + parts * 64, parts),
                    w2 = load_weights(t->weights + parts * 128, parts);
    const vi bias = load_vector(t->bias);
    const char *column = t->columns;
    int32_t *to = t->sums;
    vi last = dot(bias, load_vector(column), w0); /* the sum that lacks one column; `next` lacks two */
    column += t->step;
    vi next = dot(bias, load_vector(column), w0);
    last = dot(last, load_vector(column), w1);
    for (size_t left = t->count; left > 0; left--, to += t->sums_step) {
        column += t->step;
        const vi x = load_vector(column);
        save_s32(to, dot(last, x, w2));
        last = dot(next, x, w1);
        next = dot(bias, x, w0);
    }
}

INLINE void all_columns(const tq_column_tile *t)
{
    size_t n = 0;
    if (t->groups == 1 && t->width == 3 && PARTS_AT_ONCE(t->parts) == t->parts && t->step == t->column_bytes) {
        if (t->parts == 1)
            slide_columns(t, 1);
        else
            slide_columns(t, 2);
        return;
    }
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
