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
#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

enum { STEP = 4, VECTOR = LANES * STEP };

/* Panels of a call are multiplied with the row's values side by side: a value is loaded once for all. */
#define EACH(p) _Pragma("GCC unroll 2") for (size_t p = 0; p < panels; p++)

INLINE vf load_bias(const float *bias, size_t panel)
{
    return bias ? load_f32(bias + panel * LANES) : splat_f32(0);
}

INLINE void plain_body(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row,
                       const float *bias, float *out, const size_t panels)
{
    const size_t blocks = plan->blocks, steps = plan->steps, next = blocks * (steps / 2) * VECTOR;
    const uint8_t *w = panel->values;
    const int8_t *x = row->values;
    vf sum[2];
    EACH (p)
        sum[p] = splat_f32(0);
    for (size_t b = 0; b < blocks; b++) {
        vi acc[2];
        EACH (p)
            acc[p] = splat_s32(row->offsets[b * TQ_BLOCKWISE_PARTS]);
        for (size_t s = 0; s < steps; s += 2, w += VECTOR, x += 2 * STEP)
            EACH (p) {
                const vi two = load_bytes(w + p * next);
                acc[p] = multiply(acc[p], low_bits(two), x);
                acc[p] = multiply(acc[p], high_bits(two), x + STEP);
            }
        EACH (p)
            sum[p] = add_f32(sum[p], mul_f32(to_f32(acc[p]), load_f32(panel->scales + (p * blocks + b) * LANES)));
    }
    EACH (p) {
        sum[p] = sub_f32(sum[p], mul_f32(splat_f32(row->zero_point), load_f32(panel->sums + p * LANES)));
        sum[p] = mul_f32(sum[p], splat_f32(row->scale));
        save_f32(out + p * LANES, bias ? add_f32(sum[p], load_bias(bias, p)) : sum[p]);
    }
}

INLINE void fused_body(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row,
                       const float *bias, float *out, const size_t panels)
{
    const size_t blocks = plan->blocks, steps = plan->steps, next = blocks * (steps / 2) * VECTOR;
    const uint8_t *w = panel->values;
    const int8_t *x = row->values;
    vf sum0[2], sum1[2], sum2[2], sum3[2];
    EACH (p) {
        sum0[p] = mul_f32(load_f32(panel->sums + p * LANES), splat_f32(row->zero_point));
        sum1[p] = sum2[p] = sum3[p] = splat_f32(0);
    }
    for (size_t b = 0; b < blocks; b++) {
        const int32_t *offset = row->offsets + b * TQ_BLOCKWISE_PARTS;
        vi acc0[2], acc1[2], acc2[2], acc3[2];
        EACH (p) {
            acc0[p] = splat_s32(offset[0]), acc1[p] = splat_s32(offset[1]);
            acc2[p] = splat_s32(offset[2]), acc3[p] = splat_s32(offset[3]);
        }
        for (size_t s = 0; s < steps; s += TQ_BLOCKWISE_PARTS, w += 2 * VECTOR, x += 4 * STEP)
            EACH (p) {
                const vi first = load_bytes(w + p * next), last = load_bytes(w + p * next + VECTOR);
                acc0[p] = multiply(acc0[p], low_bits(first), x);
                acc1[p] = multiply(acc1[p], high_bits(first), x + STEP);
                acc2[p] = multiply(acc2[p], low_bits(last), x + 2 * STEP);
                acc3[p] = multiply(acc3[p], high_bits(last), x + 3 * STEP);
            }
        EACH (p) {
            const vf scale = load_f32(panel->scales + (p * blocks + b) * LANES);
            sum0[p] = fma_f32(to_f32(acc0[p]), scale, sum0[p]);
            sum1[p] = fma_f32(to_f32(acc1[p]), scale, sum1[p]);
            sum2[p] = fma_f32(to_f32(acc2[p]), scale, sum2[p]);
            sum3[p] = fma_f32(to_f32(acc3[p]), scale, sum3[p]);
        }
    }
    EACH (p) {
        const vf sum = add_f32(add_f32(sum0[p], sum1[p]), add_f32(sum2[p], sum3[p]));
        save_f32(out + p * LANES, fma_f32(sum, splat_f32(row->scale), load_bias(bias, p)));
    }
}

#define RUN(name, body, panels)                                                                                       \
    static TARGET void name(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row, \
                            const float *bias, float *out)                                                            \
    {                                                                                                                 \
        body(plan, panel, row, bias, out, panels);                                                                    \
    }
RUN(run_plain, plain_body, 1)
RUN(run_two_plain, plain_body, 2)
RUN(run_fused, fused_body, 1)
RUN(run_two_fused, fused_body, 2)

const tq_blockwise_kernel GLUE(tq_blockwise__, BLOCKWISE_ISA) = {
    TEXT(BLOCKWISE_ISA), LANES, {run_plain, run_two_plain}, {run_fused, run_two_fused}};
