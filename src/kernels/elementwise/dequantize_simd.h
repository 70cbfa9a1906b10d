/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: dequantize, integers to float32, by tq_dequantize of quant/rounding.h, where q - zero point fits int32. The
 * includer defines IN.
 */
#define KERNEL GLUE(dequantize, IN)
#define OUT f32
#define PARAMS tq_dequantize_params
#define lane_t struct dequantize_lane
#define result_t vf

INLINE lane_t NAMED(splat)(const PARAMS *p, size_t at)
{
    return (lane_t){splat_f32(p->scale[at]), splat_s32(p->zero_point[at])};
}

INLINE lane_t NAMED(load)(const PARAMS *p, size_t at)
{
    return (lane_t){load_f32(p->scale + at), load_s32(p->zero_point + at)};
}

INLINE vf NAMED(vector)(const in_t *x, const lane_t *c, const PARAMS *p)
{
    (void)p;
    return mul_f32(float_of_s32(sub_s32(GLUE(load, IN)(x), c->zero_point)), c->scale);
}

#include "kernels/elementwise/exact_step_simd.h"
#include "kernels/elementwise/walk_simd.h"
