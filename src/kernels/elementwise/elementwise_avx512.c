/* SPDX-License-Identifier: Apache-2.0
 *
 * The avx512 rows of elementwise.def.
 */
#include "kernels/elementwise.h"

#if TQ_X86
#include "kernels/simd_avx512.h"

#define ROW_scalar(operation, in, out)
#define ROW_avx2(operation, in, out)
#define ROW_avx512 INSTANTIATE
#define ROW_neon(operation, in, out)
#include "kernels/elementwise/elementwise_simd.h"
#include "kernels/elementwise/add_8bit_simd.h"
#endif
