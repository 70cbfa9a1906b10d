/* SPDX-License-Identifier: Apache-2.0
 *
 * BATCH_MATMUL: out[..., m, n] = sum over k of a[..., m, k] * b[..., k, n].  With adj_x or adj_y the last two
 * dimensions of a or b are swapped.  Leading dimensions broadcast.
 *
 *     float32             in the order of kernels/gemm/gemm.h
 *     int8, int16, 16x8   acc = sum (a - z_a)(b - z_b), in 32 bits for int8, else in 64;
 *                         clamp(multiply(acc, f64(f32(s_a * s_b)) / f64(s_o)) + z_o)
 *                         XNNPACK: rounded once, to even (product.h)
 *     int8 -> int32       sum a * b of quantized values
 *     float32 x int8      each row of a quantized (ops/products/hybrid.h): f32(s_row * s_b) * f32(acc - z * sum(b)), or
 *                         XNNPACK's f32(f32(acc - z * sum(b)) * s_row) * s_b
 *
 * Source: LiteRT f6745779, tflite/kernels/batch_matmul.cc, internal/reference/batch_matmul.h.  In LiteRT,
 * hybrid products of several batches read the wrong row sums, and only hybrid products use scales along b's columns.
 */
#include "kernels/gemm/gemm.h"
#include "ops/check.h"
#include "ops/movement/strided_copy.h"
#include "ops/products/hybrid.h"
#include "ops/parallel.h"
#include "ops/quantized.h"
#include "ops/scratch.h"

enum { LEFT, RIGHT };

typedef struct product {
    size_t m, n, k;
    bool swap_a, swap_b; /* a is stored as [k, m], b as [n, k] */
    tq_shape batch;      /* the leading dimensions of the output */
    size_t size_a, size_b, size_out; /* of one element in memory */

    tq_gemm plan;
    bool constant;            /* node->prepacked has a tq_gemm for each matrix of b, then the prepacked matrices */
    uint64_t packed_at, each; /* offset and bytes of the prepacked matrices */
    tq_gemm_store store;
    tq_hybrid_rule rule; /* hybrid; else NULL */
    /* int16 times int16, without a matrix kernel */
    bool is_int16;
    tq_fixed *multipliers; /* one, or one a column */
    size_t multiplier_step;

    tq_strided transposed_a, transposed_b; /* where a is swapped; where int16 products need columns of b */

    size_t jobs; /* parts of the batches, each computed by one thread; 1: all threads share every product */
    uint64_t job_bytes; /* scratch of a job */
    uint64_t a_at, b_at, quantized_at, rows_at, work_at; /* in a job's scratch */

    /* set by eval */
    const tq_node *node;
    char *scratch; /* the job's */
    int threads;   /* of a product */
    const void *a, *b;
    tq_gemm gemm;
    char *out;
    tq_hybrid_row *rows;
} product;

/* From [rows][cols] elements of `size` bytes to [cols][rows]. */
static void plan_transposition(tq_strided *copy, size_t rows, size_t cols, size_t size)
{
    tq_strided_begin(copy, size);
    tq_strided_dim(copy, cols, (ptrdiff_t)size, (ptrdiff_t)(rows * size));
    tq_strided_dim(copy, rows, (ptrdiff_t)(cols * size), (ptrdiff_t)size);
    tq_strided_end(copy);
}

/* ---- by the matrix kernel: b holds its weights, one channel for each column ---- */

static void pack(const product *p, const tq_node *node, const void *b, tq_gemm *gemm, void *memory)
{
    bool quantized = node->in[LEFT]->type != TQ_TensorType_FLOAT32 && node->out[0]->type != TQ_TensorType_INT32;
    tq_gemm_weights weights = {.data = b,
                               .type = p->size_b == sizeof(float) ? TQ_f32 : TQ_i8,
                               .channel_stride = p->swap_b ? p->k : 1,
                               .k_stride = p->swap_b ? 1 : p->n};
    if (quantized) { /* check_quantized: with several scales, the zero points of b are 0 */
        weights.zero_point = tq_zero_point_of(node->in[RIGHT]);
        weights.row_zero_point = tq_zero_point_of(node->in[LEFT]);
    }
    *gemm = p->plan;
    tq_gemm_pack(gemm, &weights, memory);
}

static void multiply(product *p)
{
    const tq_node *node = p->node;
    tq_gemm_rows rows = {p->a, p->m, p->k, NULL};
    if (p->rule) {
        int8_t *quantized = (int8_t *)p->scratch + p->quantized_at;
        p->rows = (tq_hybrid_row *)(void *)(p->scratch + p->rows_at);
        tq_hybrid_quantize(p->rule, p->a, p->m, p->k, p->threads, quantized, p->rows);
        rows.data = quantized;
    }
    tq_gemm_scaling scaling;
    tq_gemm_store store = p->store;
    if (p->rule) {
        scaling =
            tq_hybrid_scaling(p->rule == tq_hybrid_even ? TQ_SCALE_FUSED : TQ_SCALE_PLAIN, node->in[RIGHT], NULL, 0);
        scaling.row = p->rows;
        scaling.row_step = 1;
        scaling.weight_sums = tq_gemm_weight_sums(&p->gemm);
        store.scaling = &scaling;
    }
    tq_gemm_run(&p->gemm, &rows, &store, p->out, p->n, p->scratch + p->work_at, p->threads);
}

/* ---- int16 by int16 ---- */

/* n < 2^31 products of at most 2^30: no overflow. */
static int64_t dot_int16(const int16_t *a, const int16_t *b, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (int32_t)a[i] * b[i];
    return sum;
}

/* Elements of the output, counted over its rows. */
static void multiply_int16(void *context, size_t begin, size_t end)
{
    size_t work = 0;
    const product *p = context;
    for (size_t i = begin; i < end; i++) {
        size_t m = i / p->n, n = i % p->n;
        if (tq_stop_count(&work, p->k / 4))
            return;
        int64_t acc = dot_int16((const int16_t *)p->a + m * p->k, (const int16_t *)p->b + n * p->k, p->k);
        tq_fixed by = p->multipliers[n * p->multiplier_step];
        int32_t q = tq_multiply_i64(acc, by.multiplier, by.shift);
        ((int16_t *)(void *)p->out)[i] = (int16_t)tq_clamp_i64(q, INT16_MIN, INT16_MAX);
    }
}

/* ---- the walk over batches ---- */

/* The index of the matrix of `shape` that batch `at` of the output reads; dimensions of 1 are broadcast. */
static size_t matrix_at(const tq_shape *shape, const tq_shape *batch, size_t at)
{
    size_t index = 0, step = 1;
    for (int i = batch->rank - 1, d = shape->rank - 3; i >= 0; i--, d--) {
        size_t position = at % (size_t)batch->dims[i];
        at /= (size_t)batch->dims[i];
        if (d < 0)
            continue;
        if (shape->dims[d] != 1)
            index += position * step;
        step *= (size_t)shape->dims[d];
    }
    return index;
}

static void prepare_a(product *p, size_t matrix)
{
    const char *a = (const char *)p->node->in[LEFT]->data + matrix * p->m * p->k * p->size_a;
    p->a = a;
    if (!p->swap_a)
        return;
    char *transposed = p->scratch + p->a_at;
    tq_strided_copy(&p->transposed_a, a, transposed, p->threads);
    p->a = transposed;
}

static void prepare_b(product *p, size_t matrix)
{
    const char *b = (const char *)p->node->in[RIGHT]->data + matrix * p->k * p->n * p->size_b;
    char *scratch = p->scratch + p->b_at;
    p->b = b;
    if (p->is_int16 && !p->swap_b) {
        tq_strided_copy(&p->transposed_b, b, scratch, p->threads);
        p->b = scratch;
    } else if (p->constant)
        p->gemm = ((const tq_gemm *)p->node->prepacked)[matrix];
    else if (!p->is_int16)
        pack(p, p->node, b, &p->gemm, scratch);
}

static size_t matrices_of(const tq_tensor *b)
{
    return tq_shape_span(&b->shape, 0, b->shape.rank - 2);
}

static void prepack(tq_node *node)
{
    const product *p = node->state;
    const tq_tensor *b = node->in[RIGHT];
    tq_gemm *gemms = node->prepacked;
    char *packed = (char *)node->prepacked + p->packed_at;
    for (size_t i = 0; i < matrices_of(b); i++)
        pack(p, node, (const char *)b->data + i * p->k * p->n * p->size_b, &gemms[i], packed + i * p->each);
}

static void run_batches(const product *of, size_t begin, size_t end)
{
    product p = *of;
    const tq_node *node = p.node;
    size_t held_b = SIZE_MAX, held_a = SIZE_MAX;
    for (size_t i = begin; i < end && p.m && p.n && !tq_stop_after(p.m + p.n); i++) {
        size_t a = matrix_at(&node->in[LEFT]->shape, &p.batch, i), b = matrix_at(&node->in[RIGHT]->shape, &p.batch, i);
        if (a != held_a)
            prepare_a(&p, a);
        if (b != held_b)
            prepare_b(&p, b);
        held_a = a;
        held_b = b;
        p.out = (char *)node->out[0]->data + i * p.m * p.n * p.size_out;
        if (p.is_int16)
            tq_parallel_for(p.m * p.n, tq_grain(p.k), p.threads, multiply_int16, &p);
        else
            multiply(&p);
    }
}

static void run_jobs(void *context, size_t begin, size_t end)
{
    product p = *(const product *)context;
    const size_t batches = tq_shape_size(&p.batch);
    for (size_t job = begin; job < end; job++) {
        p.scratch = tq_scratch_at(p.node, job * p.job_bytes);
        run_batches(&p, batches * job / p.jobs, batches * (job + 1) / p.jobs);
    }
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    product p = *(const product *)node->state;
    p.node = node;
    p.threads = p.jobs > 1 ? 1 : node->threads;
    tq_parallel_for(p.jobs, 1, (int)p.jobs, run_jobs, &p);
    return TQ_OK;
}

/* ---- prepare ---- */

static tq_status check_types(const tq_node *node, tq_error *error)
{
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
    const int most = node->numerics == TQ_NUMERICS_XNNPACK ? 6 : 5;
    TQ_TRY(tq_check_rank(node, LEFT, 2, most, error));
    TQ_TRY(tq_check_rank(node, RIGHT, 2, most, error));
    const tq_shape *a = &node->in[LEFT]->shape, *b = &node->in[RIGHT]->shape;
    p->swap_a = tq_get_int(&node->options.table, TQ_BatchMatMulOptions_adj_x) != 0;
    p->swap_b = tq_get_int(&node->options.table, TQ_BatchMatMulOptions_adj_y) != 0;
    const int32_t *matrix_a = a->dims + a->rank - 2, *matrix_b = b->dims + b->rank - 2;
    int32_t k_b = matrix_b[p->swap_b];
    p->m = (size_t)matrix_a[p->swap_a];
    p->k = (size_t)matrix_a[!p->swap_a];
    p->n = (size_t)matrix_b[!p->swap_b];
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

/* Checks scales and zero points of integer inputs; b may have a scale for each column. */
static tq_status check_quantized(const tq_node *node, const product *p, tq_error *error)
{
    const tq_tensor *a = node->in[LEFT], *b = node->in[RIGHT], *out = node->out[0];
    bool many = b->quantization.count > 1;
    TQ_TRY(tq_check_input_scale(node, LEFT, error));
    TQ_TRY(tq_check_output_scale(node, 0, error));
    TQ_TRY(many ? tq_check_weight_scales(node, RIGHT, b->shape.rank - (p->swap_b ? 2 : 1), error)
                : tq_check_input_scale(node, RIGHT, error));
    int32_t zeros[] = {tq_zero_point_of(a), tq_zero_point_of(b), tq_zero_point_of(out)};
    if (a->type == TQ_TensorType_INT16 && (zeros[0] || zeros[1] || zeros[2]))
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "zero points are %d, %d and %d; with int16 they must be 0",
                          zeros[0], zeros[1], zeros[2]);
    return TQ_OK;
}

static double multiplier_of(const void *of, size_t column)
{
    const tq_node *node = of;
    const float left = tq_scale_of(node->in[LEFT]), right = tq_scale_at(node->in[RIGHT], column);
    const float out = tq_scale_of(node->out[0]);
    if (node->numerics == TQ_NUMERICS_XNNPACK)
        return (double)tq_even_multiplier(left, right, out);
    const double real = (double)(left * right) / (double)out;
    return isfinite(real) ? real : 0;
}

static tq_status check_multipliers(const tq_node *node, size_t count, tq_error *error)
{
    for (size_t n = 0; n < count; n++)
        if (!(multiplier_of(node, n) <= 1.7976931348623157e308))
            return tq_op_fail(node, error, TQ_BAD_OPERATOR, "the scales of column %zu make no finite multiplier", n);
    return TQ_OK;
}

static tq_status prepare_int16(tq_node *node, product *p, size_t count, tq_error *error)
{
    p->is_int16 = true;
    p->multiplier_step = count > 1;
    TQ_TRY(tq_node_memory(node, count, sizeof *p->multipliers, &p->multipliers, error));
    for (size_t n = 0; n < count; n++)
        p->multipliers[n] = tq_fixed_of(node, multiplier_of(node, n));
    return TQ_OK;
}

static tq_status prepare_store(tq_node *node, product *p, tq_error *error)
{
    const tq_tensor *out = node->out[0];
    void *memory;
    p->store.out = out->type == TQ_TensorType_INT16 ? TQ_i16 : TQ_i8;
    p->store.rule = node->numerics == TQ_NUMERICS_XNNPACK ? TQ_REQUANTIZE_FLOAT32_EVEN : tq_reference_rule(node);
    p->store.zero_point = tq_zero_point_of(out);
    tq_quantized_range(out->type, &p->store.low, &p->store.high);
    TQ_TRY(tq_node_memory(node, tq_gemm_store_bytes(p->n), 1, &memory, error));
    tq_gemm_store_make(&p->store, p->n, multiplier_of, node, memory);
    return TQ_OK;
}

static tq_status prepare_quantized(tq_node *node, product *p, tq_error *error)
{
    TQ_TRY(check_quantized(node, p, error));
    size_t count = node->in[RIGHT]->quantization.count > 1 ? p->n : 1;
    TQ_TRY(check_multipliers(node, count, error));
    return p->size_b == sizeof(int16_t) ? prepare_int16(node, p, count, error) : prepare_store(node, p, error);
}

/* Chooses the products, the accumulator and the requantization. */
static tq_status choose(tq_node *node, product *p, tq_error *error)
{
    const tq_tensor *a = node->in[LEFT], *b = node->in[RIGHT];
    p->store = (tq_gemm_store){
        .out = a->type == TQ_TensorType_FLOAT32 ? TQ_f32 : TQ_i32, .floor = -INFINITY, .ceiling = INFINITY};
    if (b->type == TQ_TensorType_FLOAT32)
        return TQ_OK;
    if (a->type == TQ_TensorType_FLOAT32) {
        p->rule = tq_hybrid_rule_of(
            node, tq_get_int(&node->options.table, TQ_BatchMatMulOptions_asymmetric_quantize_inputs) != 0);
        return tq_check_weight_scales(node, RIGHT, b->shape.rank - (p->swap_b ? 2 : 1), error);
    }
    return node->out[0]->type == TQ_TensorType_INT32 ? TQ_OK : prepare_quantized(node, p, error);
}

/* Parts of the batches that are about equal and pay for a thread each; else 1. */
static size_t jobs_of(const tq_node *node, const product *p)
{
    enum { COST = 10, MANY = 8 }; /* picoseconds of a multiply-add; batches of a job that hide one more */
    const size_t batches = tq_shape_size(&p->batch);
    const size_t jobs = (size_t)tq_paying_threads(batches * p->m * p->n, COST * p->k, node->threads);
    return batches % jobs == 0 || batches >= MANY * jobs ? jobs : 1;
}

#define FEW_ROWS 64 /* whose products take less time than packing b */

/* Plans the product, its prepacked weights and its scratch. */
static tq_status prepare_gemm(tq_node *node, product *p, uint64_t *total, tq_error *error)
{
    const tq_tensor *a = node->in[LEFT], *b = node->in[RIGHT];
    bool floats = b->type == TQ_TensorType_FLOAT32, wide = a->type == TQ_TensorType_INT16;
    p->constant = tq_is_constant(b);
    const bool in_place = !p->constant && !p->swap_b && p->m <= FEW_ROWS;
    const int flags = (wide ? TQ_GEMM_WIDE : 0) | (node->numerics == TQ_NUMERICS_XNNPACK ? TQ_GEMM_FUSED : 0) |
                      (in_place ? TQ_GEMM_IN_PLACE : 0) | (p->rule ? 0 : TQ_GEMM_UNSUMMED);
    TQ_TRY(tq_gemm_plan(&p->plan, floats ? TQ_f32 : wide ? TQ_i16 : TQ_i8, p->n, 1, p->k, flags, error));
    p->each = (p->plan.packed_bytes + 63) / 64 * 64;
    if (p->constant) {
        uint64_t prepacked = 0;
        tq_scratch_part(&prepacked, matrices_of(b), sizeof(tq_gemm));
        p->packed_at = tq_scratch_part(&prepacked, matrices_of(b), p->each);
        const int64_t key[] = {(intptr_t)p->plan.kernel, (int64_t)p->n, (int64_t)p->k, flags};
        TQ_TRY(tq_node_prepack(node, prepacked, prepack, key, 4, error));
    }
    p->b_at = tq_scratch_part(total, p->constant ? 0 : p->each, 1);
    p->quantized_at = tq_scratch_part(total, p->rule ? (uint64_t)p->m * p->k : 0, 1);
    p->rows_at = tq_scratch_part(total, p->rule ? p->m : 0, sizeof(tq_hybrid_row));
    p->work_at = tq_scratch_part(total, tq_gemm_scratch_bytes(&p->plan, p->jobs > 1 ? 1 : node->threads), 1);
    return TQ_OK;
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
    TQ_TRY(choose(node, p, error));
    uint64_t total = 0, all = 0;
    p->jobs = jobs_of(node, p);
    plan_transposition(&p->transposed_a, p->k, p->m, p->size_a);
    plan_transposition(&p->transposed_b, p->k, p->n, p->size_b);
    p->a_at = tq_scratch_part(&total, p->swap_a ? (uint64_t)p->m * p->k : 0, p->size_a);
    if (p->is_int16)
        p->b_at = tq_scratch_part(&total, p->swap_b ? 0 : (uint64_t)p->n * p->k, p->size_b);
    else
        TQ_TRY(prepare_gemm(node, p, &total, error));
    p->job_bytes = tq_share_bytes(total, (int)p->jobs);
    tq_scratch_part(&all, p->jobs, p->job_bytes);
    node->eval = eval;
    return tq_node_scratch(node, all, error);
}
