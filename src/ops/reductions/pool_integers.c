/* SPDX-License-Identifier: Apache-2.0
 *
 * AVERAGE_POOL_2D and MAX_POOL_2D of integers, whose sums and maxima are exact in any order: first down the rows of the
 * windows, all columns and channels of an output row at once, then across the columns of each window.  So even a few
 * channels fill vectors.
 */
#include <string.h>

#include "kernels/isa.h"
#include "ops/check.h"
#include "ops/parallel.h"
#include "ops/quantized.h"
#include "ops/reductions/pool_integers.h"
#include "ops/scratch.h"

/* Channels that are pooled at once.  A pixel's last chunk may reach into the next pixel, whose own result then
   overwrites it; behind the last pixel of a row stand CHUNK elements of slack. */
#define CHUNK 16

#define COST 25 /* picoseconds for an element that is added to another */

/* ---- down ---- */

/* down[i] = the maximum, or the sum modulo 2^32, of element i of `rows` >= 1 rows, row_step elements apart. */
typedef void (*down_fn)(const void *in, size_t row_step, int64_t rows, size_t n, void *down);

#define MORE(a, b) ((a) < (b) ? (b) : (a))
#define SUM(a, b) (int32_t)((uint32_t)(a) + (uint32_t)(b))
#define DOWN(name, type, down_t, fold)                                                     \
    TQ_BODY void name(const void *in, size_t row_step, int64_t rows, size_t n, void *down) \
    {                                                                                      \
        const type *x = in, *next = x + row_step;                                          \
        down_t *restrict to = down;                                                        \
        if (rows == 1)                                                                     \
            for (size_t i = 0; i < n; i++)                                                 \
                to[i] = x[i];                                                              \
        else                                                                               \
            for (size_t i = 0; i < n; i++)                                                 \
                to[i] = (down_t)fold(x[i], next[i]);                                       \
        for (int64_t y = 2; y < rows; y++) {                                               \
            next += row_step;                                                              \
            for (size_t i = 0; i < n; i++)                                                 \
                to[i] = (down_t)fold(to[i], next[i]);                                      \
        }                                                                                  \
    }
DOWN(most_down_i8, int8_t, int8_t, MORE)
DOWN(most_down_u8, uint8_t, uint8_t, MORE)
DOWN(most_down_i16, int16_t, int16_t, MORE)
DOWN(few_down_i8, int8_t, int16_t, SUM)
DOWN(few_down_u8, uint8_t, int16_t, SUM)
DOWN(sum_down_i8, int8_t, int32_t, SUM)
DOWN(sum_down_u8, uint8_t, int32_t, SUM)
DOWN(sum_down_i16, int16_t, int32_t, SUM)

/* ---- across ---- */

/* An output row of `width` pixels from `down`, [columns][depth] of `rows` rows. */
struct line {
    const tq_pool *p;
    const void *down;
    int64_t rows;
    int32_t columns, depth, width;
};
typedef void (*across_fn)(const struct line *line, void *out);

#define MOST(name, type, down_t, real)                                                                        \
    TQ_BODY void name(const tq_pool *p, const down_t *restrict x, size_t columns, size_t depth, int64_t rows, \
                      type *restrict out)                                                                     \
    {                                                                                                         \
        const type low = (type)p->low, high = (type)p->high;                                                  \
        type most[CHUNK];                                                                                     \
        (void)rows;                                                                                           \
        for (size_t i = 0; i < CHUNK; i++)                                                                    \
            most[i] = x[i];                                                                                   \
        for (size_t k = 1; k < columns; k++)                                                                  \
            for (size_t i = 0; i < CHUNK; i++)                                                                \
                most[i] = MORE(most[i], x[k * depth + i]);                                                    \
        for (size_t i = 0; i < CHUNK; i++) {                                                                  \
            const type raised = MORE(most[i], low); /* compilers do not vectorize nested choices */           \
            out[i] = raised > high ? high : raised;                                                           \
        }                                                                                                     \
    }

/* tdiv(s +- n / 2, n) of n cells, in floating point.  A quotient that is no integer is at least 1 / n away from every
   integer, more than its rounding error while s is below 2^24 for float (2^53 for double) and the quotient below 2^8
   (2^16).  Sums of fewer than 2^16 cells of 8 bits are below 2^24. */
#define AVERAGE(name, type, down_t, real)                                                                     \
    TQ_BODY void name(const tq_pool *p, const down_t *restrict x, size_t columns, size_t depth, int64_t rows, \
                      type *restrict out)                                                                     \
    {                                                                                                         \
        const int32_t low = p->low, high = p->high, n = (int32_t)rows * (int32_t)columns, half = n / 2;       \
        int32_t sum[CHUNK];                                                                                   \
        for (size_t i = 0; i < CHUNK; i++)                                                                    \
            sum[i] = x[i];                                                                                    \
        for (size_t k = 1; k < columns; k++)                                                                  \
            for (size_t i = 0; i < CHUNK; i++)                                                                \
                sum[i] = SUM(sum[i], x[k * depth + i]);                                                       \
        for (size_t i = 0; i < CHUNK; i++) {                                                                  \
            const int32_t rounded = SUM(sum[i], sum[i] > 0 ? half : -half);                                   \
            int32_t q = (int32_t)((real)rounded / (real)n);                                                   \
            q = q < low ? low : q;                                                                            \
            out[i] = (type)(q > high ? high : q);                                                             \
        }                                                                                                     \
    }

/* Windows of 2^16 cells and more, beyond that bound.  Sums wrap where the reference's would overflow. */
#define AVERAGE_HUGE(name, type, down_t, real)                                                                \
    TQ_BODY void name(const tq_pool *p, const down_t *restrict x, size_t columns, size_t depth, int64_t rows, \
                      type *restrict out)                                                                     \
    {                                                                                                         \
        const int64_t n = rows * (int64_t)columns;                                                            \
        for (size_t i = 0; i < CHUNK; i++) {                                                                  \
            uint32_t sum = 0;                                                                                 \
            for (size_t k = 0; k < columns && !tq_stop_after(1); k++)                                         \
                sum += (uint32_t)x[k * depth + i];                                                            \
            const int64_t s = (int32_t)sum;                                                                   \
            out[i] = (type)tq_clamp_i64((s > 0 ? s + n / 2 : s - n / 2) / n, p->low, p->high);                \
        }                                                                                                     \
    }

/* name: of a window's chunk and, with across_ before it, of an output row. */
#define ACROSS(fold, name, type, down_t, real)                                                                  \
    fold(name, type, down_t, real) TQ_BODY void across_##name(const struct line *line, void *out)               \
    {                                                                                                           \
        const tq_pool *p = line->p;                                                                             \
        const size_t depth = (size_t)line->depth;                                                               \
        size_t work = 0;                                                                                        \
        type *y = out;                                                                                          \
        for (int32_t i = 0; i < line->width; i++, y += depth) {                                                 \
            int64_t first;                                                                                      \
            const int64_t columns = tq_pool_clip(i, p->stride_w, p->pad_w, p->filter_w, line->columns, &first); \
            const down_t *x = (const down_t *)line->down + (size_t)first * depth;                               \
            for (size_t c = 0; c < depth && !tq_stop_count(&work, (size_t)columns * CHUNK / 8); c += CHUNK)     \
                name(p, x + c, (size_t)columns, depth, line->rows, y + c);                                      \
        }                                                                                                       \
    }
ACROSS(MOST, most_i8, int8_t, int8_t, )
ACROSS(MOST, most_u8, uint8_t, uint8_t, )
ACROSS(MOST, most_i16, int16_t, int16_t, )
ACROSS(AVERAGE, few_i8, int8_t, int16_t, float)
ACROSS(AVERAGE, few_u8, uint8_t, int16_t, float)
ACROSS(AVERAGE, many_i8, int8_t, int32_t, float)
ACROSS(AVERAGE, many_u8, uint8_t, int32_t, float)
ACROSS(AVERAGE, many_i16, int16_t, int32_t, double)
ACROSS(AVERAGE_HUGE, huge_i8, int8_t, int32_t, )
ACROSS(AVERAGE_HUGE, huge_u8, uint8_t, int32_t, )
ACROSS(AVERAGE_HUGE, huge_i16, int16_t, int32_t, )

/* ---- the rows: each body, for each instruction set ---- */

#define DOWN_ON(isa, target, name)                                                                       \
    target static void name##_##isa(const void *in, size_t row_step, int64_t rows, size_t n, void *down) \
    {                                                                                                    \
        name(in, row_step, rows, n, down);                                                               \
    }
#define ACROSS_ON(isa, target, name)                                             \
    target static void across_##name##_##isa(const struct line *line, void *out) \
    {                                                                            \
        across_##name(line, out);                                                \
    }
#define BODIES_8BIT(isa, target)       \
    DOWN_ON(isa, target, most_down_i8) \
    DOWN_ON(isa, target, most_down_u8) \
    DOWN_ON(isa, target, few_down_i8)  \
    DOWN_ON(isa, target, few_down_u8)  \
    DOWN_ON(isa, target, sum_down_i8)  \
    DOWN_ON(isa, target, sum_down_u8)  \
    ACROSS_ON(isa, target, few_i8)     \
    ACROSS_ON(isa, target, few_u8)     \
    ACROSS_ON(isa, target, many_i8)    \
    ACROSS_ON(isa, target, many_u8)
#define BODIES_16BIT(isa, target)       \
    DOWN_ON(isa, target, most_down_i16) \
    DOWN_ON(isa, target, sum_down_i16)  \
    ACROSS_ON(isa, target, most_i16)    \
    ACROSS_ON(isa, target, many_i16)
TQ_EVERY_ISA_TO_AVX2(BODIES_8BIT)
ACROSS_ON(scalar, , most_i8)
ACROSS_ON(scalar, , most_u8)
TQ_EVERY_ISA(BODIES_16BIT)
ACROSS_ON(scalar, , huge_i8)
ACROSS_ON(scalar, , huge_u8)
ACROSS_ON(scalar, , huge_i16)

#if TQ_X86
#include <immintrin.h>

/* Maxima of bytes, 32 at once and then a chunk: compilers keep an array of 32 in memory. */
#define MOST_ON_AVX2(name, maximum, minimum)                                                                        \
    TQ_TARGET_AVX2 static void across_##name##_avx2(const struct line *line, void *out)                             \
    {                                                                                                               \
        const tq_pool p = *line->p;                                                                                 \
        const __m256i low = _mm256_set1_epi8((char)p.low), high = _mm256_set1_epi8((char)p.high);                   \
        const size_t depth = (size_t)line->depth, whole = depth / 32 * 32;                                          \
        size_t work = 0;                                                                                            \
        char *y = out;                                                                                              \
        if (whole == 0) {                                                                                           \
            across_##name(line, out);                                                                               \
            return;                                                                                                 \
        }                                                                                                           \
        for (int32_t i = 0; i < line->width; i++, y += depth) {                                                     \
            int64_t first;                                                                                          \
            const size_t columns = (size_t)tq_pool_clip(i, p.stride_w, p.pad_w, p.filter_w, line->columns, &first); \
            const char *x = (const char *)line->down + (size_t)first * depth;                                       \
            if (tq_stop_count(&work, columns * depth / 8))                                                          \
                return;                                                                                             \
            for (size_t c = 0; c < whole; c += 32) {                                                                \
                __m256i most = low;                                                                                 \
                for (size_t k = 0; k < columns; k++)                                                                \
                    most = maximum(most, _mm256_loadu_si256((const __m256i *)(x + k * depth + c)));                 \
                _mm256_storeu_si256((__m256i *)(y + c), minimum(most, high));                                       \
            }                                                                                                       \
            for (size_t c = whole; c < depth; c += CHUNK)                                                           \
                name(&p, (const void *)(x + c), columns, depth, line->rows, (void *)(y + c));                       \
        }                                                                                                           \
    }
MOST_ON_AVX2(most_i8, _mm256_max_epi8, _mm256_min_epi8)
MOST_ON_AVX2(most_u8, _mm256_max_epu8, _mm256_min_epu8)
#endif

/* `cells`: the row is for windows of at most so many cells. */
struct row {
    int32_t code, type;
    uint64_t cells;
    uint8_t down_bytes;
    down_fn down[TQ_ISAS];
    across_fn across[TQ_ISAS];
};
#define ROW(code, type, cells, down_t, down, across) \
    {TQ_BuiltinOperator_##code, TQ_TensorType_##type, cells, sizeof(down_t), down, across}
#define EVERY TQ_ISA_FUNCTIONS
#define TO_AVX2 TQ_ISA_FUNCTIONS_TO_AVX2

/* Sums of up to 128 cells of 8 bits fit 16 bits.  The first row that fits is taken. */
static const struct row rows[] = {
    ROW(MAX_POOL_2D, INT8, UINT64_MAX, int8_t, TO_AVX2(most_down_i8), TO_AVX2(across_most_i8)),
    ROW(MAX_POOL_2D, UINT8, UINT64_MAX, uint8_t, TO_AVX2(most_down_u8), TO_AVX2(across_most_u8)),
    ROW(MAX_POOL_2D, INT16, UINT64_MAX, int16_t, EVERY(most_down_i16), EVERY(across_most_i16)),
    ROW(AVERAGE_POOL_2D, INT8, 128, int16_t, TO_AVX2(few_down_i8), TO_AVX2(across_few_i8)),
    ROW(AVERAGE_POOL_2D, UINT8, 128, int16_t, TO_AVX2(few_down_u8), TO_AVX2(across_few_u8)),
    ROW(AVERAGE_POOL_2D, INT8, UINT16_MAX, int32_t, TO_AVX2(sum_down_i8), TO_AVX2(across_many_i8)),
    ROW(AVERAGE_POOL_2D, UINT8, UINT16_MAX, int32_t, TO_AVX2(sum_down_u8), TO_AVX2(across_many_u8)),
    ROW(AVERAGE_POOL_2D, INT16, UINT16_MAX, int32_t, EVERY(sum_down_i16), EVERY(across_many_i16)),
    ROW(AVERAGE_POOL_2D, INT8, UINT64_MAX, int32_t, TO_AVX2(sum_down_i8), TQ_ISA_SAME(across_huge_i8_scalar)),
    ROW(AVERAGE_POOL_2D, UINT8, UINT64_MAX, int32_t, TO_AVX2(sum_down_u8), TQ_ISA_SAME(across_huge_u8_scalar)),
    ROW(AVERAGE_POOL_2D, INT16, UINT64_MAX, int32_t, EVERY(sum_down_i16), TQ_ISA_SAME(across_huge_i16_scalar)),
};

static const struct row *row_of(const tq_node *node, uint64_t cells)
{
    const struct row *row = rows;
    while (row->code != node->row.code || row->type != node->in[0]->type || row->cells < cells)
        row++;
    return row;
}

/* ---- all windows ---- */

struct state {
    tq_pool pool;
    down_fn down;
    across_fn across;
    size_t in_bytes, down_bytes; /* of an element */
    uint64_t row_at, share_bytes; /* a thread's scratch: [columns][depth] of `down`, then an output row */
};

struct call {
    const struct state *s;
    const tq_tensor *in, *out;
    char *scratch;
};

static void down_row(const struct state *s, const char *in, size_t row_step, int64_t rows, char *down)
{
    for (size_t i = 0; i < row_step && !tq_stop_after(TQ_CHUNK); i += TQ_CHUNK) {
        const size_t n = row_step - i < TQ_CHUNK ? row_step - i : TQ_CHUNK;
        s->down(in + i * s->in_bytes, row_step, rows, n, down + i * s->down_bytes);
    }
    memset(down + row_step * s->down_bytes, 0, CHUNK * s->down_bytes);
}

/* Output rows [begin, end) of all images. */
static void run_rows(void *context, size_t share, size_t begin, size_t end)
{
    const struct call *call = context;
    const struct state *s = call->s;
    const tq_pool *p = &s->pool;
    const int32_t *in = call->in->shape.dims;
    const size_t row_step = (size_t)p->in_w * (size_t)in[3];
    const size_t out_bytes = (size_t)p->out_w * (size_t)in[3] * s->in_bytes;
    char *down = call->scratch + share * s->share_bytes, *made = down + s->row_at;
    size_t work = 0;
    for (size_t unit = begin; unit < end; unit++) {
        int64_t first;
        struct line line = {.p = p, .down = down, .columns = p->in_w, .depth = in[3], .width = p->out_w};
        line.rows = tq_pool_clip((int64_t)unit % p->out_h, p->stride_h, p->pad_h, p->filter_h, p->in_h, &first);
        const size_t from = unit / (size_t)p->out_h * (size_t)p->in_h + (size_t)first;
        down_row(s, (const char *)call->in->data + from * row_step * s->in_bytes, row_step, line.rows, down);
        char *out = (char *)call->out->data + unit * out_bytes;
        const bool in_place = line.depth % CHUNK == 0; /* no chunk reaches behind the row */
        s->across(&line, in_place ? out : made);
        if (!in_place)
            memcpy(out, made, out_bytes);
        if (tq_stop_count(&work, (size_t)line.rows * row_step / 8))
            return;
    }
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    if (tq_tensor_count(node->out[0]) == 0)
        return TQ_OK;
    const struct state *s = node->state;
    const int32_t *in = node->in[0]->shape.dims;
    const tq_pool *p = &s->pool; /* it may be turned; the shapes never are */
    const size_t across = (size_t)p->out_w * (size_t)p->filter_w, down = (size_t)p->in_w * (size_t)p->filter_h;
    const size_t rows = (size_t)in[0] * (size_t)p->out_h;
    struct call call = {s, node->in[0], node->out[0], tq_scratch_at(node, 0)};
    const int threads = tq_paying_threads(rows, (across + down) * (size_t)in[3] * COST, node->threads);
    tq_parallel_shares(rows, threads, run_rows, &call);
    return TQ_OK;
}

tq_status tq_prepare_pool_integers(tq_node *node, const tq_pool *pool, uint64_t cells, tq_error *error)
{
    const struct row *how = row_of(node, cells);
    const uint64_t depth = (uint64_t)node->in[0]->shape.dims[3];
    struct state *s = NULL;
    uint64_t total = 0;
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    *s = (struct state){.pool = *pool, .down = how->down[tq_isa()], .across = how->across[tq_isa()]};
    s->in_bytes = tq_element_bytes(node->in[0]->type), s->down_bytes = how->down_bytes;
    tq_scratch_part(&total, (uint64_t)pool->in_w * depth + CHUNK, s->down_bytes);
    s->row_at = tq_scratch_part(&total, (uint64_t)pool->out_w * depth + CHUNK, s->in_bytes);
    s->share_bytes = tq_share_bytes(total, node->threads);
    node->eval = eval;
    total = 0;
    tq_scratch_part(&total, s->share_bytes, (uint64_t)(node->threads > 1 ? node->threads : 1));
    return tq_node_scratch(node, total, error);
}
