/* SPDX-License-Identifier: Apache-2.0
 *
 * FULLY_CONNECTED: input [..., columns], as rows; weights [units, columns]; output [rows, units], or with keep_num_dims
 * the input's shape with `units` last.
 *
 *     integers   acc = sum (x - z_x) * (w - z_w) + bias; out = clamp(away(f64(acc) * (s_x * s_w / s_out)) + z_out), s_w
 *                is one scale, or one for each unit (then zero points of weights are ignored)
 *                INT16 input: acc in 64 bits, unless quantized_bias_type is INT32 or 32 bits have the same values
 *                UINT8 input: the output may be INT16, with zero point 0
 *                optimized: the rule UP (quant/rounding.def); s_x * s_w in float32 where there is one s_w; acc in 32
 *                bits, with an INT64 bias in 64
 *                INT16 weights: acc in 64 bits, 64-bit fixed-point multiplication
 *     float      sums in the order of kernels/gemm/gemm.h
 *
 * Source: LiteRT f6745779, tflite/kernels/fully_connected.cc, internal/reference/{,integer_ops/}fully_connected.h.
 */
#include "base/threads.h"
#include "ops/check.h"
#include "ops/products/convolution.h"
#include "ops/products/fully_connected_shuffled.h"
#include "ops/products/hybrid_fully_connected.h"
#include "ops/quantized.h"

/* Sets channels, depth and rows of the plan, and the output's shape. */
static tq_status fit(tq_node *node, tq_product_plan *plan, tq_error *error)
{
    const tq_shape *weights = &node->in[1]->shape;
    plan->channels = (size_t)weights->dims[0];
    plan->depth = (size_t)weights->dims[1];
    return tq_fully_connected_fit(node, &plan->rows, error);
}

static tq_status check_options(const tq_node *node, tq_error *error)
{
    const tq_table *options = &node->options.table;
    int64_t activation = tq_get_int(options, TQ_FullyConnectedOptions_fused_activation_function);
    switch (activation) {
    case TQ_ActivationFunctionType_NONE:
    case TQ_ActivationFunctionType_RELU:
    case TQ_ActivationFunctionType_RELU_N1_TO_1:
    case TQ_ActivationFunctionType_RELU6: return TQ_OK;
    }
    return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                      "the fused activation is %lld; with these types it needs to be NONE, RELU, RELU_N1_TO_1 or RELU6",
                      (long long)activation);
}

/* ---- INT16 input with INT16 weights, or with INT8 weights that have a zero point: rare, so a simple loop ---- */

typedef struct int16_product {
    tq_product_plan plan;
    tq_multiplier *multiplier; /* [units] */
    tq_requantize_rule rule;
    int32_t low, high;
} int16_product;

static int64_t sum_int16(const tq_node *node, const int16_product *p, size_t row, size_t unit)
{
    const tq_tensor *weights = node->in[1], *bias = node->in_count > 2 ? node->in[2] : NULL;
    const int16_t *x = (const int16_t *)node->in[0]->data + row * p->plan.depth;
    const bool wide = weights->type == TQ_TensorType_INT16;
    const void *w = (const char *)weights->data + unit * p->plan.depth * (wide ? sizeof(int16_t) : 1);
    const int32_t zero = weights->quantization.count == 1 ? tq_zero_point_of(weights) : 0;
    /* |x * w| < 2^32, and a row has fewer than 2^31 elements; the bias may wrap */
    int64_t sum = 0;
    for (size_t k = 0; k < p->plan.depth; k++)
        sum += (int64_t)x[k] * ((wide ? ((const int16_t *)w)[k] : ((const int8_t *)w)[k]) - zero);
    return bias ? (int64_t)((uint64_t)sum + (uint64_t)tq_integer_at(bias, unit)) : sum;
}

struct int16_job {
    const tq_node *node;
    const int16_product *p;
};

static void eval_int16_units(void *context, size_t begin, size_t end)
{
    size_t work = 0;
    const struct int16_job *job = context;
    const int16_product *p = job->p;
    int16_t *out = job->node->out[0]->data;
    for (size_t unit = begin; unit < end; unit++)
        for (size_t row = 0; row < p->plan.rows && !tq_stop_count(&work, p->plan.depth); row++) {
            int64_t sum = sum_int16(job->node, p, row, unit);
            int32_t q = tq_requantize_i64(sum, &p->multiplier[unit], p->rule, 0, p->low, p->high);
            out[row * p->plan.channels + unit] = (int16_t)q;
        }
}

static tq_status eval_int16(tq_node *node, tq_error *error)
{
    (void)error;
    struct int16_job job = {node, node->state};
    tq_parallel_for(job.p->plan.channels, 1, node->threads, eval_int16_units, &job);
    return TQ_OK;
}

/* rule: DOUBLE for INT16 weights, whose product of scales is then rounded to float32 if they have one scale. */
static tq_status prepare_int16(tq_node *node, tq_requantize_rule rule, tq_error *error)
{
    int16_product *p;
    TQ_TRY(tq_node_state(node, sizeof *p, &p, error));
    p->rule = rule;
    TQ_TRY(fit(node, &p->plan, error));
    tq_activation_range(node, tq_get_int(&node->options.table, TQ_FullyConnectedOptions_fused_activation_function),
                        &p->low, &p->high);
    TQ_TRY(tq_node_memory(node, p->plan.channels, sizeof *p->multiplier, &p->multiplier, error));
    const bool many = node->in[1]->quantization.count > 1, narrow = !many && rule != TQ_REQUANTIZE_FLOAT64_AWAY;
    for (size_t c = 0; c < p->plan.channels; c++) {
        const float in = tq_scale_of(node->in[0]), weight = tq_scale_at(node->in[1], many ? c : 0);
        double product = narrow ? (double)(in * weight) : (double)in * (double)weight;
        p->multiplier[c] = tq_multiplier_of(product / (double)tq_scale_of(node->out[0]), rule);
    }
    node->eval = eval_int16;
    return TQ_OK;
}

/* ---- all other types ---- */

/* Whether sums of int16 rows and the bias fit 32 bits, so that accumulators of 32 bits have the values of wide ones. */
static bool fits_int32(const tq_node *node, size_t depth)
{
    const int64_t most = INT32_MAX - ((int64_t)depth << 22); /* of a bias; |x * w| <= 2^15 * 2^7 */
    const tq_tensor *bias = node->in_count > 2 ? node->in[2] : NULL;
    if (depth >= 512 || (bias && !tq_is_constant(bias)))
        return false;
    for (size_t c = 0; bias && c < tq_tensor_count(bias); c++)
        if (tq_integer_at(bias, c) > most || tq_integer_at(bias, c) < -most)
            return false;
    return true;
}

/* Whether the optimized kernel computes the node.  Its accumulators have 32 bits: with INT16 inputs it takes neither an
   INT64 bias nor zero points. */
static bool has_optimized_kernel(const tq_node *node)
{
    if (node->numerics != TQ_NUMERICS_OPTIMIZED)
        return false;
    if (node->in[0]->type != TQ_TensorType_INT16)
        return true;
    const tq_tensor *bias = node->in_count > 2 ? node->in[2] : NULL, *w = node->in[1];
    return !(bias && bias->type == TQ_TensorType_INT64) && !(w->quantization.count == 1 && tq_zero_point_of(w) != 0) &&
           tq_get_int(&node->options.table, TQ_FullyConnectedOptions_quantized_bias_type) != TQ_TensorType_INT64;
}

static tq_status prepare_shuffled(tq_node *node, tq_error *error)
{
    tq_product_plan plan = {.groups = 1};
    TQ_TRY(tq_check_output_count(node, 2, error));
    TQ_TRY(check_options(node, error));
    TQ_TRY(tq_check_rank(node, 1, 2, 2, error));
    TQ_TRY(fit(node, &plan, error));
    return tq_prepare_fully_connected_shuffled(node, &plan, error);
}

tq_status tq_prepare_fully_connected(tq_node *node, tq_error *error)
{
    int64_t format = tq_get_int(&node->options.table, TQ_FullyConnectedOptions_weights_format);
    if (format == TQ_FullyConnectedOptionsWeightsFormat_SHUFFLED4x16INT8)
        return prepare_shuffled(node, error);
    if (format != TQ_FullyConnectedOptionsWeightsFormat_DEFAULT)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR,
                          "weights_format is %lld; there are DEFAULT (0) and SHUFFLED4x16INT8 (1)", (long long)format);
    TQ_TRY(tq_check_output_count(node, 1, error));
    if (node->in[0]->type == TQ_TensorType_FLOAT32 && node->in[1]->type != TQ_TensorType_FLOAT32)
        return tq_prepare_fully_connected_hybrid(node, error);
    TQ_TRY(check_options(node, error));
    TQ_TRY(tq_check_rank(node, 1, 2, 2, error));
    const size_t units = (size_t)node->in[1]->shape.dims[0];
    if (node->in[0]->type == TQ_TensorType_INT16 && node->in[1]->type == TQ_TensorType_INT16) {
        TQ_TRY(tq_check_product(node, units, 0, TQ_T(INT16), error));
        return prepare_int16(node, tq_reference_rule(node), error);
    }
    const bool sparse = tq_get_table(&node->in[1]->table, TQ_Tensor_sparsity).at != 0;
    const bool sparse_quantized = sparse && node->in[0]->type == TQ_TensorType_INT8;
    const bool optimized = !sparse_quantized && has_optimized_kernel(node);
    tq_product_plan plan = {
        .groups = 1,
        .taps = 1,
        .k_stride = 1,
        .activation = tq_get_int(&node->options.table, TQ_FullyConnectedOptions_fused_activation_function),
        .rule = sparse_quantized ? tq_reference_rule(node)
                : optimized      ? TQ_REQUANTIZE_UP
                                 : TQ_REQUANTIZE_FLOAT64_AWAY,
        .product_in_f32 = (sparse_quantized || optimized) && node->in[1]->quantization.count == 1,
        .ignores_zero_point = node->in[1]->quantization.count > 1,
        .wraps_zero_points = optimized,
    };
    TQ_TRY(tq_check_product(node, units, 0, TQ_SIGNED_UP_TO_8_BITS, error));
    if (plan.rule == TQ_REQUANTIZE_FLOAT64_AWAY && node->in[0]->type != TQ_TensorType_FLOAT32)
        TQ_TRY(tq_check_output_divisor(node, error));
    if (node->in[0]->type != TQ_TensorType_FLOAT32 && node->in[1]->quantization.count == 1)
        TQ_TRY(tq_check_bias_scale(node, error));
    const bool sub_byte = node->in[1]->type == TQ_TensorType_INT4 || node->in[1]->type == TQ_TensorType_INT2;
    for (uint32_t c = 0; sub_byte && !tq_weights_flip(node) && c < node->in[1]->quantization.count; c++)
        if (node->in[1]->quantization.zero_point[c] != 0)
            return tq_input_fail(node, 1, error, "has the zero point %d; weights of 4 and 2 bits need 0",
                                 node->in[1]->quantization.zero_point[c]);
    TQ_TRY(tq_product_is_wide(node, tq_get_int(&node->options.table, TQ_FullyConnectedOptions_quantized_bias_type),
                              &plan.wide, error));
    plan.wide = plan.wide && !optimized;
    if (plan.wide && !plan.ignores_zero_point && tq_zero_point_of(node->in[1]) != 0)
        return prepare_int16(node, plan.rule, error);
    TQ_TRY(fit(node, &plan, error));
    plan.wide = plan.wide && !fits_int32(node, plan.depth);
    plan.channel_stride = plan.depth;
    plan.row_stride = plan.depth;
    return tq_prepare_product(node, &plan, error);
}
