/* SPDX-License-Identifier: Apache-2.0
 *
 * The body with AVX-VNNI: products by vpdpwssd.
 */
#include <string.h>

#include "kernels/winograd/winograd_parts.h"

#if TQ_X86_AVXVNNI
#include <immintrin.h>

#include "kernels/inline.h"

#define TARGET __attribute__((target("avxvnni,avx2,fma,f16c")))
#define INLINE TQ_INLINE TARGET
#define WINOGRAD_ISA avxvnni
#define TRANSFORMS_ISA avx2
#define ROWS 6
#define VECTOR_LANES 8
#define vector_t __m256i
#define zero_sums() _mm256_setzero_si256()
#define load_vector(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define save_vector(p, x) _mm256_storeu_si256((__m256i *)(void *)(p), x)
#define splat_pair _mm256_set1_epi32
#define multiply _mm256_dpwssd_avx_epi32
#include "kernels/winograd/winograd_simd.h"
#endif
