/* SPDX-License-Identifier: Apache-2.0
 *
 * The avx2 rows of elementwise.def.
 */
#include "kernels/elementwise.h"

#if TQ_X86
#include "kernels/simd_avx2.h"

#define ROW_scalar(operation, in, out)
#define ROW_avx2 INSTANTIATE
#define ROW_avx512(operation, in, out)
#define ROW_neon(operation, in, out)
#include "kernels/elementwise/elementwise_simd.h"
#include "kernels/elementwise/add_8bit_simd.h"
#endif
