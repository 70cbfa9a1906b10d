/* SPDX-License-Identifier: Apache-2.0
 *
 * Template of quantize_simd.h, which defines OUT (i8 or u8).  Both rules share the walk: only the exact rule of
 * undecided blocks differs.
 */
#define KERNEL GLUE(quantize, OUT)
#define IN f32
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

INLINE vi NAMED(clamp)(vi values, const PARAMS *p)
{
    if (!p->clamp)
        return values;
    return and_s32(GLUE(clamp, OUT)(values, splat_s32(p->low_bytes), splat_s32(p->high_bytes)),
                   splat_s32(p->mask_bytes));
}

APART void NAMED(exact)(const float *x, out_t *y, const PARAMS *p, size_t at, bool lanes, int rule)
{
    const bool even = rule == TQ_QUANTIZE_EVEN;
    const struct quantize_lane row = quantize_splat(p, at, even);
    vi value[4];
    for (size_t k = 0; k < 4; k++) {
        const struct quantize_lane c = lanes ? quantize_load(p, at + k * LANES, even) : row;
        value[k] = and_s32(quantize_vector(load_f32(x + k * LANES), &c, even), splat_s32(p->mask));
    }
    GLUE(store4, OUT)(y, value, false);
}

#include "kernels/elementwise/fixed_step_simd.h"
#include "kernels/elementwise/walk_simd.h"
