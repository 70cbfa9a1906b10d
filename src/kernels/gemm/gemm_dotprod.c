/* SPDX-License-Identifier: Apache-2.0
 *
 * The dotprod row of gemm.def: SDOT on signed rows (128 is subtracted from unsigned rows).
 */
#include <string.h>

#include "kernels/gemm/products.h"

#if TQ_ARM64
#include "kernels/simd_neon.h"
#undef TARGET
#undef INLINE
/* clang before 16 names the extension alone, and its arm_neon.h has vdotq_s32 only where the whole file is compiled for
   it. */
#if defined(__clang__) && __clang_major__ < 16
#define TARGET __attribute__((target("dotprod")))
#define DOT(sums, a, b) (int32x4_t) __builtin_neon_vdotq_v((int8x16_t)(sums), a, b, 34 /* int32x4_t */)
#else
#define TARGET __attribute__((target("arch=armv8.2-a+dotprod")))
#define DOT vdotq_s32
#endif
#define INLINE TQ_INLINE TARGET
#include "kernels/gemm/gemm_vectors_neon.h"

#define GEMM_ISA dotprod

INLINE int8x16_t load_four(const void *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}
INLINE int8x16_t load_few(const void *p, size_t n)
{
    return vreinterpretq_s8_u32(vdupq_n_u32(tq_few_bytes(p, n)));
}

static TARGET int32_t sum_bytes(const void *run, size_t n, uint8_t flip)
{
    uint32_t sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += (uint32_t)(int8_t)(((const uint8_t *)run)[k] ^ flip);
    return (int32_t)sum;
}

#define NAME gemm_i8
#define PANEL_LANES 4
#define GROUP 4
#define ROW_BYTES 1
#define WEIGHT_BYTES 1
#define ROWS 6
#define PANELS 4
#define WIDE 8
#define TALL 2
#define sums_t vi
#define weights_t int8x16_t
#define row_t int8x16_t
#define first_sums(p) vld1q_s32((const int32_t *)(const void *)(p))
#define last_sums(sums, p) sums
#define save_sums(p, x) vst1q_s32((int32_t *)(void *)(p), x)
#define load_weights(p) vld1q_s8((const int8_t *)(p))
#define load_row(p, flip) veorq_s8(load_four(p), flip)
#define load_row_part(p, n, flip) veorq_s8(load_few(p, n), flip)
#define load_across(p, flip) veorq_s8(vld1q_s8((const int8_t *)(p)), flip)
#define flip_of(flip) vdupq_n_s8((int8_t)(flip))
#define multiply(sums, weights, row) DOT(sums, weights, row)
#define PRODUCT_FIELDS .flip_i8 = 0, .flip_u8 = 0x80, .stores = &tq_stores__neon, .row_sum = sum_bytes
#include "kernels/gemm/gemm_simd.h"
#endif
