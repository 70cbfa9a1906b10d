/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantize, float32 to 8- and 16-bit integers: tq_quantize_away and tq_quantize_even of quant/rounding.h.
 *
 * 8-bit values are computed in fixed point (fixed_simd.h), and by the exact rule where undecided: a division is slow
 * next to memory.  16-bit values lie near ties too often; they are computed by the exact rule.
 */
struct quantize_lane {
    vf scale, below, above; /* scale: its reciprocal under rule even */
    vi zero_point;
};

/* low - zero point and high - zero point are exact in float32: values have 8 or 16 bits. */
INLINE struct quantize_lane quantize_lane(const tq_quantize_params *p, vf scale, vi zero_point)
{
    vf below = float_of_s32(sub_s32(splat_s32(p->low), zero_point));
    vf above = float_of_s32(sub_s32(splat_s32(p->high), zero_point));
    return (struct quantize_lane){scale, below, above, zero_point};
}

INLINE struct quantize_lane quantize_splat(const tq_quantize_params *p, size_t at, bool even)
{
    return quantize_lane(p, splat_f32(even ? p->inverse[at] : p->scale[at]), splat_s32(p->zero_point[at]));
}

INLINE struct quantize_lane quantize_load(const tq_quantize_params *p, size_t at, bool even)
{
    return quantize_lane(p, load_f32((even ? p->inverse : p->scale) + at), load_s32(p->zero_point + at));
}

INLINE vi quantize_vector(vf x, const struct quantize_lane *c, bool even)
{
    vf quotient = even ? mul_f32(x, c->scale) : div_f32(x, c->scale);
    vf y = zero_if_nan(
        clamp_f32(quotient, c->below, c->above)); /* the bounds are integers, so clamping first moves no tie */
    return add_s32(even ? even_s32(y) : away_s32(y), c->zero_point);
}

struct quantize_fixed_lane {
    vf slope, offset;
};

#include "kernels/elementwise/quantize_8bit_simd.h"

#define RULE away
#define EVEN false
#define OUT i16
#include "kernels/elementwise/quantize_16bit_simd.h"
#define OUT u16
#include "kernels/elementwise/quantize_16bit_simd.h"
#undef RULE
#undef EVEN

#define RULE even
#define EVEN true
#define OUT i16
#include "kernels/elementwise/quantize_16bit_simd.h"
#define OUT u16
#include "kernels/elementwise/quantize_16bit_simd.h"
#undef RULE
#undef EVEN
