/* SPDX-License-Identifier: Apache-2.0
 *
 * tq_stores__neon: from sums to outputs.
 */
#include <string.h>

#include "kernels/gemm/products.h"

#if TQ_ARM64
#include "kernels/simd_neon.h"
#include "kernels/gemm/gemm_vectors_neon.h"

#define STORE_ISA neon
#include "kernels/gemm/gemm_store_simd.h"
#endif
