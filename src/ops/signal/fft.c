/* SPDX-License-Identifier: Apache-2.0
 *
 * The radix-2 transform of Cooley and Tukey: bit reversal, then butterflies of 2, 4, ... n.  Vectors hold a part of
 * several sequences: of complex pairs, gcc 12 makes fused multiply-adds in spite of -ffp-contract=off.
 */
#include "ops/signal/fft.h"

#include <math.h>

#include "base/stop.h"
#include "kernels/isa.h"

void tq_fft_roots(tq_complex128 *roots, size_t n)
{
    const double turn = -2 * 3.14159265358979323846;
    for (size_t k = 0; k < n / 2 && !tq_stop_after(16); k++) {
        double angle = turn * (double)k / (double)n;
        roots[k] = (tq_complex128){cos(angle), sin(angle)};
    }
}

static void reverse_bits(tq_fft_element *x, size_t n)
{
    for (size_t i = 1, j = 0; i < n && (i % TQ_CHUNK || !tq_stop_after(TQ_CHUNK)); i++) {
        size_t bit = n / 2;
        for (; j & bit; bit /= 2)
            j ^= bit;
        j |= bit;
        if (i < j) {
            const tq_fft_element swap = x[i];
            x[i] = x[j];
            x[j] = swap;
        }
    }
}

/* The real or imaginary part of an element. */
typedef double lanes __attribute__((vector_size(TQ_FFT_LANES * sizeof(double)), aligned(8), may_alias));

/* Butterflies of x[k] and x[k + half] for k below `count`. */
TQ_BODY void butterflies(tq_fft_element *x, size_t half, size_t count, const tq_complex128 *roots, size_t step)
{
    for (size_t k = 0; k < count; k++) {
        tq_fft_element *a = &x[k], *b = &x[k + half];
        const tq_complex128 w = roots[k * step];
        const lanes a_real = *(const lanes *)a->real, a_imaginary = *(const lanes *)a->imaginary;
        const lanes b_real = *(const lanes *)b->real, b_imaginary = *(const lanes *)b->imaginary;
        const lanes t_real = b_real * w.real - b_imaginary * w.imaginary;
        const lanes t_imaginary = b_real * w.imaginary + b_imaginary * w.real;
        *(lanes *)a->real = a_real + t_real;
        *(lanes *)a->imaginary = a_imaginary + t_imaginary;
        *(lanes *)b->real = a_real - t_real;
        *(lanes *)b->imaginary = a_imaginary - t_imaginary;
    }
}

/* First the butterflies inside a chunk, chunk by chunk; then the butterflies across chunks.  Ctrl-C is heard between
   two chunks. */
TQ_BODY void transform(tq_fft_element *x, size_t n, const tq_complex128 *roots, size_t step)
{
    const size_t chunk = n < TQ_CHUNK ? n : TQ_CHUNK;
    reverse_bits(x, n);
    for (size_t begin = 0; begin < n && !tq_stop_after(chunk); begin += chunk)
        for (size_t half = 1; half < chunk; half *= 2)
            for (size_t at = begin; at < begin + chunk; at += 2 * half)
                butterflies(x + at, half, half, roots, n / (2 * half) * step);
    for (size_t half = chunk; half < n; half *= 2)
        for (size_t at = 0; at < n; at += 2 * half)
            for (size_t k = 0; k < half && !tq_stop_after(chunk); k += chunk)
                butterflies(x + at + k, half, chunk, roots + k * (n / (2 * half)) * step, n / (2 * half) * step);
}

#define TRANSFORM(isa, target)                                                                               \
    target static void transform_##isa(tq_fft_element *x, size_t n, const tq_complex128 *roots, size_t step) \
    {                                                                                                        \
        transform(x, n, roots, step);                                                                        \
    }
TQ_EVERY_ISA(TRANSFORM)

void tq_fft(tq_fft_element *x, size_t n, const tq_complex128 *roots, size_t step)
{
    static void (*const bodies[TQ_ISAS])(tq_fft_element *, size_t, const tq_complex128 *, size_t) =
        TQ_ISA_FUNCTIONS(transform);
    bodies[tq_isa()](x, n, roots, step);
}
