/* SPDX-License-Identifier: Apache-2.0
 *
 * The avx512vnni row of blockwise.def: vpdpbusd of unsigned weights and signed rows.
 */
#include <string.h>

#include "kernels/blockwise/blockwise.h"

#if TQ_X86
#include "kernels/simd_avx512.h"
#undef TARGET
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))

#define BLOCKWISE_ISA avx512vnni

INLINE vi splat_four(const void *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}

#define load_bytes(p) _mm512_loadu_si512(p)
#define low_bits(x) _mm512_and_si512(x, _mm512_set1_epi8(15))
#define high_bits(x) _mm512_and_si512(_mm512_srli_epi16(x, 4), _mm512_set1_epi8(15))
#define multiply(acc, weights, p) _mm512_dpbusd_epi32(acc, weights, splat_four(p))
#define start_part(acc) (acc)
#define end_part(acc, part) (part)
#define to_f32(x) _mm512_cvtepi32_ps(x)
#define add_f32(a, b) _mm512_add_ps(a, b)
#define sub_f32(a, b) _mm512_sub_ps(a, b)
#define clamp_or_low(x, low, high) _mm512_max_ps(_mm512_min_ps(high, x), low)
#define save_f32(p, x) _mm512_storeu_ps(p, x)
#include "kernels/blockwise/blockwise_simd.h"
#endif
