/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of lookup_table.h.
 */
#include "ops/elementwise/lookup_table.h"

#include <math.h>

#include "base/round.h"
#include "kernels/arrays/lookup.h"
#include "ops/check.h"
#include "ops/quantized.h"

static void run_table(const void *in, void *out, size_t n, const void *params)
{
    tq_lookup_bytes(params, in, out, n);
}

static void run_lines(const void *in, void *out, size_t n, const void *params)
{
    const tq_lookup *lookup = params;
    tq_lines_run(&lookup->lines, lookup->table, in, out, n);
}

/* A range begins at a multiple of 64 (map.h), and so at a whole block. */
static void run_blocks(const void *in, void *out, size_t n, const void *params)
{
    const tq_lookup *lookup = params;
    const size_t remainder = n % lookup->block, whole = n - remainder;
    tq_lookup_bytes(lookup->table, in, out, whole);
    tq_lookup_bytes(lookup->remainder, (const uint8_t *)in + whole, (uint8_t *)out + whole, remainder);
}

static void run_points(const void *in, void *out, size_t n, const void *params)
{
    const int16_t *from = in, *points = params;
    int16_t *to = out;
    for (size_t i = 0; i < n; i++)
        to[i] = tq_lookup_point(from[i], points);
}

static tq_status begin(tq_node *node, tq_lookup **out, tq_error *error)
{
    tq_lookup *lookup;
    TQ_TRY(tq_node_state(node, sizeof *lookup, &lookup, error));
    TQ_TRY(tq_map_prepare(node, &lookup->map, error));
    bool is_wide = node->in[0]->type == TQ_TensorType_INT16;
    lookup->map.run = is_wide ? run_points : run_table;
    lookup->map.params = is_wide ? (const void *)lookup->points : lookup->table;
    lookup->map.cost = is_wide ? 700 : 12;
    *out = lookup;
    return TQ_OK;
}

static void fill_table(const tq_node *node, tq_quantized_fn function, const void *params, uint8_t table[256])
{
    int32_t low, high, least, most;
    tq_quantized_range(node->in[0]->type, &low, &high);
    tq_quantized_range(node->out[0]->type, &least, &most);
    for (int32_t q = low; q <= high; q++)
        table[(uint8_t)q] = (uint8_t)tq_clamp_i64(function(q, params), least, most);
}

tq_status tq_lookup_prepare(tq_node *node, tq_quantized_fn function, const void *params, tq_error *error)
{
    tq_lookup *lookup;
    TQ_TRY(begin(node, &lookup, error));
    fill_table(node, function, params, lookup->table);
    node->out[0]->mapped_from = node->in[0];
    node->out[0]->map = lookup->table;
    return TQ_OK;
}

void tq_lookup_by_lines(tq_node *node, double below, double above)
{
    tq_lookup *lookup = node->state;
    const bool flips_in = node->in[0]->type == TQ_TensorType_UINT8;
    const bool flips_out = node->out[0]->type == TQ_TensorType_UINT8;
    const int32_t zero = tq_kernel_zero_point(node, node->in[0]) - (flips_in ? 128 : 0);
    if (!tq_lines_find(&lookup->lines, lookup->table, (const double[2]){below, above}, zero, flips_in, flips_out))
        return;
    lookup->map.run = run_lines;
    lookup->map.params = lookup;
}

tq_status tq_lookup_prepare_blocks(tq_node *node, size_t block, tq_quantized_fn function, tq_quantized_fn remainder,
                                   const void *params, tq_error *error)
{
    TQ_TRY(tq_lookup_prepare(node, function, params, error));
    tq_lookup *lookup = node->state;
    fill_table(node, remainder, params, lookup->remainder);
    lookup->block = block;
    node->out[0]->mapped_from = NULL;
    lookup->map.run = run_blocks;
    lookup->map.params = lookup;
    return TQ_OK;
}

void tq_lookup_clamp(tq_node *node, int32_t low, int32_t high)
{
    tq_lookup *lookup = node->state;
    const bool is_signed = node->out[0]->type == TQ_TensorType_INT8;
    for (int i = 0; i < 256; i++) {
        int32_t q = is_signed ? (int8_t)lookup->table[i] : lookup->table[i];
        lookup->table[i] = (uint8_t)tq_clamp_i64(q, low, high);
    }
}

/* ---- real functions ---- */

typedef struct real_function {
    tq_real_fn real;
    const void *params;
    float scale, inverse;
    int32_t zero_point, output_zero_point;
} real_function;

/* Multiplies by the reciprocal of the output's scale, and adds the zero point in float32, as the runtime does.  A sum
   outside of int32 saturates. */
static int32_t quantized_real(int32_t q, const void *context)
{
    const real_function *c = context;
    float y = c->real(c->scale * (float)(q - c->zero_point), c->params);
    return tq_value_of_rounded(tq_round_f32(y * c->inverse) + (float)c->output_zero_point, 0, INT32_MIN, INT32_MAX);
}

/* XNNPACK's: the zero point is added before the rounding, which is to even. */
static int32_t quantized_real_even(int32_t q, const void *context)
{
    const real_function *c = context;
    float y = c->real((float)(q - c->zero_point) * c->scale, c->params);
    return tq_value_of_rounded(rintf(y * c->inverse + (float)c->output_zero_point), 0, INT32_MIN, INT32_MAX);
}

tq_status tq_lookup_prepare_real(tq_node *node, tq_real_fn real, const void *params, tq_error *error)
{
    TQ_TRY(tq_check_output_divisor(node, error));
    float in_scale = tq_kernel_scale(node, node->in[0]), out_scale = tq_kernel_scale(node, node->out[0]);
    int32_t in_zero = tq_kernel_zero_point(node, node->in[0]), out_zero = tq_kernel_zero_point(node, node->out[0]);
    if (node->in[0]->type != TQ_TensorType_INT16) {
        real_function c = {real, params, in_scale, 1 / out_scale, in_zero, out_zero};
        return tq_lookup_prepare(node, node->numerics == TQ_NUMERICS_XNNPACK ? quantized_real_even : quantized_real, &c,
                                 error);
    }
    tq_lookup *lookup;
    TQ_TRY(begin(node, &lookup, error));
    tq_lookup_points_f32(real, params, in_scale * (float)(INT16_MIN - in_zero), in_scale * (float)(INT16_MAX - in_zero),
                         out_scale, out_zero, lookup->points);
    return TQ_OK;
}

/* ---- points ---- */

/* The points in F, float or double.  Where the function overflows, the bias is NaN and no correction is made. */
#define POINTS(F, ROUND, ZERO)                                                                 \
    const F output_low = output_scale * (F)(INT16_MIN - ZERO);                                 \
    const F output_high = output_scale * (F)(INT16_MAX - ZERO);                                \
    const F step = (input_high - input_low) / TQ_LOOKUP_STEPS, half_step = step / 2;           \
    const F inverse = (F)65536 / (output_high - output_low);                                   \
    for (int i = 0; i < TQ_LOOKUP_STEPS; i++) {                                                \
        const F here = REAL(input_low + (F)i * step);                                          \
        const F middle = REAL(input_low + (F)i * step + half_step);                            \
        const F next = REAL(input_low + (F)(i + 1) * step);                                    \
        const F sample = ROUND(here * inverse);                                                \
        const F between = ROUND((next * inverse + ROUND(here * inverse)) / 2);                 \
        const F bias = ROUND((between - ROUND(middle * inverse)) / 2);                         \
        points[i] = (int16_t)saturated_point((double)(bias == bias ? sample - bias : sample)); \
    }                                                                                          \
    points[TQ_LOOKUP_STEPS] = (int16_t)saturated_point((double)ROUND(REAL(input_high) * inverse));

static int32_t saturated_point(double rounded)
{
    return tq_value_of_rounded(rounded, 0, INT16_MIN, INT16_MAX);
}

void tq_lookup_points_f32(tq_real_fn real, const void *params, float input_low, float input_high, float output_scale,
                          int32_t output_zero, int16_t *points)
{
#define REAL(x) real(x, params)
    POINTS(float, tq_round_f32, output_zero)
#undef REAL
}

void tq_lookup_points_f64(double (*real)(double x), double input_low, double input_high, double output_scale,
                          int16_t *points)
{
#define REAL(x) real(x)
    POINTS(double, tq_round_f64, 0)
#undef REAL
}
