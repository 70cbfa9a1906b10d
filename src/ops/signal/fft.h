/* SPDX-License-Identifier: Apache-2.0
 *
 * Fourier transforms of complex float64 values, of lengths that are powers of two, several at once.
 */
#ifndef TQ_OPS_SIGNAL_FFT_H
#define TQ_OPS_SIGNAL_FFT_H

#include <stddef.h>

#include "ops/element.h"

/* roots[k] = exp(-2 pi i k / n) for k < n / 2; n: a power of two, >= 1.  Ctrl-C may end it early. */
void tq_fft_roots(tq_complex128 *roots, size_t n);

/* Sequences that are transformed side by side, and an element of each. */
#define TQ_FFT_LANES 4
typedef struct tq_fft_element {
    double real[TQ_FFT_LANES], imaginary[TQ_FFT_LANES];
} tq_fft_element;

/* x[k] = sum over j < n of x[j] * exp(-2 pi i j k / n), in place; n: a power of two, >= 1.  roots: from
   tq_fft_roots(roots, n * step); step: a power of two, >= 1.  Ctrl-C may end it early. */
void tq_fft(tq_fft_element *x, size_t n, const tq_complex128 *roots, size_t step);

#endif
