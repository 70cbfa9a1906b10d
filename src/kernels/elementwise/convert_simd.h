/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: conversions between floating-point types, as kernels/half.h and, from float64, C's conversion round.  The
 * includer defines IN and OUT, one of which is f32, and CONVERT_BLOCK(x, y, stream), which converts a block; this file
 * undefines all three.
 */
#define KERNEL GLUE(GLUE(convert, IN), OUT)
#define PARAMS struct no_params
#define lane_t char

INLINE char NAMED(splat)(const PARAMS *p, size_t at)
{
    (void)p, (void)at;
    return 0;
}

INLINE void NAMED(step)(const in_t *x, out_t *y, const PARAMS *p, const char *row, size_t at, bool lanes, bool stream,
                        int rule)
{
    (void)p, (void)row, (void)at, (void)lanes, (void)rule, (void)stream;
    CONVERT_BLOCK(x, y, stream);
}

#include "kernels/elementwise/walk_simd.h"
#undef CONVERT_BLOCK
