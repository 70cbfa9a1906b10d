/* SPDX-License-Identifier: Apache-2.0
 *
 * Fourier transforms of complex doubles whose length is a power of two.
 */
#ifndef TQ_OPS_SIGNAL_FFT_H
#define TQ_OPS_SIGNAL_FFT_H

#include <stddef.h>

typedef struct tq_complex {
    double re, im;
} tq_complex;

/* roots[k] = exp(-2 pi i k / n) for k < n / 2; n: a power of two, >= 1. */
void tq_fft_roots(tq_complex *roots, size_t n);

/* x[k] = sum over j < n of x[j] * exp(-2 pi i j k / n), in place; n: a power of two, >= 1.  roots: of n * step. */
void tq_fft(tq_complex *x, size_t n, const tq_complex *roots, size_t step);

#endif
