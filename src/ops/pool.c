/* SPDX-License-Identifier: Apache-2.0
 *
 * AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D over [batch, height, width, channels].
 *
 * Only the n cells of a window that lie in the input count:
 *     average  float: sum / n;  int8, int16: tdiv(sum +- n / 2, n), away from zero;  uint8: (sum + n / 2) / n
 *     max      of codes or floats;  L2: sqrt(sum(x * x) / n)
 * then the fused activation.  Windows are walked row by row, so float sums round as in the reference.
 * Source: LiteRT f6745779, tflite/kernels/pooling.cc, internal/reference/pooling.h, integer_ops/pooling.h.
 */
#include <float.h>
#include <math.h>

#include "base/threads.h"
#include "ops/check.h"
#include "ops/movement.h"
#include "ops/quantized.h"

/* Channels that are pooled at once, with their sums on the stack. */
#define CHANNELS 256

/* Bytes of input for which a thread is worth waking. */
#define THREAD_ELEMENTS ((int64_t)1 << 15)

typedef struct window {
    int64_t cells;          /* n */
    int64_t height, width;  /* of the part in the input */
    size_t row_step, step;  /* elements from one row, one cell, to the next */
} window;

typedef struct pool pool;
struct pool {
    int64_t stride_h, stride_w, filter_h, filter_w, pad_h, pad_w;
    int32_t low, high;         /* of codes */
    float float_low, float_high;
    size_t element;
    /* pools n channels of one window */
    void (*run)(const pool *p, const window *w, const void *in, void *out, size_t n);
};

/* ---- one window ----
   EACH_CELL runs its body with x, the cell's channels. */

#define EACH_CELL(type, in, body)                                                     \
    for (int64_t y = 0; y < w->height; y++)                                           \
        for (int64_t c = 0; c < w->width; c++) {                                      \
            const type *restrict x =                                                  \
                (const type *)(in) + (size_t)y * w->row_step + (size_t)c * w->step;   \
            for (size_t i = 0; i < n; i++) {                                          \
                body;                                                                 \
            }                                                                         \
        }

static float clamp_float(const pool *p, float x)
{
    x = x < p->float_low ? p->float_low : x;
    return p->float_high < x ? p->float_high : x;
}

static void average_f32(const pool *p, const window *w, const void *in, void *out, size_t n)
{
    float sum[CHANNELS] = {0}, *restrict y_out = out, cells = (float)w->cells;
    EACH_CELL(float, in, sum[i] += x[i])
    for (size_t i = 0; i < n; i++)
        y_out[i] = clamp_float(p, sum[i] / cells);
}

static void l2_f32(const pool *p, const window *w, const void *in, void *out, size_t n)
{
    float sum[CHANNELS] = {0}, *restrict y_out = out, cells = (float)w->cells;
    EACH_CELL(float, in, sum[i] += x[i] * x[i])
    for (size_t i = 0; i < n; i++)
        y_out[i] = clamp_float(p, sqrtf(sum[i] / cells));
}

static void max_f32(const pool *p, const window *w, const void *in, void *out, size_t n)
{
    float *restrict most = out;
    for (size_t i = 0; i < n; i++)
        most[i] = -FLT_MAX;
    EACH_CELL(float, in, most[i] = most[i] < x[i] ? x[i] : most[i])
    for (size_t i = 0; i < n; i++)
        most[i] = clamp_float(p, most[i]);
}

/* Sums of codes wrap: only windows of 2^16 cells of 16-bit codes could. */
#define INTEGER_POOLS(name, type, least)                                                                    \
    static void average_##name(const pool *p, const window *w, const void *in, void *out, size_t n)         \
    {                                                                                                       \
        uint32_t sum[CHANNELS] = {0};                                                                       \
        type *restrict y_out = out;                                                                         \
        int64_t cells = w->cells;                                                                           \
        EACH_CELL(type, in, sum[i] += (uint32_t)(int32_t)x[i])                                              \
        for (size_t i = 0; i < n; i++) {                                                                    \
            int64_t s = (int32_t)sum[i];                                                                    \
            s = s > 0 ? (s + cells / 2) / cells : (s - cells / 2) / cells;                                  \
            y_out[i] = (type)tq_clamp_i64(s, p->low, p->high);                                              \
        }                                                                                                   \
    }                                                                                                       \
    static void max_##name(const pool *p, const window *w, const void *in, void *out, size_t n)             \
    {                                                                                                       \
        type *restrict most = out;                                                                          \
        for (size_t i = 0; i < n; i++)                                                                      \
            most[i] = least;                                                                                \
        EACH_CELL(type, in, most[i] = most[i] < x[i] ? x[i] : most[i])                                      \
        for (size_t i = 0; i < n; i++)                                                                      \
            most[i] = (type)tq_clamp_i64(most[i], p->low, p->high);                                         \
    }
INTEGER_POOLS(i8, int8_t, INT8_MIN)
INTEGER_POOLS(u8, uint8_t, 0)
INTEGER_POOLS(i16, int16_t, INT16_MIN)

typedef struct row {
    int32_t code, type;
    void (*run)(const pool *p, const window *w, const void *in, void *out, size_t n);
} row;

static const row rows[] = {
    {TQ_BuiltinOperator_AVERAGE_POOL_2D, TQ_TensorType_FLOAT32, average_f32},
    {TQ_BuiltinOperator_AVERAGE_POOL_2D, TQ_TensorType_INT8, average_i8},
    {TQ_BuiltinOperator_AVERAGE_POOL_2D, TQ_TensorType_UINT8, average_u8},
    {TQ_BuiltinOperator_AVERAGE_POOL_2D, TQ_TensorType_INT16, average_i16},
    {TQ_BuiltinOperator_MAX_POOL_2D, TQ_TensorType_FLOAT32, max_f32},
    {TQ_BuiltinOperator_MAX_POOL_2D, TQ_TensorType_INT8, max_i8},
    {TQ_BuiltinOperator_MAX_POOL_2D, TQ_TensorType_UINT8, max_u8},
    {TQ_BuiltinOperator_MAX_POOL_2D, TQ_TensorType_INT16, max_i16},
    {TQ_BuiltinOperator_L2_POOL_2D, TQ_TensorType_FLOAT32, l2_f32},
};
#define ROWS (sizeof rows / sizeof rows[0])

/* ---- all windows ---- */

typedef struct job {
    const pool *p;
    const tq_tensor *in, *out;
} job;

/* Where a window at output `at` meets the input: its first cell, and how many. */
static int64_t meet(int64_t at, int64_t stride, int64_t pad, int64_t filter, int64_t dim, int64_t *first)
{
    int64_t begin = at * stride - pad, end = begin + filter;
    *first = begin > 0 ? begin : 0;
    return (end < dim ? end : dim) - *first;
}

static void pool_rows(void *context, size_t begin, size_t end)
{
    const job *j = context;
    const pool *p = j->p;
    const int32_t *in = j->in->shape.dims, *out = j->out->shape.dims;
    size_t depth = (size_t)in[3], width = (size_t)in[2];
    for (size_t unit = begin; unit < end; unit++) {
        int64_t y0, x0, batch = (int64_t)unit / out[1], out_y = (int64_t)unit % out[1];
        window w = {.row_step = width * depth, .step = depth};
        w.height = meet(out_y, p->stride_h, p->pad_h, p->filter_h, in[1], &y0);
        for (int64_t out_x = 0; out_x < out[2]; out_x++) {
            w.width = meet(out_x, p->stride_w, p->pad_w, p->filter_w, in[2], &x0);
            w.cells = w.height * w.width;
            size_t from = (((size_t)batch * (size_t)in[1] + (size_t)y0) * width + (size_t)x0) * depth;
            size_t to = (unit * (size_t)out[2] + (size_t)out_x) * depth;
            for (size_t c = 0; c < depth; c += CHANNELS)
                p->run(p, &w, (const char *)j->in->data + (from + c) * p->element,
                       (char *)j->out->data + (to + c) * p->element, depth - c < CHANNELS ? depth - c : CHANNELS);
        }
    }
}

static tq_status eval_pool(tq_node *node, tq_error *error)
{
    (void)error;
    job j = {node->state, node->in[0], node->out[0]};
    const int32_t *out = node->out[0]->shape.dims;
    if (tq_tensor_count(node->out[0]) == 0)
        return TQ_OK;
    bool large = (int64_t)tq_tensor_count(node->in[0]) >= THREAD_ELEMENTS;
    tq_parallel_for((size_t)out[0] * (size_t)out[1], 1, large ? node->threads : 1, pool_rows, &j);
    return TQ_OK;
}

/* ---- preparing ---- */

/* Output size and padding of one dimension.  SAME: ceil(n / stride), what is missing split with the odd cell
   behind; VALID: whole windows only. */
static tq_status place(const tq_node *node, bool same, int64_t dim, int64_t stride, int64_t filter, int64_t *pad,
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
    tq_activation_codes(activation, node->out[0], &p->low, &p->high);
    tq_activation_floats(activation, &p->float_low, &p->float_high);
    /* The reference's "no bound" is the greatest finite float: it turns infinities into that. */
    p->float_low = p->float_low < -FLT_MAX ? -FLT_MAX : p->float_low;
    p->float_high = p->float_high > FLT_MAX ? FLT_MAX : p->float_high;
}

tq_status tq_prepare_pool(tq_node *node, tq_error *error)
{
    pool *p = NULL;
    unsigned types = 0;
    for (size_t i = 0; i < ROWS; i++)
        types |= rows[i].code == node->row.code ? 1u << rows[i].type : 0;
    TQ_TRY(tq_check_counts(node, 1, 1, 1, 1, error));
    TQ_TRY(tq_check_input(node, 0, types, error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_check_rank(node, 0, 4, 4, error));
    const tq_table *options = &node->options.table;
    if (tq_get_int(options, TQ_Pool2DOptions_fused_activation_function) != 0 &&
        node->in[0]->type != TQ_TensorType_FLOAT32)
        TQ_TRY(tq_check_output_scale(node, 0, error));
    TQ_TRY(tq_node_state(node, sizeof *p, &p, error));
    p->stride_h = tq_get_int(options, TQ_Pool2DOptions_stride_h);
    p->stride_w = tq_get_int(options, TQ_Pool2DOptions_stride_w);
    p->filter_h = tq_get_int(options, TQ_Pool2DOptions_filter_height);
    p->filter_w = tq_get_int(options, TQ_Pool2DOptions_filter_width);
    bool same = tq_get_int(options, TQ_Pool2DOptions_padding) == TQ_Padding_SAME;
    tq_shape shape = node->in[0]->shape;
    TQ_TRY(place(node, same, shape.dims[1], p->stride_h, p->filter_h, &p->pad_h, &shape.dims[1], error));
    TQ_TRY(place(node, same, shape.dims[2], p->stride_w, p->filter_w, &p->pad_w, &shape.dims[2], error));
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].code == node->row.code && rows[i].type == node->in[0]->type)
            p->run = rows[i].run;
    p->element = tq_element_bytes(node->in[0]->type);
    bounds(node, p);
    node->eval = eval_pool;
    return tq_output_shape(node, 0, &shape, error);
}
