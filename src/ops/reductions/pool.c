/* SPDX-License-Identifier: Apache-2.0
 *
 * AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D over [batch, height, width, channels].
 *
 * Over the n cells of a window that lie in the input:
 *     average  float: sum / n;  int8, int16: tdiv(sum +- n / 2, n), away from zero;  uint8: (sum + n / 2) / n
 *              XNNPACK's of floats: cells column by column, nine at a time, times f32(1 / n)
 *     max      of quantized values or floats;  L2: sqrt(sum(x * x) / n)
 * then the fused activation.  Windows of floats are walked row by row, so that sums round as in the reference;
 * pool_integers.c has the integers.
 * Source: LiteRT f6745779, tflite/kernels/pooling.cc, internal/reference/pooling.h, integer_ops/pooling.h; XNNPACK
 * 75db3c09, src/f32-avgpool.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "base/stop.h"
#include "kernels/isa.h"
#include "ops/check.h"
#include "ops/parallel.h"
#include "ops/quantized.h"
#include "ops/reductions/float_runs.h"
#include "ops/reductions/pool_integers.h"

/* Channels that are pooled at once; their sums lie on the stack. */
#define CHANNELS 256

#define ALIKE 64 /* the most cells of windows, and the most windows, of one call */

#define COST 60 /* picoseconds for an element of a window */

typedef struct window {
    int64_t cells;          /* n */
    int64_t height, width;  /* of the window's part in the input, in cells */
    int64_t top, left;      /* rows and columns of the filter before that part */
    size_t row_step, step;  /* elements from one row, one cell, to the next */
    size_t count, move;     /* windows alike side by side, of pixels `step` elements apart: `move` elements apart */
} window;

typedef tq_pool pool;

/* An output row of `width` pixels. */
typedef struct line {
    window window;        /* its height, top and steps */
    const float *in;      /* the first input row of its windows */
    int64_t columns, width; /* pixels of an input row and of the output row */
} line;
typedef void (*pool_fn)(const pool *p, const line *l, float *out);

/* ---- windows alike: n <= CHANNELS channels, whose first cell is at `in` ---- */

TQ_BODY float clamp_float(const pool *p, float x)
{
    x = x < p->float_low ? p->float_low : x;
    return p->float_high < x ? p->float_high : x;
}

/* The sum of nine cells at channel i, in XNNPACK's order: column by column, padding included as 0. */
#define SUM_NINE(x, i) \
    (((x[2][i] + x[3][i]) + (x[4][i] + x[5][i])) + (((x[0][i] + x[1][i]) + x[8][i]) + (x[6][i] + x[7][i])))

static const float zeros[CHANNELS];

/* Two vectors. */
enum { MOST_scalar = 16, MOST_avx2 = 16, MOST_avx512 = 32 };

/* `some` channels at a time, a constant number, of `count` pixels.  The last of them may be computed twice; where a
   pixel has fewer, its lanes reach into the pixels behind it, whose own results then overwrite theirs. */
#define EACH_SOME(at)                                                  \
    for (size_t top = n < some ? 0 : n - some, at = 0, more = 1; more; \
         more = at < top, at = tq_min_size(at + some, top))

/* The cells of a filter, column by column, at most `count`: zeros for padding, and behind the last.  move: elements to
   the same cell of the next window. */
TQ_BODY void find_cells(const pool *p, const window *w, const float *in, size_t count, const float **x, size_t *move)
{
    for (size_t k = 0; k < count; k++) {
        x[k] = zeros;
        move[k] = 0;
    }
    for (int64_t c = 0; c < w->width; c++)
        for (int64_t y = 0; y < w->height; y++) {
            const int64_t k = (w->left + c) * p->filter_h + w->top + y;
            x[k] = in + (size_t)y * w->row_step + (size_t)c * w->step;
            move[k] = w->move;
        }
}

/* A filter of up to nine cells. */
TQ_BODY void average_nine_some(const pool *p, const window *w, const float *restrict in, float *restrict out, size_t n,
                               size_t count, const size_t some)
{
    const float *x[9], inverse = 1 / (float)w->cells;
    size_t move[9];
    find_cells(p, w, in, 9, x, move);
    for (; count > 0; count--, out += w->step) {
        const float *const now[9] = {x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8]}; /* in registers */
        EACH_SOME (at)
            TQ_EACH_LANE (i, some)
                out[at + i] = clamp_float(p, (0 + SUM_NINE(now, at + i)) * inverse);
        for (int k = 0; k < 9; k++)
            x[k] += move[k];
    }
}

#define BY(some, name)                                                  \
    if (count * n >= some && (some <= 4 || n > some / 2)) {             \
        const size_t whole = n < some ? count - (some - 1) / n : count; \
        name##_some(p, w, in, out, n, whole, some);                     \
        count -= whole, in += whole * w->move, out += whole * w->step;  \
    }
#define BY_WIDTH(name)                                                                                         \
    TQ_BODY void name(const pool *p, const window *w, const float *restrict in, float *restrict out, size_t n, \
                      const size_t most)                                                                       \
    {                                                                                                          \
        size_t count = w->count;                                                                               \
        BY(most, name)                                                                                         \
        BY(16, name)                                                                                           \
        BY(8, name)                                                                                            \
        BY(4, name)                                                                                            \
        BY(1, name)                                                                                            \
    }
BY_WIDTH(average_nine)

/* Nine cells of the filter, from `row` of a column of the window's part on, column by column: each of *x is a cell, or
   zeros for padding.  Rows [0, height) of a column lie in the input; no cell before row 0 does. */
TQ_BODY void find_nine(const pool *p, const window *w, const float *in, int64_t row, int64_t column, const float **x)
{
    if (row >= 0 && row + 9 <= w->height) {
        const float *cell = in + (size_t)row * w->row_step + (size_t)column * w->step;
        for (int k = 0; k < 9; k++, cell += w->row_step) {
            x[k] = cell;
            __builtin_prefetch(cell + w->step, 0, 2); /* of the next column: processors foresee no such strides */
        }
        return;
    }
    for (int k = 0; k < 9; k++, row++) {
        if (row + w->top == p->filter_h)
            row = -w->top, column++;
        const bool inside = row >= 0 && row < w->height && column < w->width;
        x[k] = inside ? in + (size_t)row * w->row_step + (size_t)column * w->step : zeros;
    }
}

/* A filter of any number of cells.  Nines of padding alone would add 0. */
TQ_BODY void average_many(const pool *p, const window *w, const float *restrict in, float *restrict out, size_t n)
{
    const float inverse = 1 / (float)w->cells;
    float sum[CHANNELS];
    int64_t nine = 0; /* the first that is not added yet */
    memset(sum, 0, n * sizeof *sum);
    for (int64_t c = 0; c < w->width; c++) {
        const int64_t first = (w->left + c) * p->filter_h + w->top; /* the column's first cell in the input */
        nine = nine < first / 9 ? first / 9 : nine;
        for (; 9 * nine < first + w->height; nine++) {
            const float *x[9];
            find_nine(p, w, in, 9 * nine - first, c, x);
            for (size_t i = 0; i < n; i++)
                sum[i] += SUM_NINE(x, i);
        }
    }
    for (size_t i = 0; i < n; i++)
        out[i] = clamp_float(p, sum[i] * inverse);
}

/* A filter of 10 to 9 NINES cells: they are found once for all windows. */
enum { NINES = 4 };
TQ_BODY void average_some_nines(const pool *p, const window *w, const float *restrict in, float *restrict out, size_t n)
{
    const size_t cells = (size_t)(p->filter_h * p->filter_w);
    const float *x[9 * NINES], inverse = 1 / (float)w->cells;
    size_t move[9 * NINES];
    find_cells(p, w, in, 9 * NINES, x, move);
    for (size_t count = w->count; count > 0; count--, out += w->step) {
        float sum[CHANNELS];
        memset(sum, 0, n * sizeof *sum);
        for (size_t k = 0; k < cells; k += 9) {
            const float *const now[9] = {x[k],     x[k + 1], x[k + 2], x[k + 3], x[k + 4],
                                         x[k + 5], x[k + 6], x[k + 7], x[k + 8]};
            for (size_t i = 0; i < n; i++)
                sum[i] += SUM_NINE(now, i);
        }
        for (size_t i = 0; i < n; i++)
            out[i] = clamp_float(p, sum[i] * inverse);
        for (size_t k = 0; k < cells; k++)
            x[k] += move[k];
    }
}

TQ_BODY void average_xnnpack(const pool *p, const window *w, const float *restrict in, float *restrict out, size_t n,
                             const size_t most)
{
    const int64_t cells = p->filter_h * p->filter_w;
    if (cells <= 9)
        average_nine(p, w, in, out, n, most);
    else if (cells <= 9 * NINES)
        average_some_nines(p, w, in, out, n);
    else
        for (size_t i = 0; i < w->count; i++, in += w->move, out += w->step)
            average_many(p, w, in, out, n);
}

/* A kind of pool.  name_some: for a constant number of channels, whose accumulators stay in registers where they fit
   two vectors; `most`: these two. */
#define POOL_KIND(name, start, fold, last)                                                                            \
    TQ_BODY void name##_some(const pool *p, const window *w, const float *restrict in, float *restrict out, size_t n, \
                             size_t count, const size_t some)                                                         \
    {                                                                                                                 \
        float all[MOST_avx512];                                                                                       \
        const float cells = (float)w->cells;                                                                          \
        (void)cells;                                                                                                  \
        for (; count > 0; count--, in += w->move, out += w->step)                                                     \
            EACH_SOME (at) {                                                                                          \
                TQ_EACH_LANE (i, some)                                                                                \
                    all[i] = start;                                                                                   \
                for (int64_t y = 0; y < w->height; y++)                                                               \
                    for (int64_t c = 0; c < w->width; c++) {                                                          \
                        const float *restrict cell = in + at + (size_t)y * w->row_step + (size_t)c * w->step;         \
                        TQ_EACH_LANE (i, some) {                                                                      \
                            const float acc = all[i], x = cell[i];                                                    \
                            all[i] = fold;                                                                            \
                        }                                                                                             \
                    }                                                                                                 \
                TQ_EACH_LANE (i, some) {                                                                              \
                    const float acc = all[i];                                                                         \
                    out[at + i] = clamp_float(p, last);                                                               \
                }                                                                                                     \
            }                                                                                                         \
    }                                                                                                                 \
    BY_WIDTH(name)

POOL_KIND(average_f32, 0, acc + x, acc / cells)
POOL_KIND(l2_f32, 0, acc + x * x, sqrtf(acc / cells))
POOL_KIND(max_f32, p->float_low, acc < x ? x : acc, acc)

/* The same of whole windows of three by three, as Inception's: their loop is unrolled. */
TQ_BODY void average_three(const pool *p, const window *w, const float *restrict in, float *restrict out, size_t n,
                           const size_t some)
{
    const float cells = 9;
    for (size_t count = w->count; count > 0; count--, in += w->move, out += w->step)
        EACH_SOME (at) {
            const float *restrict top = in + at, *middle = top + w->row_step, *bottom = middle + w->row_step;
            const size_t second = w->step, third = 2 * second;
            TQ_EACH_LANE (i, some) {
                const float above = 0 + top[i] + top[second + i] + top[third + i];
                const float until = above + middle[i] + middle[second + i] + middle[third + i];
                out[at + i] = clamp_float(p, (until + bottom[i] + bottom[second + i] + bottom[third + i]) / cells);
            }
        }
}

TQ_BODY void average_by_rows(const pool *p, const window *w, const float *restrict in, float *restrict out, size_t n,
                             const size_t most)
{
    if (w->height == 3 && w->width == 3 && n >= most)
        average_three(p, w, in, out, n, most);
    else
        average_f32(p, w, in, out, n, most);
}

/* ---- the rows: each body, for each instruction set ---- */

/* The number of whole windows from the x-th on, or 1. */
TQ_BODY int64_t windows_at(const pool *p, const line *l, const window *w, int64_t x, int64_t first)
{
    const int64_t whole = w->width == p->filter_w ? (l->columns - p->filter_w - first) / p->stride_w + 1 : 1;
    return whole < l->width - x ? whole : l->width - x;
}

/* Windows of few cells and channels are pooled in one call.  With stride 1 they are one window, of pixels with the
   channels of all. */
#define POOL(isa, target, name)                                                                          \
    target static void name##_##isa(const pool *p, const line *l, float *restrict out)                   \
    {                                                                                                    \
        const pool own = *p; /* stores cannot change it */                                               \
        window w = l->window;                                                                            \
        size_t work = 0;                                                                                 \
        for (int64_t x = 0, count; x < l->width; x += count) {                                           \
            int64_t first;                                                                               \
            w.width = tq_pool_clip(x, own.stride_w, own.pad_w, own.filter_w, l->columns, &first);        \
            w.left = first - (x * own.stride_w - own.pad_w);                                             \
            w.cells = w.height * w.width;                                                                \
            count = windows_at(&own, l, &w, x, first);                                                   \
            w.count = 1;                                                                                 \
            if (own.stride_w > 1) {                                                                      \
                if (w.cells <= ALIKE && w.step <= CHANNELS)                                              \
                    w.count = tq_min_size((size_t)count, ALIKE);                                         \
                count = (int64_t)w.count;                                                                \
            }                                                                                            \
            w.move = (size_t)own.stride_w * w.step;                                                      \
            const float *in = l->in + (size_t)first * w.step;                                            \
            const size_t n = (size_t)count * w.step / w.count;                                           \
            for (size_t c = 0; c < n && !tq_stop_count(&work, (size_t)w.cells * w.count * CHANNELS / 8); \
                 c += CHANNELS)                                                                          \
                name(&own, &w, in + c, out + c, tq_min_size(n - c, CHANNELS), MOST_##isa);               \
            out += (size_t)count * w.step;                                                               \
        }                                                                                                \
    }
#define POOLS(isa, target)             \
    POOL(isa, target, average_by_rows) \
    POOL(isa, target, average_xnnpack) \
    POOL(isa, target, l2_f32)          \
    POOL(isa, target, max_f32)
TQ_EVERY_ISA(POOLS)

typedef struct row {
    int32_t code;
    pool_fn run[TQ_ISAS];
} row;

#define ROW(code, run) {TQ_BuiltinOperator_##code, TQ_ISA_FUNCTIONS(run)}

static const row rows[] = {
    ROW(AVERAGE_POOL_2D, average_by_rows),
    ROW(MAX_POOL_2D, max_f32),
    ROW(L2_POOL_2D, l2_f32),
};

/* The row where XNNPACK's bits differ. */
static const row xnnpack_row = ROW(AVERAGE_POOL_2D, average_xnnpack);

static const row *row_of(const tq_node *node)
{
    if (node->numerics == TQ_NUMERICS_XNNPACK && node->row.code == xnnpack_row.code)
        return &xnnpack_row;
    const row *x = rows;
    while (x->code != node->row.code)
        x++;
    return x;
}

/* ---- all windows ---- */

typedef struct state {
    pool pool;
    pool_fn run;
} state;

typedef struct job {
    const state *s;
    const tq_tensor *in, *out;
} job;

static void pool_rows(void *context, size_t begin, size_t end)
{
    const job *j = context;
    const pool *p = &j->s->pool;
    const size_t depth = (size_t)j->in->shape.dims[3], row = (size_t)p->in_w * depth;
    line l = {.window = {.row_step = row, .step = depth}, .columns = p->in_w, .width = p->out_w};
    for (size_t unit = begin; unit < end && !tq_stop_after(depth); unit++) {
        int64_t first, batch = (int64_t)unit / p->out_h, out_y = (int64_t)unit % p->out_h;
        l.window.height = tq_pool_clip(out_y, p->stride_h, p->pad_h, p->filter_h, p->in_h, &first);
        l.window.top = first - (out_y * p->stride_h - p->pad_h);
        l.in = (const float *)j->in->data + ((size_t)batch * (size_t)p->in_h + (size_t)first) * row;
        j->s->run(p, &l, (float *)j->out->data + unit * (size_t)p->out_w * depth);
    }
}

static tq_status eval_pool(tq_node *node, tq_error *error)
{
    (void)error;
    job j = {node->state, node->in[0], node->out[0]};
    const pool *p = &j.s->pool; /* its rows, of an image that it turned, are not the output's */
    const int32_t *out = node->out[0]->shape.dims;
    const size_t row = (size_t)p->out_w * (size_t)out[3] * (size_t)p->filter_h * (size_t)p->filter_w;
    if (tq_tensor_count(node->out[0]) > 0)
        tq_parallel_work((size_t)out[0] * (size_t)p->out_h, 1, row * COST, node->threads, pool_rows, &j);
    return TQ_OK;
}

/* ---- preparing ---- */

/* Output size and leading padding of one dimension.  SAME: ceil(n / stride) windows, with the missing cells half before
   and half behind, the odd cell behind; VALID: whole windows only. */
static tq_status output_size(const tq_node *node, bool same, int64_t dim, int64_t stride, int64_t filter, int64_t *pad,
                             int32_t *out, tq_error *error)
{
    if (stride < 1 || filter < 1)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "has stride %lld and filter %lld; both need at least 1",
                          (long long)stride, (long long)filter);
    int64_t size = same ? (dim + stride - 1) / stride : (dim + stride - filter) / stride;
    int64_t missing = (size - 1) * stride + filter - dim;
    *pad = missing > 0 ? missing / 2 : 0;
    return tq_dim_of(node, size, out, error);
}

static void bounds(const tq_node *node, pool *p)
{
    int64_t activation = tq_get_int(&node->options.table, TQ_Pool2DOptions_fused_activation_function);
    const bool cuts = node->row.code == TQ_BuiltinOperator_MAX_POOL_2D && node->numerics != TQ_NUMERICS_XNNPACK;
    (cuts ? tq_activation_range_cut : tq_activation_range)(node, activation, &p->low, &p->high);
    tq_activation_range_f32(node, activation, &p->float_low, &p->float_high);
}

static pool turned(const pool *p)
{
    pool t = *p;
    t.in_h = p->in_w, t.out_h = p->out_w, t.stride_h = p->stride_w, t.filter_h = p->filter_w, t.pad_h = p->pad_w;
    t.in_w = p->in_h, t.out_w = p->out_h, t.stride_w = p->stride_h, t.filter_w = p->filter_h, t.pad_w = p->pad_h;
    return t;
}

/* A bound of the filter's cells that lie in the input, along one dimension. */
static uint64_t cells_in(int64_t filter, int64_t dim)
{
    return (uint64_t)(filter < dim ? filter : dim);
}

/* Whether whole blocks of the kernel have the activation's bounds cut to the type. */
static bool cuts_blocks(const tq_node *node)
{
    return node->row.code == TQ_BuiltinOperator_AVERAGE_POOL_2D && node->numerics != TQ_NUMERICS_REFERENCE;
}

tq_status tq_prepare_pool(tq_node *node, tq_error *error)
{
    pool p = {0};
    const bool l2 = node->row.code == TQ_BuiltinOperator_L2_POOL_2D;
    TQ_TRY(tq_check_input(node, 0, l2 ? TQ_T(FLOAT32) : TQ_T(FLOAT32) | TQ_T(INT8) | TQ_T(UINT8) | TQ_T(INT16), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_check_rank(node, 0, 4, 4, error));
    const tq_table *options = &node->options.table;
    if (tq_get_int(options, TQ_Pool2DOptions_fused_activation_function) != 0 &&
        node->in[0]->type != TQ_TensorType_FLOAT32)
        TQ_TRY(tq_check_activation_bounds(node, tq_get_int(options, TQ_Pool2DOptions_fused_activation_function),
                                          cuts_blocks(node), error));
    p.stride_h = tq_get_int(options, TQ_Pool2DOptions_stride_h);
    p.stride_w = tq_get_int(options, TQ_Pool2DOptions_stride_w);
    p.filter_h = tq_get_int(options, TQ_Pool2DOptions_filter_height);
    p.filter_w = tq_get_int(options, TQ_Pool2DOptions_filter_width);
    const int64_t padding = tq_get_int(options, TQ_Pool2DOptions_padding);
    if (padding != TQ_Padding_SAME && padding != TQ_Padding_VALID)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "padding is %lld; there are SAME (0) and VALID (1)",
                          (long long)padding);
    const bool same = padding == TQ_Padding_SAME;
    tq_shape shape = node->in[0]->shape;
    TQ_TRY(output_size(node, same, shape.dims[1], p.stride_h, p.filter_h, &p.pad_h, &shape.dims[1], error));
    TQ_TRY(output_size(node, same, shape.dims[2], p.stride_w, p.filter_w, &p.pad_w, &shape.dims[2], error));
    p.in_h = node->in[0]->shape.dims[1], p.in_w = node->in[0]->shape.dims[2];
    p.out_h = shape.dims[1], p.out_w = shape.dims[2];
    bounds(node, &p);
    TQ_TRY(tq_output_shape(node, 0, &shape, error));
    const uint64_t cells = cells_in(p.filter_h, p.in_h) * cells_in(p.filter_w, p.in_w);
    if (p.in_w == 1 && p.filter_w == 1 && p.out_w == 1) /* an image of one column lies in memory as one row does */
        p = turned(&p);
    tq_node_work(node, tq_shape_size(&shape), cells);
    if (node->in[0]->type != TQ_TensorType_FLOAT32)
        return tq_prepare_pool_integers(node, &p, cells, error);
    state *s = NULL;
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    *s = (state){p, row_of(node)->run[tq_isa()]};
    node->eval = eval_pool;
    return TQ_OK;
}
