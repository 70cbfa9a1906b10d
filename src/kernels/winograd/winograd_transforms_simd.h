/* SPDX-License-Identifier: Apache-2.0
 *
 * Template: the transforms of one instruction set, of inputs and of outputs.  The includer defines, beside the
 * operations of simd_<isa>.h:
 *
 *   TRANSFORMS_ISA               avx2 ...; TARGET and INLINE are attributes of functions
 *   add16, sub16, shift16        int16; shift to the left
 *   shift32, half32              int32; shifts to the left, and to the right with the sign
 *   multiply32                   int32; the low half of products
 *   load_bytes(p, n, flips)      2 * LANES int8 as int16; 16 where n is 16
 *   store_16(p, x, n)            the same of int16
 */
#include "base/names.h"
#define EACH(i, n) _Pragma("GCC unroll 36") for (int i = 0; i < n; i++)
#define SIDE TQ_WINOGRAD_IN
#define PANEL (2 * LANES) /* channels */

/* y = B x, elements `step` apart. */
INLINE void transform_line(const vi *x, vi *y, int step)
{
    const vi x1 = x[step], x2 = x[2 * step], x3 = x[3 * step], x4 = x[4 * step];
    const vi even = sub16(x4, x2), odd = sub16(x3, x1);
    const vi even_4 = sub16(x4, shift16(x2, 2)), odd_4 = sub16(x3, shift16(x1, 2)), odd_2 = add16(odd, odd);
    y[0] = add16(shift16(sub16(x[0], x2), 2), even);
    y[step] = add16(even_4, odd_4);
    y[2 * step] = sub16(even_4, odd_4);
    y[3 * step] = add16(even, odd_2);
    y[4 * step] = sub16(even, odd_2);
    y[5 * step] = sub16(sub16(x[5 * step], x3), shift16(odd, 2));
}

TARGET void TQ_GLUE(tq_winograd_transform__, TRANSFORMS_ISA)(const void *const *pixels, size_t depth, uint8_t flip,
                                                             int32_t zero_point, int16_t *to)
{
    /* flip is 0 or 128: a flipped byte is off by 128, modulo 256 */
    const vi flips = splat_s8(flip), zero = splat_s16(zero_point);
    for (size_t k = 0; k < depth; k += 2 * LANES) {
        const size_t n = depth - k;
        vi x[TQ_WINOGRAD_POINTS];
        EACH (i, TQ_WINOGRAD_POINTS)
            x[i] = sub16(load_bytes((const char *)pixels[i] + k, n, flips), zero);
        EACH (i, SIDE)
            transform_line(x + i, x + i, SIDE);
        EACH (i, SIDE)
            transform_line(x + i * SIDE, x + i * SIDE, 1);
        EACH (i, TQ_WINOGRAD_POINTS)
            store_16(to + (size_t)i * depth + k, x[i], n);
    }
}

/* y = A x; elements of x are `step` apart. */
INLINE void finish_line(const vi *x, vi *y, int step)
{
    const vi sum_1 = add_s32(x[step], x[2 * step]), sum_2 = add_s32(x[3 * step], x[4 * step]);
    const vi difference_1 = sub_s32(x[step], x[2 * step]), difference_2 = sub_s32(x[3 * step], x[4 * step]);
    const vi both = add_s32(sum_1, sum_1);
    y[0] = add_s32(shift32(add_s32(x[0], both), 1), sum_2);
    y[step] = shift32(add_s32(add_s32(difference_1, difference_1), difference_2), 1);
    y[2 * step] = shift32(add_s32(sum_1, sum_2), 2);
    y[3 * step] = shift32(add_s32(difference_1, shift32(add_s32(difference_2, x[5 * step]), 1)), 2);
}

TARGET void TQ_GLUE(tq_winograd_finish__, TRANSFORMS_ISA)(const int32_t *sums, const int32_t *bias, int32_t *to,
                                                          size_t stride)
{
    const vi ninth = splat_s32(954437177); /* 9^-1 modulo 2^32 */
    for (int h = 0; h < PANEL; h += LANES) {
        vi x[TQ_WINOGRAD_POINTS];
        const vi start = load_s32(bias + h);
        EACH (i, TQ_WINOGRAD_POINTS)
            x[i] = load_s32(sums + i * PANEL + h);
        EACH (i, SIDE)
            finish_line(x + i, x + i, SIDE);
        EACH (i, TQ_WINOGRAD_OUT) {
            finish_line(x + i * SIDE, x + i * SIDE, 1);
            EACH (j, TQ_WINOGRAD_OUT) {
                const vi times_64 = multiply32(x[i * SIDE + j], ninth);
                put(to + ((size_t)i * stride + (size_t)j) * PANEL + h, add_s32(half32(times_64, 6), start), false);
            }
        }
    }
}

#undef EACH
#undef SIDE
#undef PANEL
