/* SPDX-License-Identifier: Apache-2.0
 *
 * base/cpu.def's rows by the names that kernels.def, gemm.def and depthwise.def call them, for the tables made of
 * those.
 */
#ifndef TQ_KERNELS_FEATURES_H
#define TQ_KERNELS_FEATURES_H

#include "base/cpu.h"

enum {
    feature_scalar = TQ_CPU_INDEX_SCALAR,
    feature_avx2 = TQ_CPU_INDEX_AVX2,
    feature_avxvnni = TQ_CPU_INDEX_AVXVNNI,
    feature_avx512 = TQ_CPU_INDEX_AVX512,
    feature_avx512vnni = TQ_CPU_INDEX_AVX512VNNI,
    feature_avx512vbmi = TQ_CPU_INDEX_AVX512VBMI,
    feature_neon = TQ_CPU_INDEX_NEON,
    feature_dotprod = TQ_CPU_INDEX_DOTPROD,
};

#endif
