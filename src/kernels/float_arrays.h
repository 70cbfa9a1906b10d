/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of float_math.h over many floats: y[i] = f(x[i]) for i < n; y may be x.
 */
#ifndef TQ_KERNELS_FLOAT_ARRAYS_H
#define TQ_KERNELS_FLOAT_ARRAYS_H

#include <stddef.h>

#include "base/cpu.h"

void tq_exponentials(const float *x, float *y, size_t n);            /* tq_expf */
void tq_logistics(const float *x, float *y, size_t n);               /* tq_logistic */
void tq_elus(const float *x, float *y, size_t n);                    /* tq_elu */
void tq_hyperbolic_tangents(const float *x, float *y, size_t n);     /* tq_tanhf */
void tq_gelus(const float *x, float *y, size_t n);                   /* tq_gelu */
void tq_approximate_gelus(const float *x, float *y, size_t n);       /* tq_gelu_by_ratio */

/* The C library's logf, sinf and cosf.  Vectors have the bits of glibc on a processor with fused multiply-adds. */
void tq_logarithms(const float *x, float *y, size_t n);
void tq_sines(const float *x, float *y, size_t n);
void tq_cosines(const float *x, float *y, size_t n);

/* The bodies of float_arrays_simd.h, and of float_pairs_avx512.c: these call those. */
#define TQ_FLOAT_ARRAYS(isa)                                                \
    void tq_exponentials__##isa(const float *x, float *y, size_t n);        \
    void tq_logistics__##isa(const float *x, float *y, size_t n);           \
    void tq_elus__##isa(const float *x, float *y, size_t n);                \
    void tq_hyperbolic_tangents__##isa(const float *x, float *y, size_t n); \
    void tq_gelus__##isa(const float *x, float *y, size_t n);
#if TQ_X86
TQ_FLOAT_ARRAYS(avx2)
TQ_FLOAT_ARRAYS(avx512)
TQ_FLOAT_ARRAYS(pairs)
void tq_approximate_gelus__avx512(const float *x, float *y, size_t n);
#endif

#endif
