/* SPDX-License-Identifier: Apache-2.0
 *
 * The features of base/cpu.def by the lower-case names in elementwise.def, gemm.def and depthwise.def, for tables that
 * are made of those rows.
 */
#ifndef TQ_KERNELS_FEATURES_H
#define TQ_KERNELS_FEATURES_H

#include "base/cpu.h"

enum {
    tq_feature_scalar = TQ_CPU_INDEX_SCALAR,
    tq_feature_avx2 = TQ_CPU_INDEX_AVX2,
    tq_feature_avxvnni = TQ_CPU_INDEX_AVXVNNI,
    tq_feature_avx512 = TQ_CPU_INDEX_AVX512,
    tq_feature_avx512vnni = TQ_CPU_INDEX_AVX512VNNI,
    tq_feature_avx512vbmi = TQ_CPU_INDEX_AVX512VBMI,
    tq_feature_neon = TQ_CPU_INDEX_NEON,
    tq_feature_dotprod = TQ_CPU_INDEX_DOTPROD,
};

#endif
