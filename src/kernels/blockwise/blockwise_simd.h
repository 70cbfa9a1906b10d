/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: one vector row of blockwise.def, whose panel is a vector.  The includer defines
 *
 *   BLOCKWISE_ISA                  avx2 ...; vf, vi, LANES, TARGET and INLINE come from simd_<isa>.h
 *   load_bytes(p)                  a vector of bytes
 *   low_bits(x), high_bits(x)      the low and the high four bits of each byte
 *   multiply(acc, weights, p)      acc + products of each lane's 4 unsigned weights and the 4 int8 values at p
 *   to_f32(x), add_f32(a, b), sub_f32(a, b), save_f32(p, x)
 */
#include "base/names.h"

enum { STEP = 4, VECTOR = LANES * STEP };

/* Products of a call, side by side: rows by panels.  Weights are unpacked once for all rows, values of a row loaded
   once for all panels. */
#define MOST (2 * TQ_BLOCKWISE_ROWS)
#define EACH(i, n) _Pragma("GCC unroll 8") for (size_t i = 0; i < (n); i++)

INLINE vf load_bias(const float *bias, size_t panel)
{
    return bias ? load_f32(bias + panel * LANES) : splat_f32(0);
}

INLINE void plain_body(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row,
                       const float *bias, float *out, size_t out_stride, const size_t panels, const size_t rows)
{
    const size_t blocks = plan->blocks, steps = plan->steps, next = blocks * (steps / 2) * VECTOR, n = panels * rows;
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
        for (size_t s = 0; s < steps; s += 2, w += VECTOR, at += 2 * STEP)
            EACH (p, panels) {
                const vi two = load_bytes(w + p * next), low = low_bits(two), high = high_bits(two);
                EACH (r, rows) {
                    const size_t i = r * panels + p;
                    acc[i] = multiply(acc[i], low, row[r].values + at);
                    acc[second + i] = multiply(acc[second + i], high, row[r].values + at + STEP);
                }
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
        save_f32(out + r * out_stride + p * LANES, bias ? add_f32(sum[i], load_bias(bias, p)) : sum[i]);
    }
}

INLINE void fused_body(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row,
                       const float *bias, float *out, size_t out_stride, const size_t panels, const size_t rows)
{
    const size_t blocks = plan->blocks, steps = plan->steps, next = blocks * (steps / 2) * VECTOR, n = panels * rows;
    const uint8_t *w = panel->values;
    size_t at = 0;
    vf sum0[2], sum1[2], sum2[2], sum3[2];
    EACH (i, n) {
        sum0[i] = mul_f32(load_f32(panel->sums + i % panels * LANES), splat_f32(row[i / panels].zero_point));
        sum1[i] = sum2[i] = sum3[i] = splat_f32(0);
    }
    for (size_t b = 0; b < blocks; b++) {
        vi acc0[2], acc1[2], acc2[2], acc3[2];
        EACH (i, n) {
            const int32_t *offset = row[i / panels].offsets + b * TQ_BLOCKWISE_PARTS;
            acc0[i] = splat_s32(offset[0]), acc1[i] = splat_s32(offset[1]);
            acc2[i] = splat_s32(offset[2]), acc3[i] = splat_s32(offset[3]);
        }
        size_t s = 0;
        do {
            EACH (p, panels) {
                const vi first = load_bytes(w + p * next), last = load_bytes(w + p * next + VECTOR);
                EACH (r, rows) {
                    const size_t i = r * panels + p;
                    const int8_t *x = row[r].values + at;
                    acc0[i] = multiply(acc0[i], low_bits(first), x);
                    acc1[i] = multiply(acc1[i], high_bits(first), x + STEP);
                    acc2[i] = multiply(acc2[i], low_bits(last), x + 2 * STEP);
                    acc3[i] = multiply(acc3[i], high_bits(last), x + 3 * STEP);
                }
            }
            w += 2 * VECTOR, at += 4 * STEP, s += TQ_BLOCKWISE_PARTS;
        } while (s < steps);
        EACH (i, n) {
            const vf scale = load_f32(panel->scales + (i % panels * blocks + b) * LANES);
            sum0[i] = fma_f32(to_f32(acc0[i]), scale, sum0[i]);
            sum1[i] = fma_f32(to_f32(acc1[i]), scale, sum1[i]);
            sum2[i] = fma_f32(to_f32(acc2[i]), scale, sum2[i]);
            sum3[i] = fma_f32(to_f32(acc3[i]), scale, sum3[i]);
        }
    }
    EACH (i, n) {
        const vf sum = add_f32(add_f32(sum0[i], sum1[i]), add_f32(sum2[i], sum3[i]));
        save_f32(out + i / panels * out_stride + i % panels * LANES,
                 fma_f32(sum, splat_f32(row[i / panels].scale), load_bias(bias, i % panels)));
    }
}

#define RUN(name, body, panels, rows)                                                                                 \
    static TARGET void name(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row, \
                            const float *bias, float *out, size_t out_stride)                                         \
    {                                                                                                                 \
        body(plan, panel, row, bias, out, out_stride, panels, rows);                                                  \
    }
RUN(run_plain, plain_body, 1, 1)
RUN(run_two_plain, plain_body, 2, 1)
RUN(run_rows_plain, plain_body, 1, TQ_BLOCKWISE_ROWS)
RUN(run_two_rows_plain, plain_body, 2, TQ_BLOCKWISE_ROWS)
RUN(run_fused, fused_body, 1, 1)
RUN(run_two_fused, fused_body, 2, 1)

/* Four sums a row: registers hold those of two rows of a panel. */
static TARGET void run_rows_fused(const tq_blockwise *plan, const tq_blockwise_weights *panel,
                                  const tq_blockwise_row *row, const float *bias, float *out, size_t out_stride)
{
    for (size_t r = 0; r < TQ_BLOCKWISE_ROWS; r += 2)
        fused_body(plan, panel, row + r, bias, out + r * out_stride, out_stride, 1, 2);
}

const tq_blockwise_kernel TQ_GLUE(tq_blockwise__, BLOCKWISE_ISA) = {
    TQ_TEXT(BLOCKWISE_ISA),
    LANES,
    {{run_plain, run_two_plain}, {run_rows_plain, LANES > 8 ? run_two_rows_plain : NULL}},
    {{run_fused, run_two_fused}, {run_rows_fused, NULL}}};
