/* SPDX-License-Identifier: Apache-2.0
 *
 * The radix-2 transform of Cooley and Tukey: bit reversal, then butterflies of 2, 4, ... n.
 */
#include "ops/signal/fft.h"

#include <math.h>

#include "base/stop.h"

void tq_fft_roots(tq_complex *roots, size_t n)
{
    const double turn = -2 * 3.14159265358979323846;
    for (size_t k = 0; k < n / 2 && !tq_stop_after(16); k++) {
        double angle = turn * (double)k / (double)n;
        roots[k] = (tq_complex){cos(angle), sin(angle)};
    }
}

static void reverse_bits(tq_complex *x, size_t n)
{
    for (size_t i = 1, j = 0; i < n && (i % TQ_CHUNK || !tq_stop_after(TQ_CHUNK)); i++) {
        size_t bit = n / 2;
        for (; j & bit; bit /= 2)
            j ^= bit;
        j |= bit;
        if (i < j) {
            tq_complex swap = x[i];
            x[i] = x[j];
            x[j] = swap;
        }
    }
}

void tq_fft(tq_complex *x, size_t n, const tq_complex *roots, size_t step)
{
    reverse_bits(x, n);
    for (size_t half = 1; half < n; half *= 2)
        for (size_t at = 0; at < n && (at % TQ_CHUNK || !tq_stop_after(TQ_CHUNK)); at += 2 * half)
            TQ_EACH(k, half) {
                tq_complex w = roots[k * (n / (2 * half)) * step], a = x[at + k], b = x[at + k + half];
                tq_complex t = {b.re * w.re - b.im * w.im, b.re * w.im + b.im * w.re};
                x[at + k] = (tq_complex){a.re + t.re, a.im + t.im};
                x[at + k + half] = (tq_complex){a.re - t.re, a.im - t.im};
            }
}
