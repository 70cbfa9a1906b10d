/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan of a blockwise product, its packed weights, and its run panel by panel.
 */
#include "kernels/blockwise/blockwise.h"

#include <string.h>

#include "base/checked.h"
#include "base/sizes.h"
#include "base/stop.h"
#include "kernels/features.h"
#include "kernels/isa.h"

enum { ALIGN = 64, STEP = 4, GROUP = STEP * TQ_BLOCKWISE_PARTS };

static const struct {
    const tq_blockwise_kernel *kernel;
    uint8_t feature;
} bodies[] = {
#define BLOCKWISE(isa) {&tq_blockwise__##isa, tq_feature_##isa},
#include "kernels/blockwise/blockwise.def"
};

static const tq_blockwise_kernel *find_body(void)
{
    const tq_blockwise_kernel *found = NULL;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (tq_kernels_usable() >> bodies[i].feature & 1)
            found = bodies[i].kernel;
    return found;
}

bool tq_blockwise_has_vectors(void)
{
    return find_body() != &tq_blockwise__scalar;
}

bool tq_blockwise_variant(size_t i, tq_variant *row)
{
    if (i >= sizeof bodies / sizeof *bodies)
        return false;
    const bool reached = (tq_kernels_features() | TQ_CPU_SCALAR) >> bodies[i].feature & 1;
    *row = (tq_variant){"blockwise_i4", bodies[i].kernel->isa, reached, find_body() == bodies[i].kernel};
    return true;
}

/* ---- plan ---- */

static uint64_t value_bytes(const tq_blockwise *p)
{
    return (uint64_t)p->blocks * (p->steps / 2) * p->kernel->lanes * STEP;
}

static uint64_t scales_at(const tq_blockwise *p)
{
    return tq_round_up(p->panels * value_bytes(p), ALIGN);
}

static uint64_t sums_at(const tq_blockwise *p)
{
    return scales_at(p) + tq_round_up((uint64_t)p->panels * p->blocks * p->kernel->lanes * sizeof(float), ALIGN);
}

static uint64_t offsets_at(const tq_blockwise *p)
{
    return tq_round_up((uint64_t)p->blocks * p->steps * STEP, ALIGN);
}

tq_status tq_blockwise_plan(tq_blockwise *plan, size_t units, size_t columns, size_t block, bool fused, tq_error *error)
{
    uint64_t weights;
    if (!tq_mul_u64((uint64_t)units + TQ_BLOCKWISE_LANES, (uint64_t)columns + 8, &weights) ||
        weights > PTRDIFF_MAX / 64)
        return tq_fail(error, TQ_NO_MEMORY, TQ_NO_OFFSET, "weights of %zu units by %zu columns are too large", units,
                       columns);
    tq_blockwise p = {.kernel = find_body(), .units = units, .columns = columns, .block = block, .fused = fused};
    p.blocks = columns / block;
    p.steps = tq_round_up(block, 2 * STEP) / STEP;
    p.panels = tq_round_up(units, p.kernel->lanes) / p.kernel->lanes;
    p.packed_bytes = sums_at(&p) + p.panels * p.kernel->lanes * sizeof(float);
    p.row_bytes = offsets_at(&p) + (uint64_t)p.blocks * TQ_BLOCKWISE_PARTS * sizeof(int32_t);
    *plan = p;
    return TQ_OK;
}

/* ---- order ---- */

/* The column, from the block's first one on, of value j < 4 of a step; it may lie after the block's last column. */
static inline size_t column_of(const tq_blockwise *p, size_t step, size_t j)
{
    if (!p->fused)
        return step * STEP + j;
    return step / TQ_BLOCKWISE_PARTS * GROUP + 2 * (step % TQ_BLOCKWISE_PARTS) + j % 2 + j / 2 * (GROUP / 2);
}

/* ---- weights ---- */

static uint8_t packed_value(const tq_blockwise *p, const int8_t *weights, size_t unit, size_t column, size_t step,
                            size_t j)
{
    const size_t k = column_of(p, step, j);
    return unit < p->units && k < p->block ? (uint8_t)(weights[unit * p->columns + column + k] + 8) : 8;
}

static void pack_panel(const tq_blockwise *p, const int8_t *weights, size_t panel, uint8_t *to)
{
    const size_t lanes = p->kernel->lanes;
    for (size_t b = 0; b < p->blocks && !tq_stop_after(p->block * lanes); b++)
        for (size_t s = 0; s < p->steps; s += 2)
            for (size_t l = 0; l < lanes; l++)
                for (size_t j = 0; j < STEP; j++) {
                    const size_t unit = panel * lanes + l, column = b * p->block;
                    const uint8_t low = packed_value(p, weights, unit, column, s, j);
                    *to++ = (uint8_t)(low | packed_value(p, weights, unit, column, s + 1, j) << 4);
                }
}

void tq_blockwise_pack(const tq_blockwise *plan, const int8_t *weights, const float *scales, const float *sums,
                       void *memory)
{
    const size_t lanes = plan->kernel->lanes, blocks = plan->blocks;
    uint8_t *values = memory;
    float *to_scales = (float *)(void *)(values + scales_at(plan)),
          *to_sums = (float *)(void *)(values + sums_at(plan));
    for (size_t panel = 0; panel < plan->panels; panel++) {
        pack_panel(plan, weights, panel, values + panel * value_bytes(plan));
        for (size_t l = 0; l < lanes; l++) {
            const size_t unit = panel * lanes + l;
            for (size_t b = 0; b < blocks; b++)
                to_scales[(panel * blocks + b) * lanes + l] = unit < plan->units ? scales[unit * blocks + b] : 0;
            to_sums[unit] = unit < plan->units ? sums[unit] : 0;
        }
    }
}

tq_blockwise_weights tq_blockwise_packed(const tq_blockwise *plan, const void *memory)
{
    const uint8_t *values = memory;
    return (tq_blockwise_weights){values, (const float *)(const void *)(values + scales_at(plan)),
                                  (const float *)(const void *)(values + sums_at(plan))};
}

/* ---- rows ---- */

/* A block's values in the order of steps, and offsets[i]: -8 times the sum of part i's values. */

/* Whether a row's values have the order of steps as they are. */
static bool is_in_order(const tq_blockwise *p)
{
    return !p->fused && p->steps * STEP == p->block;
}

/* All values belong to part 0. */
TQ_BODY void order_plain(const tq_blockwise *p, const int8_t *from, int8_t *to, int32_t *offsets)
{
    int32_t sum = 0;
    for (size_t k = 0; k < p->block; k++)
        sum += from[k];
    offsets[0] = -8 * sum;
    if (is_in_order(p))
        return;
    memcpy(to, from, p->block);
    memset(to + p->block, 0, p->steps * STEP - p->block);
}

/* The first and the last eight of every 16 values by turns, two at a time. */
TQ_BODY void order_fused(const tq_blockwise *p, const int8_t *from, int8_t *to, int32_t *offsets)
{
    int32_t lane[GROUP] = {0};
    for (size_t k = 0; k < p->block; k += GROUP) {
        uint16_t in[GROUP / 2], out[GROUP / 2];
        memcpy(in, from + k, sizeof in);
        for (size_t i = 0; i < TQ_BLOCKWISE_PARTS; i++) {
            out[2 * i] = in[i];
            out[2 * i + 1] = in[TQ_BLOCKWISE_PARTS + i];
        }
        memcpy(to + k, out, sizeof out);
        for (size_t i = 0; i < GROUP; i++)
            lane[i] += from[k + i];
    }
    for (size_t i = 0; i < TQ_BLOCKWISE_PARTS; i++)
        offsets[i] = -8 * (lane[2 * i] + lane[2 * i + 1] + lane[2 * i + 8] + lane[2 * i + 9]);
}

#define ORDER(name, target, order)                                                                   \
    target static void name(const tq_blockwise *p, const int8_t *from, int8_t *to, int32_t *offsets) \
    {                                                                                                \
        for (size_t b = 0; b < p->blocks; b++, from += p->block, to += p->steps * STEP)              \
            order(p, from, to, offsets + b * TQ_BLOCKWISE_PARTS);                                    \
    }
TQ_ISA_DEFINE(ORDER, all_plain, order_plain)
TQ_ISA_DEFINE(ORDER, all_fused, order_fused)

static tq_blockwise_order_fn find_order(const tq_blockwise *p)
{
    static const tq_blockwise_order_fn plain[TQ_ISAS] = TQ_ISA_FUNCTIONS(all_plain);
    static const tq_blockwise_order_fn fused[TQ_ISAS] = TQ_ISA_FUNCTIONS(all_fused);
    const tq_blockwise_order_fn pieces = p->fused ? p->kernel->order_fused : p->kernel->order_plain;
    return pieces && p->block % TQ_BLOCKWISE_PIECE == 0 ? pieces : (p->fused ? fused : plain)[tq_isa()];
}

/* *row by fields: a copy would load before their stores end. */
void tq_blockwise_row_make(const tq_blockwise *plan, const int8_t *values, float scale, int32_t zero_point,
                           void *memory, tq_blockwise_row *row)
{
    int8_t *to = memory;
    int32_t *offsets = (int32_t *)(void *)(to + offsets_at(plan));
    find_order(plan)(plan, values, to, offsets);
    row->values = is_in_order(plan) ? values : to;
    row->offsets = offsets;
    row->scale = scale;
    row->zero_point = (float)zero_point;
}

/* ---- run ---- */

/* A whole panel and more, or the n < lanes units of the last. */
static void run_part(const tq_blockwise *plan, tq_blockwise_fn run, const tq_blockwise_weights *part,
                     const tq_blockwise_row *row, size_t rows, const float *bias, size_t n, float *out)
{
    const size_t lanes = plan->kernel->lanes;
    float last[TQ_BLOCKWISE_ROWS * TQ_BLOCKWISE_LANES], last_bias[TQ_BLOCKWISE_LANES] = {0};
    if (n >= lanes) {
        run(plan, part, row, bias, out, plan->units);
        return;
    }
    if (bias)
        memcpy(last_bias, bias, n * sizeof *bias);
    run(plan, part, row, bias ? last_bias : NULL, last, lanes);
    for (size_t r = 0; r < rows; r++)
        memcpy(out + r * plan->units, last + r * lanes, n * sizeof *out);
}

void tq_blockwise_run(const tq_blockwise *plan, const tq_blockwise_weights *weights, const tq_blockwise_row *row,
                      size_t count, const float *bias, size_t begin, size_t end, float *out)
{
    const size_t lanes = plan->kernel->lanes;
    const tq_blockwise_fn(*run)[2] = plan->fused ? plan->kernel->fused : plan->kernel->plain;
    size_t panels;
    for (size_t panel = begin; panel < end && !tq_stop_after(plan->columns * lanes * count / 32); panel += panels) {
        const size_t unit = panel * lanes, n = plan->units - unit;
        const tq_blockwise_weights part = {weights->values + panel * value_bytes(plan),
                                           weights->scales + panel * plan->blocks * lanes, weights->sums + unit};
        const bool two = end - panel > 1 && n >= 2 * lanes;
        panels = two && run[0][1] && run[count >= TQ_BLOCKWISE_ROWS][1] ? 2 : 1;
        for (size_t r = 0, rows; r < count; r += rows) {
            const bool many = run[1][panels - 1] && count - r >= TQ_BLOCKWISE_ROWS;
            rows = many ? TQ_BLOCKWISE_ROWS : 1;
            run_part(plan, run[many][panels - 1], &part, row + r, rows, bias ? bias + unit : NULL, n,
                     out + r * plan->units + unit);
        }
    }
}
