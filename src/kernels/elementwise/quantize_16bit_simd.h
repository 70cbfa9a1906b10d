/* SPDX-License-Identifier: Apache-2.0
 *
 * Template of quantize_simd.h, which defines OUT (i16 or u16), RULE (away or even), and EVEN (false or true).
 */
#define KERNEL GLUE(GLUE(quantize, RULE), OUT)
#define IN f32
#define PARAMS tq_quantize_params
#define lane_t struct quantize_lane
#define result_t vi

INLINE lane_t NAMED(splat)(const PARAMS *p, size_t at)
{
    return quantize_splat(p, at, EVEN);
}
INLINE lane_t NAMED(load)(const PARAMS *p, size_t at)
{
    return quantize_load(p, at, EVEN);
}

INLINE vi NAMED(vector)(const float *x, const lane_t *c, const PARAMS *p)
{
    (void)p;
    return quantize_vector(load_f32(x), c, EVEN);
}

#include "kernels/elementwise/exact_step_simd.h"
#include "kernels/elementwise/walk_simd.h"
