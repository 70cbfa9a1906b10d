/* SPDX-License-Identifier: Apache-2.0
 *
 * By kernels/blockwise/blockwise.h, with one block whose scale is 1, a row whose scale is 1, and no bias: the results
 * are f32(acc - z * sum).  For |acc| <= columns * 8 * 128 and |z * sum| <= 128 * columns * 8, up to 2^24 both are exact
 * in float32, and their difference is rounded once, as that of the integers.
 */
#include "ops/products/hybrid_row.h"

#include <math.h>

#include "base/threads.h"
#include "kernels/blockwise/blockwise.h"
#include "kernels/isa.h"
#include "ops/check.h"
#include "ops/parallel.h"
#include "ops/scratch.h"

enum { MOST = (1 << 24) / (8 * 128) }; /* columns */

typedef struct product {
    tq_hybrid_rule rule;
    int64_t activation;
    tq_blockwise plan;
    float *ones, *sums;            /* [units] */
    uint64_t row_at, quantized_at; /* offsets in scratch */
    /* set by eval */
    const tq_node *node;
    tq_blockwise_weights weights;
    tq_blockwise_row row; /* with the scale 1 */
    float scale;          /* the row's */
} product;

static void prepack(tq_node *node)
{
    const product *p = node->state;
    tq_blockwise_pack(&p->plan, node->in[1]->data, p->ones, p->sums, node->prepacked);
}

/* values: f32(acc - z * sum) of n units; the first unit's scale and bias, or NULL. */
TQ_BODY void scale_values(float *values, size_t n, const float *scale, size_t scale_step, const float *bias, float by,
                          const bool fused)
{
    for (size_t i = 0; i < n; i++) {
        const float s = scale[scale_step * i];
        if (fused)
            values[i] = fmaf(values[i] * by, s, bias ? bias[i] : 0.0f);
        else
            values[i] = (bias ? bias[i] : -0.0f) + values[i] * (s * by); /* -0 changes no sum */
    }
}

#define SCALE(name, target, fused)                                                                                 \
    target static void name(float *values, size_t n, const float *scale, size_t step, const float *bias, float by) \
    {                                                                                                              \
        if (step)                                                                                                  \
            scale_values(values, n, scale, 1, bias, by, fused);                                                    \
        else                                                                                                       \
            scale_values(values, n, scale, 0, bias, by, fused);                                                    \
    }
TQ_ISA_DEFINE(SCALE, scale_plain, false)
TQ_ISA_DEFINE(SCALE, scale_fused, true)

static void run_panels(void *context, size_t begin, size_t end)
{
    typedef void (*scale_fn)(float *, size_t, const float *, size_t, const float *, float);
    static const scale_fn plain[TQ_ISAS] = TQ_ISA_FUNCTIONS(scale_plain);
    static const scale_fn fused[TQ_ISAS] = TQ_ISA_FUNCTIONS(scale_fused);
    const product *p = context;
    const tq_node *node = p->node;
    const tq_affine *q = &node->in[1]->quantization;
    const size_t first = begin * p->plan.kernel->lanes, last = tq_min_size(end * p->plan.kernel->lanes, p->plan.units);
    const size_t step = q->count > 1;
    const tq_tensor *bias = node->in_count > 2 ? node->in[2] : NULL;
    float *out = node->out[0]->data;
    tq_blockwise_run(&p->plan, &p->weights, &p->row, 1, NULL, begin, end, out);
    (p->rule == tq_hybrid_even ? fused : plain)[tq_isa()](out + first, last - first, q->scale + step * first, step,
                                                          bias ? (const float *)bias->data + first : NULL, p->scale);
    tq_activate(p->activation, out + first, last - first);
}

static tq_status eval(tq_node *node, tq_error *error)
{
    (void)error;
    product p = *(const product *)node->state;
    int8_t *quantized = tq_scratch_at(node, p.quantized_at);
    const tq_hybrid_row by = p.rule(node->in[0]->data, p.plan.columns, 1, quantized);
    p.node = node;
    p.weights = tq_blockwise_packed(&p.plan, node->prepacked);
    tq_blockwise_row_make(&p.plan, quantized, 1, by.zero_point, tq_scratch_at(node, p.row_at), &p.row);
    p.scale = by.scale;
    tq_parallel_for(p.plan.panels, tq_grain(p.plan.columns * TQ_BLOCKWISE_LANES), node->threads, run_panels, &p);
    return TQ_OK;
}

bool tq_hybrid_row_suits(const tq_node *node, size_t columns)
{
    const tq_tensor *weights = node->in[1];
    const bool is_narrow = weights->type == TQ_TensorType_INT4 || weights->type == TQ_TensorType_INT2;
    return is_narrow && tq_is_constant(weights) && columns > 0 && columns <= MOST && tq_blockwise_has_vectors();
}

tq_status tq_prepare_hybrid_row(tq_node *node, size_t columns, size_t units, int64_t activation, tq_hybrid_rule rule,
                                tq_error *error)
{
    const int8_t *weights = node->in[1]->data;
    product *p;
    TQ_TRY(tq_node_state(node, sizeof *p, &p, error));
    p->rule = rule;
    p->activation = activation;
    TQ_TRY(tq_blockwise_plan(&p->plan, units, columns, columns, false, error));
    TQ_TRY(tq_node_memory(node, units, sizeof(float), &p->ones, error));
    TQ_TRY(tq_node_memory(node, units, sizeof(float), &p->sums, error));
    for (size_t i = 0; i < units && !tq_stop_now(); i++) {
        int32_t sum;
        tq_row_sums(weights + i * columns, 1, columns, &sum);
        p->sums[i] = (float)sum;
        p->ones[i] = 1;
    }
    const int64_t key[] = {(intptr_t)p->plan.kernel, (int64_t)units, (int64_t)columns};
    TQ_TRY(tq_node_prepack(node, p->plan.packed_bytes, prepack, key, 3, error));
    uint64_t total = 0;
    p->row_at = tq_scratch_part(&total, 1, p->plan.row_bytes);
    p->quantized_at = tq_scratch_part(&total, columns, 1);
    node->eval = eval;
    return tq_node_scratch(node, total, error);
}
