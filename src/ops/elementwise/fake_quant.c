/* SPDX-License-Identifier: Apache-2.0
 *
 * FAKE_QUANT: away(f32((clamp(x) - low) / s)) s + low; NaN gives low.
 * Source: LiteRT f6745779, tflite/kernels/fake_quant.cc, internal/quantization_util.cc.
 */
#include "ops/check.h"
#include "ops/elementwise/map.h"
#include "quant/fake_quant.h"
#include "quant/rounding.h"

typedef struct state {
    tq_map map;
    tq_nudged nudged;
} state;

static inline float fake_quantize(float x, const tq_nudged *n)
{
    float raised = n->low < x ? x : n->low;
    float bounded = raised < n->high ? raised : n->high;
    return tq_round_f32((bounded - n->low) * n->inverse) * n->scale + n->low;
}

TQ_MAP(run_fake, , float, float, tq_nudged, fake_quantize(x, &p))

tq_status tq_prepare_fake_quant(tq_node *node, tq_error *error)
{
    state *s;
    tq_error reason = {0};
    const tq_table *options = &node->options.table;
    TQ_TRY(tq_check_input(node, 0, TQ_T(FLOAT32), error));
    TQ_TRY(tq_check_output_like(node, 0, 0, error));
    TQ_TRY(tq_node_state(node, sizeof *s, &s, error));
    float min = (float)tq_get_scalar(options, TQ_FakeQuantOptions_min).f;
    float max = (float)tq_get_scalar(options, TQ_FakeQuantOptions_max).f;
    int64_t bits = tq_get_int(options, TQ_FakeQuantOptions_num_bits);
    bool narrow = tq_get_int(options, TQ_FakeQuantOptions_narrow_range) != 0;
    if (bits < 2 || bits > 16)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "num_bits is %lld; it must be from 2 to 16", (long long)bits);
    if (tq_fake_quant_nudge(min, max, (int)bits, narrow, &s->nudged, &reason) != TQ_OK)
        return tq_op_fail(node, error, TQ_BAD_OPERATOR, "min %g, max %g, num_bits %d: %s", min, max, (int)bits,
                          reason.text);
    s->map.params = &s->nudged;
    s->map.run = run_fake;
    s->map.cost = 3000;
    return tq_map_prepare(node, &s->map, error);
}
