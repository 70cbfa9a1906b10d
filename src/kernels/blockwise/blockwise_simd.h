/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: one vector row of blockwise.def, whose panel is a vector.  The includer defines
 *
 *   BLOCKWISE_ISA                  avx2 ...; vf, vi, LANES, TARGET and INLINE come from simd_<isa>.h
 *   load_bytes(p)                  a vector of bytes
 *   low_bits(x), high_bits(x)      the low and the high four bits of each byte
 *   multiply(part, weights, p)     part + products of each lane's 4 unsigned weights and the 4 int8 values at p
 *   start_part(acc)                a part of the sums, of at most eight steps
 *   end_part(acc, part)            acc + part
 *   to_f32(x), add_f32(a, b), sub_f32(a, b), save_f32(p, x)
 *   clamp_or_low(x, low, high)     NaN becomes low
 */
#include "base/names.h"

enum { STEP = 4, VECTOR = LANES * STEP, FUSED = LANES > 8 ? 4 : 2 };

/* Products of a call, side by side: rows by panels.  Weights are unpacked once for all rows, values of a row loaded
   once for all panels. */
#define MOST (2 * TQ_BLOCKWISE_ROWS)
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* with sanitizers it leaves some loops */
#endif
#define EACH(i, n) _Pragma("GCC unroll 8") for (size_t i = 0; i < (n); i++)

INLINE vf load_bias(const float *bias, size_t panel)
{
    return bias ? load_f32(bias + panel * LANES) : splat_f32(0);
}

INLINE void save_result(const tq_blockwise *plan, float *out, vf x)
{
    save_f32(out, plan->clamps ? clamp_or_low(x, splat_f32(plan->low), splat_f32(plan->high)) : x);
}

/* Two steps. */
INLINE void add_pair(vi *acc, const size_t second, const uint8_t *w, size_t next, const tq_blockwise_row *row,
                     size_t at, const size_t panels, const size_t rows)
{
    EACH (p, panels) {
        const vi two = load_bytes(w + p * next), low = low_bits(two), high = high_bits(two);
        EACH (r, rows) {
            const size_t i = r * panels + p;
            acc[i] = multiply(acc[i], low, row[r].values + at);
            acc[second + i] = multiply(acc[second + i], high, row[r].values + at + STEP);
        }
    }
}

/* pairs: of steps, that are unrolled; a block has a multiple.  block: plan->block where it is constant, or 0. */
INLINE void plain_body(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row,
                       const float *bias, float *out, size_t out_stride, const size_t panels, const size_t rows,
                       const size_t block, const size_t pairs)
{
    const size_t blocks = plan->blocks, steps = block ? block / STEP : plan->steps;
    const size_t next = blocks * (steps / 2) * VECTOR, n = panels * rows;
    const size_t second = rows == 1 ? n : 0; /* sums of high bits: those of one row would wait for each other */
    const uint8_t *w = panel->values;
    size_t at = 0;
    vf sum[MOST];
    EACH (i, n)
        sum[i] = splat_f32(0);
    for (size_t b = 0; b < blocks; b++) {
        vi acc[MOST];
        EACH (i, n) {
            acc[second + i] = splat_s32(0);
            acc[i] = splat_s32(row[i / panels].offsets[b * TQ_BLOCKWISE_PARTS]);
        }
        for (size_t s = 0; s < steps / 2; s += pairs, w += pairs * VECTOR, at += pairs * 2 * STEP) {
            vi part[MOST];
            EACH (i, second + n)
                part[i] = start_part(acc[i]);
            EACH (k, pairs)
                add_pair(part, second, w + k * VECTOR, next, row, at + k * 2 * STEP, panels, rows);
            EACH (i, second + n)
                acc[i] = end_part(acc[i], part[i]);
        }
        EACH (i, n) {
            const vi all = second ? add_s32(acc[i], acc[second + i]) : acc[i];
            sum[i] = add_f32(sum[i], mul_f32(to_f32(all), load_f32(panel->scales + (i % panels * blocks + b) * LANES)));
        }
    }
    EACH (i, n) {
        const size_t r = i / panels, p = i % panels;
        sum[i] = sub_f32(sum[i], mul_f32(splat_f32(row[r].zero_point), load_f32(panel->sums + p * LANES)));
        sum[i] = mul_f32(sum[i], splat_f32(row[r].scale));
        save_result(plan, out + r * out_stride + p * LANES, bias ? add_f32(sum[i], load_bias(bias, p)) : sum[i]);
    }
}

/* The usual blocks have loops of their own. */
INLINE void plain_rows(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row,
                       const float *bias, float *out, size_t out_stride, const size_t panels, const size_t rows)
{
    if (plan->block == 32)
        plain_body(plan, panel, row, bias, out, out_stride, panels, rows, 32, 4);
    else if (plan->block % 32 == 0)
        plain_body(plan, panel, row, bias, out, out_stride, panels, rows, 0, 4);
    else
        plain_body(plan, panel, row, bias, out, out_stride, panels, rows, 0, 1);
}

/* Two steps of two parts. */
INLINE void add_steps(vi *low, vi *high, const uint8_t *w, size_t next, const tq_blockwise_row *row, size_t at,
                      const size_t panels, const size_t rows)
{
    EACH (p, panels) {
        const vi two = load_bytes(w + p * next);
        EACH (r, rows) {
            const size_t i = r * panels + p;
            low[i] = multiply(low[i], low_bits(two), row[r].values + at);
            high[i] = multiply(high[i], high_bits(two), row[r].values + at + STEP);
        }
    }
}

/* A block's parts by twos, those of a vector's low and high bits: registers hold two integer sums and four float ones
   of up to FUSED products.  groups: of PARTS steps, that are unrolled; block as in plain_body. */
INLINE void fused_body(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row,
                       const float *bias, float *out, size_t out_stride, const size_t panels, const size_t rows,
                       const size_t block, const size_t groups)
{
    enum { PARTS = TQ_BLOCKWISE_PARTS, GROUP = PARTS * STEP };
    const size_t blocks = plan->blocks, steps = block ? block / STEP : plan->steps;
    const size_t next = blocks * (steps / 2) * VECTOR, n = panels * rows;
    vf sum[FUSED][PARTS];
    EACH (i, n) {
        sum[i][0] = mul_f32(load_f32(panel->sums + i % panels * LANES), splat_f32(row[i / panels].zero_point));
        sum[i][1] = sum[i][2] = sum[i][3] = splat_f32(0);
    }
    for (size_t b = 0; b < blocks; b++)
        EACH (part, PARTS / 2) {
            const uint8_t *w = panel->values + (b * steps / 2 + part) * VECTOR;
            size_t at = b * steps * STEP + 2 * part * STEP;
            vi low[FUSED], high[FUSED];
            EACH (i, n) {
                const int32_t *offset = row[i / panels].offsets + b * PARTS + 2 * part;
                low[i] = splat_s32(offset[0]), high[i] = splat_s32(offset[1]);
            }
            for (size_t g = 0; g < steps / PARTS; g += groups, w += groups * 2 * VECTOR, at += groups * GROUP) {
                vi low_part[FUSED], high_part[FUSED];
                EACH (i, n)
                    low_part[i] = start_part(low[i]), high_part[i] = start_part(high[i]);
                EACH (k, groups)
                    add_steps(low_part, high_part, w + k * 2 * VECTOR, next, row, at + k * GROUP, panels, rows);
                EACH (i, n)
                    low[i] = end_part(low[i], low_part[i]), high[i] = end_part(high[i], high_part[i]);
            }
            EACH (i, n) {
                const vf scale = load_f32(panel->scales + (i % panels * blocks + b) * LANES);
                sum[i][2 * part] = fma_f32(to_f32(low[i]), scale, sum[i][2 * part]);
                sum[i][2 * part + 1] = fma_f32(to_f32(high[i]), scale, sum[i][2 * part + 1]);
            }
        }
    EACH (i, n) {
        const vf all = add_f32(add_f32(sum[i][0], sum[i][1]), add_f32(sum[i][2], sum[i][3]));
        save_result(plan, out + i / panels * out_stride + i % panels * LANES,
                    fma_f32(all, splat_f32(row[i / panels].scale), load_bias(bias, i % panels)));
    }
}

INLINE void fused_rows(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row,
                       const float *bias, float *out, size_t out_stride, const size_t panels, const size_t rows)
{
    if (plan->block == 32)
        fused_body(plan, panel, row, bias, out, out_stride, panels, rows, 32, 2);
    else if (plan->block == 64)
        fused_body(plan, panel, row, bias, out, out_stride, panels, rows, 64, 4);
    else
        fused_body(plan, panel, row, bias, out, out_stride, panels, rows, 0, 1);
}

#define RUN(name, body, panels, rows)                                                                                 \
    static TARGET void name(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row, \
                            const float *bias, float *out, size_t out_stride)                                         \
    {                                                                                                                 \
        body(plan, panel, row, bias, out, out_stride, panels, rows);                                                  \
    }
RUN(run_plain, plain_rows, 1, 1)
RUN(run_two_plain, plain_rows, 2, 1)
RUN(run_rows_plain, plain_rows, 1, TQ_BLOCKWISE_ROWS)
RUN(run_two_rows_plain, plain_rows, 2, TQ_BLOCKWISE_ROWS)
RUN(run_fused, fused_rows, 1, 1)
RUN(run_two_fused, fused_rows, 2, 1)

/* FUSED products at once. */
#define RUN_ROWS_FUSED(name, panels)                                                                                  \
    static TARGET void name(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row, \
                            const float *bias, float *out, size_t out_stride)                                         \
    {                                                                                                                 \
        for (size_t r = 0; r < TQ_BLOCKWISE_ROWS; r += FUSED / (panels))                                              \
            fused_rows(plan, panel, row + r, bias, out + r * out_stride, out_stride, panels, FUSED / (panels));       \
    }
RUN_ROWS_FUSED(run_rows_fused, 1)
RUN_ROWS_FUSED(run_two_rows_fused, 2)

const tq_blockwise_kernel TQ_GLUE(tq_blockwise__, BLOCKWISE_ISA) = {
    TQ_TEXT(BLOCKWISE_ISA),
    LANES,
    {{run_plain, run_two_plain}, {run_rows_plain, LANES > 8 ? run_two_rows_plain : NULL}},
    {{run_fused, run_two_fused}, {run_rows_fused, LANES > 8 ? run_two_rows_fused : NULL}},
    tq_blockwise_order_plain,
    tq_blockwise_order_fused};
