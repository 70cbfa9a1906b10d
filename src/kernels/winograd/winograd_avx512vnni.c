/* SPDX-License-Identifier: Apache-2.0
 *
 * The body in AVX-512 VNNI: products by vpdpwssd.
 */
#include <string.h>

#include "kernels/winograd/winograd_parts.h"

#if TQ_X86
#include "kernels/simd_avx512.h"
#undef TARGET
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))

#define WINOGRAD_ISA avx512vnni
#define TRANSFORMS_ISA avx512
#define ROWS 12
#define VECTOR_LANES 16
#define vector_t vi
#define zero_sums() splat_s32(0)
#define load_vector(p) _mm512_loadu_si512(p)
#define save_vector(p, x) _mm512_storeu_si512(p, x)
#define splat_pair splat_s32
#define multiply(sums, weights, pair) _mm512_dpwssd_epi32(sums, weights, pair)
#include "kernels/winograd/winograd_simd.h"
#endif
