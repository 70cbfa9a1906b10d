/* SPDX-License-Identifier: Apache-2.0
 *
 * FULLY_CONNECTED of float32 activations with weights of 8, 4 or 2 bits; those with a scale for each block of columns:
 * blockwise_fully_connected.c.
 *
 * Each row of the input is quantized separately (ops/products/hybrid.h), then
 *     one scale, or one for each unit out = act(bias + f32(acc - z * sum) * f32(s_row * s_w))
 *     optimized, 4 bits, at least 4 units and 32 columns, always symmetric:
 *                                     act(f32(f32(-7 x) * s_row * s_w + bias) + f32(acc + 7 x) * s_row * s_w), x: the
 *                                     sum of the row's quantized values
 * acc: the sum of products; sum: the sum of the weights.  For weights that are sparse in the file, the zero point comes
 * first: act((bias - f32(s_row * s_w * z) * sum) + f32(acc) * f32(s_row * s_w))
 *
 * Source: LiteRT f6745779, tflite/kernels/fully_connected.cc (EvalHybridDense, EvalHybridDense4Bit),
 * internal/optimized/4bit/sse_fully_connected.cc.  In LiteRT, a 4-bit weight of -8 counts as 8.  LiteRT drops input
 * elements after the last whole row; here they are an error.
 */
#include "ops/products/hybrid_fully_connected.h"

#include <math.h>
#include <string.h>

#include "kernels/gemm/gemm.h"
#include "ops/check.h"
#include "ops/products/blockwise_fully_connected.h"
#include "ops/products/hybrid.h"
#include "ops/products/hybrid_row.h"
#include "ops/products/product.h"
#include "ops/parallel.h"
#include "ops/scratch.h"

typedef struct product {
    size_t rows, cols, units;
    tq_hybrid_rule rule;
    int64_t activation;
    uint64_t rows_at, quantized_at, work_at; /* offsets in scratch */
    tq_gemm gemm;
    bool constant;      /* node->prepacked has the packed gemm, then the weights */
    uint64_t packed_at; /* constant: offset in node->prepacked; else in scratch */
    bool sparse;        /* the file stores the weights sparse */
    /* set by eval */
    const tq_node *node;
    const int8_t *quantized;
    const tq_hybrid_row *row;
} product;

static const tq_tensor *bias_of(const tq_node *node)
{
    return node->in_count > 2 ? node->in[2] : NULL;
}

static void pack(const tq_node *node, tq_gemm *gemm, size_t cols, void *memory)
{
    tq_gemm_weights weights = {
        .data = node->in[1]->data, .type = TQ_i8, .channel_stride = cols, .k_stride = 1, .flip = tq_weights_flip(node)};
    tq_gemm_pack(gemm, &weights, memory);
}

static void prepack(tq_node *node)
{
    const product *p = node->state;
    tq_gemm *gemm = node->prepacked;
    *gemm = p->gemm;
    pack(node, gemm, p->cols, (char *)node->prepacked + p->packed_at);
}

static void store_sparse(const product *p, const int32_t *sums, const int32_t *weight_sums, tq_hybrid_row row, float *y)
{
    const tq_tensor *weights = p->node->in[1], *bias = bias_of(p->node);
    const bool many = weights->quantization.count > 1;
    for (size_t unit = 0; unit < p->units; unit++) {
        const float scale = tq_scale_at(weights, unit), by_unit = row.scale * scale;
        const float offset = many ? row.scale * (float)row.zero_point * scale : by_unit * (float)row.zero_point;
        const float start = (bias ? ((const float *)bias->data)[unit] : 0) - offset * (float)weight_sums[unit];
        y[unit] = start + (float)sums[unit] * by_unit;
    }
}

/* The kernel of 4-bit weights adds 7 to them, and subtracts 7 * sum(quantized) in float32. */
static void store_4_bits(const product *p, const int32_t *sums, const int8_t *quantized, float row_scale, float *y)
{
    enum { OFFSET = 7 };
    const tq_tensor *weights = p->node->in[1], *bias = bias_of(p->node);
    int32_t sum_of_row;
    tq_row_sums(quantized, 1, p->cols, &sum_of_row);
    const int32_t added = (int32_t)((uint32_t)OFFSET * (uint32_t)sum_of_row);
    const float removed = (float)(int32_t)(0 - (uint32_t)added) * row_scale;
    for (size_t unit = 0; unit < p->units; unit++) {
        const float scale = tq_scale_at(weights, unit);
        const float start = bias ? removed * scale + ((const float *)bias->data)[unit] : removed * scale;
        y[unit] = start + (float)(int32_t)((uint32_t)sums[unit] + (uint32_t)added) * row_scale * scale;
    }
}

/* The sums of weights that are sparse in the file, and of the optimized kernel for 4 bits. */
static void scale_rows(void *context, size_t begin, size_t end)
{
    const product *p = context;
    for (size_t r = begin; r < end; r++) {
        float *y = (float *)p->node->out[0]->data + r * p->units;
        const int32_t *sums = (const int32_t *)(const void *)y;
        if (p->rule == tq_hybrid_away)
            store_4_bits(p, sums, p->quantized + r * p->cols, p->row[r].scale, y);
        else
            store_sparse(p, sums, tq_gemm_weight_sums(&p->gemm), p->row[r], y);
        tq_activate(p->activation, y, p->units);
    }
}

static void eval_in_place(const product *p, const tq_gemm_rows *rows, void *work)
{
    const tq_node *node = p->node;
    const tq_gemm_store store = {.out = TQ_i32};
    tq_gemm_run(&p->gemm, rows, &store, node->out[0]->data, p->units, work, node->threads);
    tq_parallel_for(p->rows, tq_grain(p->units), node->threads, scale_rows, (void *)p);
}

/* A fused activation that is no clamp. */
static void activate_rows(void *context, size_t begin, size_t end)
{
    const product *p = context;
    tq_activate(p->activation, (float *)p->node->out[0]->data + begin * p->units, (end - begin) * p->units);
}

static void eval_units(product *p)
{
    const tq_node *node = p->node;
    if (p->constant)
        p->gemm = *(const tq_gemm *)node->prepacked;
    else
        pack(node, &p->gemm, p->cols, tq_scratch_at(node, p->packed_at));
    const tq_gemm_rows rows = {p->quantized, p->rows, p->cols, NULL};
    void *work = tq_scratch_at(node, p->work_at);
    if (p->rule == tq_hybrid_away || p->sparse) {
        eval_in_place(p, &rows, work);
        return;
    }
    tq_gemm_scaling scaling =
        tq_hybrid_scaling(p->rule == tq_hybrid_even ? TQ_SCALE_FUSED : TQ_SCALE_PLAIN, node->in[1], bias_of(node), 0);
    scaling.row = p->row;
    scaling.row_step = 1;
    scaling.weight_sums = tq_gemm_weight_sums(&p->gemm);
    tq_gemm_store store = {.out = TQ_f32, .scaling = &scaling};
    scaling.drops_nan = tq_activation_is_clamp(p->activation, &store.floor, &store.ceiling);
    tq_gemm_run(&p->gemm, &rows, &store, node->out[0]->data, p->units, work, node->threads);
    if (!scaling.drops_nan && p->activation != TQ_ActivationFunctionType_NONE)
        tq_parallel_for(p->rows, tq_grain(p->units), node->threads, activate_rows, p);
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    product p = *(const product *)node->state;
    tq_hybrid_row *row = tq_scratch_at(node, p.rows_at);
    int8_t *quantized = tq_scratch_at(node, p.quantized_at);
    tq_hybrid_quantize(p.rule, node->in[0]->data, p.rows, p.cols, node->threads, quantized, row);
    p.node = node;
    p.quantized = quantized;
    p.row = row;
    eval_units(&p);
    return TQ_OK;
}

/* Whether the file stores the weights sparse, for numerics that tell these apart. */
static bool is_sparse(const tq_node *node, tq_hybrid_rule rule)
{
    return rule != tq_hybrid_even && tq_get_table(&node->in[1]->table, TQ_Tensor_sparsity).at != 0;
}

static tq_status prepare_units(tq_node *node, product *p, uint64_t *total, tq_error *error)
{
    TQ_TRY(tq_check_weight_scales(node, 1, 0, error));
    TQ_TRY(tq_gemm_plan(&p->gemm, TQ_i8, p->units, 1, p->cols, p->rows == 1 ? TQ_GEMM_ONE_ROW : 0, error));
    p->constant = tq_is_constant(node->in[1]);
    p->sparse = is_sparse(node, p->rule);
    uint64_t prepacked = 0;
    tq_scratch_part(&prepacked, 1, sizeof(tq_gemm));
    p->packed_at = tq_scratch_part(p->constant ? &prepacked : total, p->gemm.packed_bytes, 1);
    const int64_t key[] = {(intptr_t)p->gemm.kernel, (int64_t)p->units, (int64_t)p->cols, tq_weights_flip(node)};
    if (p->constant)
        TQ_TRY(tq_node_prepack(node, prepacked, prepack, key, 4, error));
    p->work_at = tq_scratch_part(total, tq_gemm_scratch_bytes(&p->gemm, node->threads), 1);
    return TQ_OK;
}

static tq_status check(const tq_node *node, int64_t activation, tq_error *error)
{
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_input(node, 1, TQ_HYBRID_WEIGHTS | TQ_T(INT4) | TQ_T(INT2), error));
    TQ_TRY(tq_check_output(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_rank(node, 1, 2, 2, error));
    if (node->in_count > 2 && node->in[2]) {
        TQ_TRY(tq_check_input(node, 2, TQ_T(FLOAT32), error));
        if (tq_tensor_count(node->in[2]) != (size_t)node->in[1]->shape.dims[0])
            return tq_input_fail(node, 2, error, "has %zu elements; the weights have %d units",
                                 tq_tensor_count(node->in[2]), node->in[1]->shape.dims[0]);
    }
    return tq_check_activation(node, activation, error);
}

/* Whether the optimized kernel of 4-bit weights computes the node. */
static bool has_kernel_of_4_bits(const tq_node *node, size_t rows, size_t cols, size_t units)
{
    const tq_tensor *weights = node->in[1];
    return node->numerics == TQ_NUMERICS_OPTIMIZED && weights->type == TQ_TensorType_INT4 && tq_is_constant(weights) &&
           weights->quantization.count > 0 && rows > 0 && cols % 2 == 0 && cols >= 32 && units >= 4;
}

tq_status tq_prepare_hybrid_rows(tq_node *node, size_t rows, size_t cols, size_t units, int64_t activation,
                                 bool asymmetric, tq_error *error)
{
    const tq_affine *q = &node->in[1]->quantization;
    if (q->count == 0 && q->block_size)
        return tq_prepare_blockwise_rows(node, rows, cols, units, activation, error);
    const tq_hybrid_rule rule =
        has_kernel_of_4_bits(node, rows, cols, units) ? tq_hybrid_away : tq_hybrid_rule_of(node, asymmetric);
    if (rows == 1 && rule != tq_hybrid_away && !is_sparse(node, rule) && tq_hybrid_row_suits(node, cols)) {
        TQ_TRY(tq_check_weight_scales(node, 1, 0, error));
        return tq_prepare_hybrid_row(node, cols, units, activation, rule, error);
    }
    product *p;
    TQ_TRY(tq_node_state(node, sizeof *p, &p, error));
    p->rows = rows;
    p->cols = cols;
    p->units = units;
    p->activation = activation;
    p->rule = rule;
    uint64_t total = 0;
    p->rows_at = tq_scratch_part(&total, p->rows, sizeof(tq_hybrid_row));
    p->quantized_at = tq_scratch_part(&total, p->rows, p->cols);
    TQ_TRY(prepare_units(node, p, &total, error));
    node->eval = eval;
    return tq_node_scratch(node, total, error);
}

tq_status tq_prepare_fully_connected_hybrid(tq_node *node, tq_error *error)
{
    const tq_table *options = &node->options.table;
    int64_t activation = tq_get_int(options, TQ_FullyConnectedOptions_fused_activation_function);
    TQ_TRY(check(node, activation, error));
    size_t rows = 0;
    TQ_TRY(tq_fully_connected_fit(node, &rows, error));
    const int32_t *w = node->in[1]->shape.dims;
    return tq_prepare_hybrid_rows(node, rows, (size_t)w[1], (size_t)w[0], activation,
                                  tq_get_int(options, TQ_FullyConnectedOptions_asymmetric_quantize_inputs) != 0, error);
}
