/* SPDX-License-Identifier: Apache-2.0
 *
 * The neon rows of elementwise.def.
 */
#include "kernels/elementwise.h"

#if TQ_ARM64
#include "kernels/simd_neon.h"

#define ROW_scalar(operation, in, out)
#define ROW_avx2(operation, in, out)
#define ROW_avx512(operation, in, out)
#define ROW_neon INSTANTIATE
#include "kernels/elementwise/elementwise_simd.h"
#include "kernels/elementwise/add_8bit_simd.h"
#endif
