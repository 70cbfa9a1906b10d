/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: requantize to 16 and 32 bits by rule "double", the only one in elementwise.def.  The includer defines IN
 * and OUT.
 */
#define KERNEL GLUE(GLUE(requantize, IN), OUT)
#define PARAMS tq_requantize_params
#define lane_t struct requantize_lane
#define result_t vi

INLINE lane_t NAMED(splat)(const PARAMS *p, size_t at)
{
    return requantize_load(p, at, false, TQ_REQUANTIZE_DOUBLE);
}

INLINE lane_t NAMED(load)(const PARAMS *p, size_t at)
{
    return requantize_load(p, at, true, TQ_REQUANTIZE_DOUBLE);
}

INLINE vi NAMED(vector)(const in_t *x, const lane_t *c, const PARAMS *p)
{
    return requantize_vector(GLUE(load, IN)(x), c, p, TQ_REQUANTIZE_DOUBLE);
}

#include "kernels/elementwise/exact_step_simd.h"
#include "kernels/elementwise/walk_simd.h"
