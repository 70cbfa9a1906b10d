/* SPDX-License-Identifier: Apache-2.0
 *
 * tq_stores__avx2: from sums to outputs.
 */
#include <string.h>

#include "kernels/gemm/products.h"

#if TQ_X86
#include "kernels/simd_avx2.h"
#include "kernels/gemm/gemm_vectors_avx2.h"

#define STORE_ISA avx2
#include "kernels/gemm/gemm_store_simd.h"
#endif
