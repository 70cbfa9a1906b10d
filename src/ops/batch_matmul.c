/* SPDX-License-Identifier: Apache-2.0
 *
 * BATCH_MATMUL: out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]; adj_x and adj_y say that a or b lies
 * with its last two dimensions swapped.  Leading dimensions broadcast.
 *
 *     float32             k in order
 *     int8, int16, 16x8   acc = sum (a - z_a)(b - z_b), in 32 bits for int8, else in 64;
 *                         clamp(multiply(acc, f64(f32(s_a * s_b)) / f64(s_o)) + z_o)
 *     int8 -> int32       sum a * b, of codes
 *     float32 x int8      each row of a quantized (ops/hybrid.h): f32(s_row * s_b) * f32(acc - z * sum(b))
 *
 * Source: LiteRT f6745779, tflite/kernels/batch_matmul.cc, internal/reference/batch_matmul.h.  There, hybrid
 * products of several batches read the wrong row sums, and scales along b's columns count in hybrid products alone.
 */
#include <string.h>

#include "ops/check.h"
#include "ops/dot.h"
#include "ops/hybrid.h"
#include "ops/parallel.h"
#include "ops/quantized.h"
#include "ops/scratch.h"

enum { LEFT, RIGHT };

typedef struct product product;
struct product {
    size_t m, n, k;
    bool swap_a, swap_b; /* a lies as [k, m], b as [n, k] */
    tq_shape batch;      /* the leading dimensions of the output */

    /* Makes one batch's operands ready; NULL: they are read as they lie. */
    const void *(*ready_a)(const product *p, const void *a, char *room);
    const void *(*ready_b)(const product *p, const void *b, char *room);
    void (*block)(const product *p, size_t m0, size_t m1, size_t n0, size_t n1);
    size_t size_a, size_b, size_out; /* of one element in memory */
    uint64_t a_at, b_at, rows_at, sums_at;

    size_t chunk; /* for tq_dot_i16; 0: products of int16 by int16 */
    bool wide;    /* multiply in 64 bits */
    int32_t zero_a, zero_b, zero_out, low, high;
    tq_fixed *multipliers; /* one, or one a column */
    size_t multiplier_step;
    tq_hybrid_rule rule;

    /* in eval */
    const tq_node *node;
    const void *a, *b;
    char *out;
    tq_hybrid_row *rows;
    int32_t *sums;
};

/* ---- operands ---- */

/* `rows` x `cols` elements of `size` bytes, to cols x rows. */
static void transpose(const char *from, size_t rows, size_t cols, size_t size, char *to)
{
    for (size_t c = 0; c < cols; c++)
        for (size_t r = 0; r < rows; r++, to += size)
            memcpy(to, from + (r * cols + c) * size, size);
}

static const void *rows_of_a(const product *p, const void *a, char *room)
{
    if (!p->swap_a)
        return a;
    transpose(a, p->k, p->m, p->size_a, room);
    return room;
}

/* float: [k, n], so that a row of the output is a sum of rows. */
static const void *rows_of_b(const product *p, const void *b, char *room)
{
    if (!p->swap_b)
        return b;
    transpose(b, p->n, p->k, p->size_b, room);
    return room;
}

/* codes: [n, k], so that an element of the output is a dot product. */
static const void *columns_of_b(const product *p, const void *b, char *room)
{
    if (p->swap_b)
        return b;
    transpose(b, p->k, p->n, p->size_b, room);
    return room;
}

static inline int32_t code_at(const void *codes, size_t size, size_t i)
{
    return size == 2 ? ((const int16_t *)codes)[i] : ((const int8_t *)codes)[i];
}

/* Element (row, i) of `rows` rows of k codes, or of its transpose, less the zero point. */
static void widen(const product *p, const void *codes, size_t size, bool swapped, size_t rows, int32_t zero_point,
                  int16_t *to)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < p->k; i++)
            *to++ = (int16_t)(code_at(codes, size, swapped ? i * rows + r : r * p->k + i) - zero_point);
}

static const void *wide_a(const product *p, const void *a, char *room)
{
    widen(p, a, p->size_a, p->swap_a, p->m, p->zero_a, (int16_t *)room);
    return room;
}

static const void *wide_b(const product *p, const void *b, char *room)
{
    widen(p, b, p->size_b, !p->swap_b, p->n, p->zero_b, (int16_t *)room);
    return room;
}

/* Codes of each row, which go behind the rows' floats. */
static const void *hybrid_a(const product *p, const void *a, char *room)
{
    const float *rows = rows_of_a(p, a, room);
    int8_t *codes = (int8_t *)(room + p->m * p->k * sizeof(float));
    for (size_t r = 0; r < p->m; r++)
        p->rows[r] = p->rule(rows + r * p->k, p->k, codes + r * p->k);
    return codes;
}

static const void *hybrid_b(const product *p, const void *b, char *room)
{
    const void *columns = columns_of_b(p, b, room);
    tq_row_sums(columns, p->n, p->k, p->sums);
    return columns;
}

/* ---- products of one batch, rows [m0, m1) by columns [n0, n1) ---- */

static void block_floats(const product *p, size_t m0, size_t m1, size_t n0, size_t n1)
{
    for (size_t m = m0; m < m1; m++) {
        const float *a = (const float *)p->a + m * p->k;
        float *out = (float *)p->out + m * p->n;
        memset(out + n0, 0, (n1 - n0) * sizeof *out);
        for (size_t k = 0; k < p->k; k++) {
            const float *b = (const float *)p->b + k * p->n;
            for (size_t n = n0; n < n1; n++)
                out[n] += b[n] * a[k];
        }
    }
}

/* A tensor has fewer than 2^31 rows of products below 2^31: no overflow. */
static int64_t dot_16x16(const int16_t *a, const int16_t *b, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (int32_t)a[i] * b[i];
    return sum;
}

static void block_codes(const product *p, size_t m0, size_t m1, size_t n0, size_t n1)
{
    for (size_t m = m0; m < m1; m++)
        for (size_t n = n0; n < n1; n++) {
            const int16_t *a = (const int16_t *)p->a + m * p->k, *b = (const int16_t *)p->b + n * p->k;
            int64_t acc = p->chunk ? tq_dot_i16(a, b, p->k, p->chunk) : dot_16x16(a, b, p->k);
            tq_fixed by = p->multipliers[n * p->multiplier_step];
            int32_t scaled = p->wide ? tq_multiply_i64(acc, by.multiplier, by.shift)
                                     : tq_multiply_fixed(tq_wrap_i32(acc), by);
            int32_t code = tq_clamp_i64((int64_t)scaled + p->zero_out, p->low, p->high);
            if (p->size_out == 2)
                ((int16_t *)p->out)[m * p->n + n] = (int16_t)code;
            else
                ((int8_t *)p->out)[m * p->n + n] = (int8_t)code;
        }
}

static void block_raw(const product *p, size_t m0, size_t m1, size_t n0, size_t n1)
{
    for (size_t m = m0; m < m1; m++)
        for (size_t n = n0; n < n1; n++)
            ((int32_t *)p->out)[m * p->n + n] =
                tq_wrap_i32(tq_dot_i8((const int8_t *)p->a + m * p->k, (const int8_t *)p->b + n * p->k, p->k));
}

static void block_hybrid(const product *p, size_t m0, size_t m1, size_t n0, size_t n1)
{
    const tq_tensor *b = p->node->in[RIGHT];
    for (size_t m = m0; m < m1; m++)
        for (size_t n = n0; n < n1; n++) {
            int64_t acc = tq_dot_i8((const int8_t *)p->a + m * p->k, (const int8_t *)p->b + n * p->k, p->k);
            acc -= (int64_t)p->rows[m].zero_point * p->sums[n];
            ((float *)p->out)[m * p->n + n] = (p->rows[m].scale * tq_scale_at(b, n)) * (float)tq_wrap_i32(acc);
        }
}

static void eval_rows(void *context, size_t begin, size_t end)
{
    const product *p = context;
    p->block(p, begin, end, 0, p->n);
}

static void eval_columns(void *context, size_t begin, size_t end)
{
    const product *p = context;
    p->block(p, 0, p->m, begin, end);
}

static void eval_batch(product *p)
{
    if (p->m >= (size_t)p->node->threads)
        tq_parallel_for(p->m, tq_grain(p->n * p->k), p->node->threads, eval_rows, p);
    else
        tq_parallel_for(p->n, tq_grain(p->m * p->k), p->node->threads, eval_columns, p);
}

/* The matrix of `shape` that batch number `at` of the output reads: dimensions of 1 repeat. */
static size_t matrix_at(const tq_shape *shape, const tq_shape *batch, size_t at)
{
    size_t index = 0, step = 1;
    for (int i = batch->rank - 1, d = shape->rank - 3; i >= 0; i--, d--) {
        size_t place = at % (size_t)batch->dims[i];
        at /= (size_t)batch->dims[i];
        if (d < 0)
            continue;
        if (shape->dims[d] != 1)
            index += place * step;
        step *= (size_t)shape->dims[d];
    }
    return index;
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    product p = *(const product *)node->state;
    p.node = node;
    p.rows = tq_scratch_at(node, p.rows_at);
    p.sums = tq_scratch_at(node, p.sums_at);
    size_t batches = tq_shape_size(&p.batch), held_b = SIZE_MAX, held_a = SIZE_MAX;
    if (batches == 0 || p.m == 0 || p.n == 0)
        return TQ_OK;
    for (size_t i = 0; i < batches; i++) {
        size_t a = matrix_at(&node->in[LEFT]->shape, &p.batch, i), b = matrix_at(&node->in[RIGHT]->shape, &p.batch, i);
        if (a != held_a)
            p.a = p.ready_a(&p, (const char *)node->in[LEFT]->data + a * p.m * p.k * p.size_a,
                            tq_scratch_at(node, p.a_at));
        if (b != held_b)
            p.b = p.ready_b(&p, (const char *)node->in[RIGHT]->data + b * p.k * p.n * p.size_b,
                            tq_scratch_at(node, p.b_at));
        held_a = a;
        held_b = b;
        p.out = (char *)node->out[0]->data + i * p.m * p.n * p.size_out;
        eval_batch(&p);
    }
    return TQ_OK;
}

/* ---- prepare ---- */

static tq_status check_types(const tq_node *node, tq_error *error)
{
    TQ_TRY(tq_check_counts(node, 2, 2, 1, 1, error));
    TQ_TRY(tq_check_input(node, LEFT, TQ_T(FLOAT32) | TQ_T(INT8) | TQ_T(INT16), error));
    switch (node->in[LEFT]->type) {
    case TQ_TensorType_FLOAT32:
        TQ_TRY(tq_check_input(node, RIGHT, TQ_T(FLOAT32) | TQ_T(INT8), error));
        return tq_check_output(node, 0, TQ_T(FLOAT32), error);
    case TQ_TensorType_INT8:
        TQ_TRY(tq_check_input(node, RIGHT, TQ_T(INT8), error));
        return tq_check_output(node, 0, TQ_T(INT8) | TQ_T(INT32), error);
    default:
        TQ_TRY(tq_check_input(node, RIGHT, TQ_T(INT16) | TQ_T(INT8), error));
        return tq_check_output(node, 0, TQ_T(INT16), error);
    }
}

static tq_status fit(tq_node *node, product *p, tq_error *error)
{
    TQ_TRY(tq_check_rank(node, LEFT, 2, 5, error));
    TQ_TRY(tq_check_rank(node, RIGHT, 2, 5, error));
    const tq_shape *a = &node->in[LEFT]->shape, *b = &node->in[RIGHT]->shape;
    p->swap_a = tq_get_int(&node->options.table, TQ_BatchMatMulOptions_adj_x) != 0;
    p->swap_b = tq_get_int(&node->options.table, TQ_BatchMatMulOptions_adj_y) != 0;
    const int32_t *tail_a = a->dims + a->rank - 2, *tail_b = b->dims + b->rank - 2;
    int32_t k_b = tail_b[p->swap_b];
    p->m = (size_t)tail_a[p->swap_a];
    p->k = (size_t)tail_a[!p->swap_a];
    p->n = (size_t)tail_b[!p->swap_b];
    if ((size_t)k_b != p->k)
        return tq_input_fail(node, RIGHT, error, "has %d rows to multiply; the other operand has %zu columns", k_b,
                             p->k);
    tq_shape out = {a->rank > b->rank ? a->rank : b->rank, {0}};
    for (int i = 0; i < out.rank - 2; i++) {
        int at_a = i - (out.rank - a->rank), at_b = i - (out.rank - b->rank);
        int32_t dim_a = at_a < 0 ? 1 : a->dims[at_a], dim_b = at_b < 0 ? 1 : b->dims[at_b];
        if (dim_a != dim_b && dim_a != 1 && dim_b != 1)
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "dimension %d is %d on the left and %d on the right", i,
                              dim_a, dim_b);
        out.dims[i] = dim_a == 1 ? dim_b : dim_a;
    }
    p->batch = out;
    p->batch.rank = out.rank - 2;
    out.dims[out.rank - 2] = (int32_t)p->m;
    out.dims[out.rank - 1] = (int32_t)p->n;
    return tq_output_shape(node, 0, &out, error);
}

/* The multipliers: one, or one a column where b has a scale for each. */
static tq_status prepare_codes(tq_node *node, product *p, tq_error *error)
{
    const tq_tensor *a = node->in[LEFT], *b = node->in[RIGHT], *out = node->out[0];
    int columns = b->shape.rank - (p->swap_b ? 2 : 1);
    bool many = b->quantization.count > 1;
    TQ_TRY(tq_check_input_scale(node, LEFT, error));
    TQ_TRY(tq_check_output_scale(node, 0, error));
    TQ_TRY(many ? tq_check_weight_scales(node, RIGHT, columns, error) : tq_check_input_scale(node, RIGHT, error));
    p->zero_a = tq_zero_point_at(a, 0);
    p->zero_b = tq_zero_point_at(b, 0);
    p->zero_out = tq_zero_point_at(out, 0);
    if (a->type == TQ_TensorType_INT16 && (p->zero_a || p->zero_b || p->zero_out))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "zero points are %d, %d and %d; with int16 they must be 0",
                          p->zero_a, p->zero_b, p->zero_out);
    size_t count = many ? p->n : 1;
    TQ_TRY(tq_node_memory(node, count, sizeof *p->multipliers, &p->multipliers, error));
    for (size_t n = 0; n < count; n++)
        p->multipliers[n] =
            tq_fixed_of((double)(tq_scale_at(a, 0) * tq_scale_at(b, n)) / (double)tq_scale_at(out, 0));
    p->multiplier_step = many;
    tq_code_range(out->type, &p->low, &p->high);
    p->wide = a->type == TQ_TensorType_INT16;
    p->chunk = a->type == TQ_TensorType_INT8 ? TQ_DOT_CODES : b->type == TQ_TensorType_INT8 ? TQ_DOT_16X8 : 0;
    return TQ_OK;
}

/* Picks the arithmetic; *item_a and *item_b: bytes of an element made ready in scratch. */
static tq_status choose(tq_node *node, product *p, size_t *item_a, size_t *item_b, tq_error *error)
{
    const tq_tensor *a = node->in[LEFT], *b = node->in[RIGHT];
    *item_a = p->swap_a ? p->size_a : 0;
    if (b->type == TQ_TensorType_FLOAT32) {
        p->ready_a = rows_of_a, p->ready_b = rows_of_b, p->block = block_floats;
        *item_b = p->swap_b ? p->size_b : 0;
        return TQ_OK;
    }
    *item_b = p->swap_b ? 0 : p->size_b;
    if (a->type == TQ_TensorType_FLOAT32) {
        p->ready_a = hybrid_a, p->ready_b = hybrid_b, p->block = block_hybrid;
        *item_a = sizeof(float) + 1;
        p->rule = tq_hybrid_rule_of(
            node, tq_get_int(&node->options.table, TQ_BatchMatMulOptions_asymmetric_quantize_inputs) != 0);
        return tq_check_weight_scales(node, RIGHT, b->shape.rank - (p->swap_b ? 2 : 1), error);
    }
    if (node->out[0]->type == TQ_TensorType_INT32) {
        p->ready_a = rows_of_a, p->ready_b = columns_of_b, p->block = block_raw;
        return TQ_OK;
    }
    p->ready_a = wide_a, p->ready_b = wide_b, p->block = block_codes;
    *item_a = *item_b = sizeof(int16_t);
    return prepare_codes(node, p, error);
}

tq_status tq_prepare_batch_matmul(tq_node *node, tq_error *error)
{
    TQ_TRY(check_types(node, error));
    product *p;
    TQ_TRY(tq_node_state(node, sizeof *p, &p, error));
    TQ_TRY(fit(node, p, error));
    p->size_a = tq_element_bytes(node->in[LEFT]->type);
    p->size_b = tq_element_bytes(node->in[RIGHT]->type);
    p->size_out = tq_element_bytes(node->out[0]->type);
    size_t item_a, item_b;
    TQ_TRY(choose(node, p, &item_a, &item_b, error));
    bool hybrid = p->block == block_hybrid;
    uint64_t total = 0;
    p->a_at = tq_scratch_part(&total, (uint64_t)p->m * p->k, item_a);
    p->b_at = tq_scratch_part(&total, (uint64_t)p->n * p->k, item_b);
    p->rows_at = tq_scratch_part(&total, hybrid ? p->m : 0, sizeof(tq_hybrid_row));
    p->sums_at = tq_scratch_part(&total, hybrid ? p->n : 0, sizeof(int32_t));
    node->eval = eval;
    return tq_node_scratch(node, total, error);
}
