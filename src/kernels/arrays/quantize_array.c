/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <string.h>

#include "base/checked.h"
#include "kernels/arrays/array_walk.h"
#include "kernels/isa.h"

/* Of the operations that tq_array_scratch serves, quantize has the most columns. */
#define QUANTIZE_COLUMNS .size = {4, 4, 4, 4, 4}, .count = Q_COLUMNS
enum { Q_SCALE, Q_INVERSE, Q_SLOPE, Q_OFFSET, Q_ZERO, Q_COLUMNS };

/* Computes slopes and, unless NULL, inverses; returns whether a slope is infinite.  Vectorized: short rows have many
 * sets. */
TQ_BODY bool slopes(const float *restrict scale, size_t n, float *restrict inverse, float *restrict slope)
{
    int infinite_slope = 0;
    for (size_t i = 0; i < n; i++) {
        float value = 1.0f / scale[i]; /* tq_inverse_scale */
        slope[i] = value * 65536;
        infinite_slope |= !(slope[i] <= FLT_MAX);
        if (inverse)
            inverse[i] = value;
    }
    return infinite_slope;
}

typedef bool (*slopes_fn)(const float *, size_t, float *, float *);
#define SLOPES(isa, target)                                                                     \
    target static bool slopes_##isa(const float *scale, size_t n, float *inverse, float *slope) \
    {                                                                                           \
        return slopes(scale, n, inverse, slope);                                                \
    }
TQ_EVERY_ISA(SLOPES)

/* Offsets of fixed_simd.h.  Exact for 8-bit values, which alone use them. */
TQ_BODY void offsets(const int32_t *restrict zero, size_t n, int32_t center, float *restrict offset)
{
    for (size_t i = 0; i < n; i++)
        offset[i] = (float)(zero[i] - center) * 65536.0f + (32768.0f + TQ_FIXED_ERROR);
}

typedef void (*offsets_fn)(const int32_t *, size_t, int32_t, float *);
#define OFFSETS(isa, target)                                                                       \
    target static void offsets_##isa(const int32_t *zero, size_t n, int32_t center, float *offset) \
    {                                                                                              \
        offsets(zero, n, center, offset);                                                          \
    }
TQ_EVERY_ISA(OFFSETS)

static void fill_quantize(tq_walk_params *p, char *const *data, unsigned columns, const tq_walk_source *from,
                          size_t first, size_t sets)
{
    static const slopes_fn of_scales[TQ_ISAS] = TQ_ISA_FUNCTIONS(slopes);
    static const offsets_fn of_zeros[TQ_ISAS] = TQ_ISA_FUNCTIONS(offsets);
    const float *scales = (const float *)data[Q_SCALE];
    const int32_t *zeros = (const int32_t *)data[Q_ZERO];
    if (from->in_place && from->scale.many)
        p->quantize.scale = scales = from->scale.data + first;
    else
        tq_fill_u32(data[Q_SCALE], from->scale.data, from->scale.many, first, sets);
    p->quantize.infinite_slope = of_scales[tq_isa()](
        scales, sets, columns >> Q_INVERSE & 1 ? (float *)data[Q_INVERSE] : NULL, (float *)data[Q_SLOPE]);
    if (!(columns >> Q_ZERO & 1))
        return;
    if (from->in_place && from->zero_point.many)
        p->quantize.zero_point = zeros = from->zero_point.data + first;
    else
        tq_fill_u32(data[Q_ZERO], from->zero_point.data, from->zero_point.many, first, sets);
    of_zeros[tq_isa()](zeros, sets, tq_integer_center(from->out), (float *)data[Q_OFFSET]);
}

static void point_quantize(tq_walk_params *params, char *const *data)
{
    tq_quantize_params *p = &params->quantize;
    p->scale = (float *)data[Q_SCALE], p->inverse = (float *)data[Q_INVERSE];
    p->slope = (float *)data[Q_SLOPE], p->offset = (float *)data[Q_OFFSET];
    p->zero_point = (int32_t *)data[Q_ZERO];
}

tq_status tq_quantize_array(const tq_array_job *job, tq_column_f32 scale, tq_column_i32 zero_point, int32_t low,
                            int32_t high, tq_quantize_rule rule, tq_error *error)
{
    static const tq_operation operations[] = {
        [TQ_QUANTIZE_AWAY] = TQ_KERNEL_quantize_away,
        [TQ_QUANTIZE_EVEN] = TQ_KERNEL_quantize_even,
    };
    if (tq_layout_elements(&job->layout) == 0)
        return TQ_OK;
    bool clamp = low != tq_element_low(job->out_type) || high != tq_element_high(job->out_type);
    int32_t mask = job->value_mask ? job->value_mask : -1;
    const int32_t center = tq_integer_center(job->out_type);
    tq_walk_params p = {.quantize = {.low = low,
                                     .high = high,
                                     .mask = mask,
                                     .low_bytes = tq_four_bytes(low - center),
                                     .high_bytes = tq_four_bytes(high - center),
                                     .flip_bytes = tq_four_bytes(center),
                                     .mask_bytes = tq_four_bytes(mask),
                                     .clamp = clamp,
                                     .stream = tq_job_is_large(job)}};
    tq_walk_source source = {.scale = scale, .zero_point = zero_point, .in = job->in_type, .out = job->out_type};
    bool many = scale.many || zero_point.many;
    tq_walk w = {.params = &p,
                 .source = &source,
                 .fill = fill_quantize,
                 .point = point_quantize,
                 .layout = tq_layout_joined(job->layout, many)};
    bool rows = tq_layout_way(&w.layout) == TQ_WAY_ROWS;
    source.in_place = many && rows && tq_layout_needs(&w.layout).sets == 0;
    unsigned of_rule = rule == TQ_QUANTIZE_AWAY ? 1u << Q_SCALE : 1u << Q_INVERSE;
    unsigned of_zero_point = 1u << Q_OFFSET | 1u << Q_ZERO;
    tq_columns c = {QUANTIZE_COLUMNS, .needed = of_rule | 1u << Q_SLOPE | of_zero_point, .scratch = job->scratch,
                    .constant = zero_point.many ? 0 : of_zero_point};
    return tq_walk_run(&w, job, operations[rule], &c, error);
}

bool tq_array_scratch(const tq_layout *layout, uint64_t *bytes)
{
    const tq_columns c = {QUANTIZE_COLUMNS};
    tq_walk_needs needs = {0};
    uint64_t sets = 0, spread = 0;
    if (tq_layout_elements(layout) > 0)
        needs = tq_layout_needs(layout);
    bool fits = (needs.sets == 0 || tq_columns_bytes(&c, needs.sets, &sets)) &&
                (needs.spread == 0 || tq_columns_bytes(&c, needs.spread, &spread));
    return tq_add_u64(sets, spread, bytes) && fits;
}
