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

static TARGET void run_plain(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row,
                             const float *bias, float *out)
{
    const uint8_t *w = panel->values;
    const int8_t *x = row->values;
    vf sum = splat_f32(0);
    for (size_t b = 0; b < plan->blocks; b++) {
        vi acc = splat_s32(row->offsets[b * TQ_BLOCKWISE_PARTS]);
        for (size_t s = 0; s < plan->steps; s += 2, w += VECTOR, x += 2 * STEP) {
            const vi two = load_bytes(w);
            acc = multiply(acc, low_bits(two), x);
            acc = multiply(acc, high_bits(two), x + STEP);
        }
        sum = add_f32(sum, mul_f32(to_f32(acc), load_f32(panel->scales + b * LANES)));
    }
    sum = sub_f32(sum, mul_f32(splat_f32(row->zero_point), load_f32(panel->sums)));
    sum = mul_f32(sum, splat_f32(row->scale));
    save_f32(out, bias ? add_f32(sum, load_f32(bias)) : sum);
}

static TARGET void run_fused(const tq_blockwise *plan, const tq_blockwise_weights *panel, const tq_blockwise_row *row,
                             const float *bias, float *out)
{
    const uint8_t *w = panel->values;
    const int8_t *x = row->values;
    vf sum0 = mul_f32(load_f32(panel->sums), splat_f32(row->zero_point));
    vf sum1 = splat_f32(0), sum2 = splat_f32(0), sum3 = splat_f32(0);
    for (size_t b = 0; b < plan->blocks; b++) {
        const int32_t *offset = row->offsets + b * TQ_BLOCKWISE_PARTS;
        vi acc0 = splat_s32(offset[0]), acc1 = splat_s32(offset[1]);
        vi acc2 = splat_s32(offset[2]), acc3 = splat_s32(offset[3]);
        for (size_t s = 0; s < plan->steps; s += TQ_BLOCKWISE_PARTS, w += 2 * VECTOR, x += 4 * STEP) {
            const vi first = load_bytes(w), last = load_bytes(w + VECTOR);
            acc0 = multiply(acc0, low_bits(first), x);
            acc1 = multiply(acc1, high_bits(first), x + STEP);
            acc2 = multiply(acc2, low_bits(last), x + 2 * STEP);
            acc3 = multiply(acc3, high_bits(last), x + 3 * STEP);
        }
        const vf scale = load_f32(panel->scales + b * LANES);
        sum0 = fma_f32(to_f32(acc0), scale, sum0);
        sum1 = fma_f32(to_f32(acc1), scale, sum1);
        sum2 = fma_f32(to_f32(acc2), scale, sum2);
        sum3 = fma_f32(to_f32(acc3), scale, sum3);
    }
    const vf sum = add_f32(add_f32(sum0, sum1), add_f32(sum2, sum3));
    save_f32(out, fma_f32(sum, splat_f32(row->scale), bias ? load_f32(bias) : splat_f32(0)));
}

const tq_blockwise_kernel GLUE(tq_blockwise__, BLOCKWISE_ISA) = {TEXT(BLOCKWISE_ISA), LANES, run_plain, run_fused};
