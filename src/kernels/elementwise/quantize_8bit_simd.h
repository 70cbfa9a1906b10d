/* SPDX-License-Identifier: Apache-2.0
 *
 * Included by quantize_simd.h.  Both rules share the walk: only the exact rule of undecided blocks differs.
 */
#define KERNEL quantize_8bit
#define IN f32
#define OUT u8
#define PARAMS tq_quantize_params
#define lane_t struct quantize_fixed_lane

INLINE lane_t NAMED(splat)(const PARAMS *p, size_t at)
{
    return (lane_t){splat_f32(p->slope[at]), splat_f32(p->offset[at])};
}

INLINE lane_t NAMED(load)(const PARAMS *p, size_t at)
{
    return (lane_t){load_f32(p->slope + at), load_f32(p->offset + at)};
}

INLINE vi NAMED(fixed)(const float *x, const lane_t *c)
{
    return fixed_of(load_f32(x), c->slope, c->offset);
}

INLINE uint8_t NAMED(limit)(const PARAMS *p)
{
    (void)p;
    return 2 * TQ_FIXED_ERROR;
}

INLINE vi NAMED(values)(vi values, const PARAMS *p)
{
    const vi flip = splat_s32(p->flip_bytes);
    if (!p->clamp)
        return xor_s32(values, flip);
    const vi clamped = clamp_s8(values, splat_s32(p->low_bytes), splat_s32(p->high_bytes));
    return and_s32(xor_s32(clamped, flip), splat_s32(p->mask_bytes));
}

APART void NAMED(exact)(const float *x, out_t *y, const PARAMS *p, size_t at, bool lanes, int rule)
{
    const bool even = rule == TQ_QUANTIZE_EVEN;
    const struct quantize_lane row = quantize_splat(p, at, even);
    vi value[4];
    for (size_t k = 0; k < 4; k++) {
        const struct quantize_lane c = lanes ? quantize_load(p, at + k * LANES, even) : row;
        value[k] = and_s32(quantize_vector(load_f32(x + k * LANES), &c, even), splat_s32(p->mask & UINT8_MAX));
    }
    store4_u8(y, value, false);
}

#include "kernels/elementwise/fixed_step_simd.h"
#include "kernels/elementwise/walk_simd.h"
