/* SPDX-License-Identifier: Apache-2.0
 *
 * tq_stores__avx512: from sums to outputs.
 */
#include <string.h>

#include "kernels/gemm/products.h"

#if TQ_X86
#include "kernels/simd_avx512.h"
#include "kernels/gemm/gemm_vectors_avx512.h"

#define STORE_ISA avx512
#include "kernels/gemm/gemm_store_simd.h"
#endif
