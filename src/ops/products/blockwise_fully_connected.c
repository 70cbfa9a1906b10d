/* SPDX-License-Identifier: Apache-2.0
 *
 * FULLY_CONNECTED of float32 activations with 4-bit weights that have a float16 scale for each block of columns.
 *
 * Each row of the input is quantized separately, always with a zero point (ops/products/hybrid.h), and multiplied in
 * the plain order of kernels/blockwise/blockwise.h; XNNPACK, which takes blocks of multiples of 32 only, has the fused
 * one.  A unit's weight_sum is the f32 sum of block scale * sum of the block's weights, b in order.
 *
 * Source: LiteRT f6745779, tflite/kernels/fully_connected.cc (EvalBlockwise4Bit); XNNPACK 75db3c09,
 * src/qd8-f32-qb4w-gemm.  In LiteRT only the optimized kernel has blockwise weights, without an activation (the
 * reference kernel returns the bias).
 */
#include "ops/products/blockwise_fully_connected.h"

#include "base/sizes.h"
#include "kernels/blockwise/blockwise.h"
#include "kernels/half.h"
#include "ops/check.h"
#include "ops/parallel.h"
#include "ops/products/hybrid.h"
#include "ops/scratch.h"

enum { SOME = 32 }; /* rows that are multiplied with a panel while the cache has it */
enum { ROW_COST = 350 }; /* picoseconds for quantizing an element */

typedef struct product {
    size_t rows;
    tq_hybrid_rule rule;
    int64_t activation;
    tq_blockwise plan;
    float *scales, *sums;             /* [units][blocks], [units] */
    uint64_t row_bytes;               /* of a row's steps */
    uint64_t row_at, quantized_at;    /* offsets in scratch: of SOME rows, their steps and quantized values */
    /* set by eval */
    const tq_node *node;
    tq_blockwise_weights weights;
    const float *in;
    tq_blockwise_row *row; /* [count] */
    size_t count;
    float *out;
} product;

static void prepack(tq_node *node)
{
    const product *p = node->state;
    tq_blockwise_pack(&p->plan, node->in[1]->data, p->scales, p->sums, node->prepacked);
}

static void run_panels(void *context, size_t begin, size_t end)
{
    const product *p = context;
    const tq_tensor *bias = p->node->in_count > 2 ? p->node->in[2] : NULL;
    tq_blockwise_run(&p->plan, &p->weights, p->row, p->count, bias ? bias->data : NULL, begin, end, p->out);
}

static void quantize_rows(void *context, size_t begin, size_t end)
{
    const product *p = context;
    const size_t columns = p->plan.columns;
    int8_t *quantized = tq_scratch_at(p->node, p->quantized_at);
    tq_hybrid_row by[SOME];
    tq_hybrid_quantize(p->rule, p->in + begin * columns, end - begin, columns, 1, quantized + begin * columns, by);
    for (size_t i = begin; i < end && !tq_stop_after(columns); i++)
        tq_blockwise_row_make(&p->plan, quantized + i * columns, by[i - begin].scale, by[i - begin].zero_point,
                              (char *)tq_scratch_at(p->node, p->row_at) + i * p->row_bytes, &p->row[i]);
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    product p = *(const product *)node->state;
    const size_t columns = p.plan.columns, units = p.plan.units;
    tq_blockwise_row row[SOME];
    p.node = node;
    p.weights = tq_blockwise_packed(&p.plan, node->prepacked);
    p.row = row;
    for (size_t r = 0; r < p.rows; r += p.count) {
        p.count = tq_min_size(SOME, p.rows - r);
        p.in = (const float *)node->in[0]->data + r * columns;
        p.out = (float *)node->out[0]->data + r * units;
        tq_parallel_work(p.count, 1, ROW_COST * columns, node->threads, quantize_rows, &p);
        if (tq_stop_now())
            return TQ_OK; /* some rows are unset */
        tq_parallel_for(p.plan.panels, tq_grain(p.count * columns * TQ_BLOCKWISE_LANES), node->threads, run_panels, &p);
        if (!p.plan.clamps)
            tq_activate(p.activation, p.out, p.count * units);
    }
    return TQ_OK;
}

/* XNNPACK rounds block scales to bfloat16, and subtracts scaled sums of 16 weights each. */
static void find_scales(const tq_node *node, product *p, const uint16_t *halves)
{
    enum { GROUP = 16 };
    const int8_t *w = node->in[1]->data;
    const size_t block = p->plan.block, blocks = p->plan.blocks, group = p->plan.fused ? GROUP : block;
    for (size_t i = 0; i < p->plan.units * blocks && !tq_stop_after(block); i++) {
        const float scale = tq_half_to_float(halves[i]);
        p->scales[i] = p->plan.fused ? tq_bfloat_to_float(tq_float_to_bfloat(scale)) : scale;
        for (size_t k = 0; k < block; k += group) {
            int32_t sum;
            tq_row_sums(w + i * block + k, 1, group, &sum);
            const float scaled = (float)sum * p->scales[i];
            p->sums[i / blocks] = p->plan.fused ? p->sums[i / blocks] - scaled : p->sums[i / blocks] + scaled;
        }
    }
}

static tq_status check(const tq_node *node, size_t columns, size_t units, const tq_tensor *scales, tq_error *error)
{
    const tq_affine *q = &node->in[1]->quantization;
    if (!tq_is_constant(node->in[1]))
        return tq_input_fail(node, 1, error, "has blockwise scales; such weights must be constant");
    if (node->in[1]->type != TQ_TensorType_INT4)
        return tq_input_fail(node, 1, error, "has blockwise scales; such weights must be INT4");
    if (q->block_size < 0 || q->block_size > TQ_BLOCKWISE_MOST || columns == 0 || columns % (size_t)q->block_size)
        return tq_input_fail(node, 1, error, "has blocks of %d; they must divide its %zu columns, and be at most %d",
                             q->block_size, columns, TQ_BLOCKWISE_MOST);
    const size_t blocks = columns / (size_t)q->block_size;
    if (!scales || !tq_is_constant(scales) || scales->type != TQ_TensorType_FLOAT16)
        return tq_input_fail(node, 1, error, "takes its scales from tensor %d; that must be a constant of FLOAT16",
                             q->block_scales);
    if (tq_tensor_count(scales) != units * blocks)
        return tq_input_fail(node, 1, error, "has %zu block scales; it needs %zu", tq_tensor_count(scales),
                             units * blocks);
    return TQ_OK;
}

tq_status tq_prepare_blockwise_rows(tq_node *node, size_t rows, size_t columns, size_t units, int64_t activation,
                                    tq_error *error)
{
    const tq_affine *q = &node->in[1]->quantization;
    const tq_tensor *scales = tq_node_tensor(node, q->block_scales);
    TQ_TRY(check(node, columns, units, scales, error));
    const size_t block = (size_t)q->block_size;
    const bool fused = node->numerics == TQ_NUMERICS_XNNPACK && block % 32 == 0;
    product *p;
    TQ_TRY(tq_node_state(node, sizeof *p, &p, error));
    p->rows = rows;
    p->activation = activation;
    p->rule = fused ? tq_hybrid_even : tq_hybrid_asymmetric;
    TQ_TRY(tq_blockwise_plan(&p->plan, units, columns, block, fused, error));
    p->plan.clamps = tq_activation_is_clamp(activation, &p->plan.low, &p->plan.high);
    TQ_TRY(tq_node_memory(node, units * p->plan.blocks, sizeof(float), &p->scales, error));
    TQ_TRY(tq_node_memory(node, units, sizeof(float), &p->sums, error));
    find_scales(node, p, scales->data);
    const int64_t key[] = {(intptr_t)p->plan.kernel, (intptr_t)scales->data, (int64_t)units,
                           (int64_t)columns,         (int64_t)block,         fused};
    TQ_TRY(tq_node_prepack(node, p->plan.packed_bytes, prepack, key, 6, error));
    uint64_t total = 0;
    p->row_bytes = tq_round_up(p->plan.row_bytes, 64);
    p->row_at = tq_scratch_part(&total, tq_min_size(rows, SOME), p->row_bytes);
    p->quantized_at = tq_scratch_part(&total, tq_min_size(rows, SOME), columns);
    node->eval = eval;
    return tq_node_scratch(node, total, error);
}
