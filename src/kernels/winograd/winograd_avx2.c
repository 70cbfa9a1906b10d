/* SPDX-License-Identifier: Apache-2.0
 *
 * The body in AVX2: transforms by shifts and additions, products by vpmaddwd.
 */
#include "kernels/winograd/winograd_parts.h"

#if TQ_X86
#include <string.h>

#include "kernels/simd_avx2.h"

#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < n; i++)
#define SIDE TQ_WINOGRAD_IN

#define add16 _mm256_add_epi16
#define sub16 _mm256_sub_epi16
#define shift16 _mm256_slli_epi16
#define add32 _mm256_add_epi32
#define sub32 _mm256_sub_epi32
#define shift32 _mm256_slli_epi32

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

TARGET void tq_winograd_transform__avx2(const void *const *pixels, size_t depth, uint8_t flip, int32_t zero_point,
                                        int16_t *to)
{
    const vi zero = _mm256_set1_epi16((int16_t)zero_point);
    const __m128i flips = _mm_set1_epi8((char)flip);
    for (size_t k = 0; k < depth; k += TQ_WINOGRAD_LANES) {
        vi x[TQ_WINOGRAD_POINTS];
        EACH (i, TQ_WINOGRAD_POINTS) {
            const void *pixel = (const char *)pixels[i] + k;
            const __m128i bytes = _mm_xor_si128(_mm_loadu_si128((const __m128i *)pixel), flips);
            x[i] = sub16(_mm256_cvtepi8_epi16(bytes), zero);
        }
        EACH (i, SIDE)
            transform_line(x + i, x + i, SIDE);
        EACH (i, SIDE)
            transform_line(x + i * SIDE, x + i * SIDE, 1);
        EACH (i, TQ_WINOGRAD_POINTS)
            _mm256_storeu_si256((__m256i *)(void *)(to + (size_t)i * depth + k), x[i]);
    }
}

/* ---- outputs ---- */

/* y = A x; elements of x are `step` apart. */
INLINE void finish_line(const vi *x, vi *y, int step)
{
    const vi sum_1 = add32(x[step], x[2 * step]), sum_2 = add32(x[3 * step], x[4 * step]);
    const vi difference_1 = sub32(x[step], x[2 * step]), difference_2 = sub32(x[3 * step], x[4 * step]);
    const vi both = add32(sum_1, sum_1);
    y[0] = add32(shift32(add32(x[0], both), 1), sum_2);
    y[step] = shift32(add32(add32(difference_1, difference_1), difference_2), 1);
    y[2 * step] = shift32(add32(sum_1, sum_2), 2);
    y[3 * step] = shift32(add32(difference_1, shift32(add32(difference_2, x[5 * step]), 1)), 2);
}

TARGET void tq_winograd_finish__avx2(const int32_t *sums, const int32_t *bias, int32_t *to, size_t stride)
{
    const vi ninth = splat_s32(954437177); /* 9^-1 modulo 2^32 */
    for (int h = 0; h < TQ_WINOGRAD_LANES; h += LANES) {
        vi x[TQ_WINOGRAD_POINTS];
        const vi start = load_s32(bias + h);
        EACH (i, TQ_WINOGRAD_POINTS)
            x[i] = load_s32(sums + i * TQ_WINOGRAD_LANES + h);
        EACH (i, SIDE)
            finish_line(x + i, x + i, SIDE);
        EACH (i, TQ_WINOGRAD_OUT) {
            finish_line(x + i * SIDE, x + i * SIDE, 1);
            EACH (j, TQ_WINOGRAD_OUT) {
                const vi times_64 = _mm256_mullo_epi32(x[i * SIDE + j], ninth);
                int32_t *at = to + ((size_t)i * stride + (size_t)j) * TQ_WINOGRAD_LANES + h;
                _mm256_storeu_si256((__m256i *)(void *)at, add32(_mm256_srai_epi32(times_64, 6), start));
            }
        }
    }
}

/* ---- products ---- */

#define WINOGRAD_ISA avx2
#define ROWS 6
#define VECTORS 2
#define vector_t vi
#define zero_sums() splat_s32(0)
#define load_vector(p) load_s32((const int32_t *)(const void *)(p))
#define save_vector(p, x) _mm256_storeu_si256((__m256i *)(void *)(p), x)
#define splat_pair splat_s32
#define multiply(sums, weights, pair) add32(sums, _mm256_madd_epi16(weights, pair))
#include "kernels/winograd/winograd_simd.h"
#endif
