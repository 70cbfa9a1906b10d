/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: requantize to 8 bits.  The includer defines IN.  All rules share the walk: they differ in
 * parameters and in the exact rule of undecided blocks.
 */
#define KERNEL GLUE(GLUE(requantize, IN), 8bit)
#define OUT u8
#define PARAMS tq_requantize_params
#define lane_t struct requantize_fixed_lane

INLINE lane_t NAMED(splat)(const PARAMS *p, size_t at)
{
    return (lane_t){splat_f32(p->slope[at]), splat_f32(p->offset[at]), splat_f32(p->offset_negative[at]),
                    splat_s32(p->input_zero_point[at])};
}

INLINE lane_t NAMED(load)(const PARAMS *p, size_t at)
{
    return (lane_t){in_register_f32(load_f32(p->slope + at)), in_register_f32(load_f32(p->offset + at)),
                    in_register_f32(load_f32(p->offset_negative + at)), load_s32(p->input_zero_point + at)};
}

INLINE vi NAMED(fixed)(const in_t *x, const lane_t *c)
{
    const vi q = GLUE(load, IN)(x);
    const vf acc = float_of_s32(
        sizeof *x == 4 ? q : sub_s32(q, c->input_zero_point)); /* int32: not wide, so the zero point is 0 */
    return fixed_of(acc, c->slope, choose_by_sign(acc, c->offset, c->offset_negative));
}

INLINE uint8_t NAMED(limit)(const PARAMS *p)
{
    return p->undecided;
}

INLINE vi NAMED(values)(vi values, const PARAMS *p)
{
    return xor_s32(values, splat_s32(p->flip_bytes));
}

APART void NAMED(exact)(const in_t *x, out_t *y, const PARAMS *p, size_t at, bool lanes, int rule)
{
    vi block[4];
    for (size_t k = 0; k < 4; k++)
        block[k] = GLUE(load, IN)(x + k * LANES);
    requantize_block(block, p, at, lanes, rule);
    for (size_t k = 0; k < 4; k++)
        block[k] = and_s32(block[k], splat_s32(UINT8_MAX));
    store4_u8(y, block, false);
}

#include "kernels/elementwise/fixed_step_simd.h"
#include "kernels/elementwise/walk_simd.h"
