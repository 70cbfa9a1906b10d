/* SPDX-License-Identifier: Apache-2.0
 *
 * Fourier transforms of real signals as KISS FFT defines them, in float32 and in fixed point of 16 and 32 bits, whose
 * rounding is part of the result.
 *
 * A signal of 2n values is read as n complex values.  These are transformed by stages of radix 4, 2, 3 and 5, tried in
 * this order, decimated in time; then the two halves of the spectrum are separated:
 *     F[k] = (e + w o) / 2    e = Z[k] + conj Z[n - k],  o = Z[k] - conj Z[n - k],  w = exp(-i pi ((k + 1) / n + 1/2))
 * In fixed point a product is rounded half up at the last bit, every stage of radix p multiplies by MAX / p first, sums
 * wrap, and the separation divides by 2: the result is the float32 result / 2n.
 *
 * Source: KISS FFT 1.3.0 (kiss_fft.c, tools/kiss_fftr.c) as tflite-micro uses it; tflite-micro does not
 * allocate memory for other radixes.
 */
#ifndef TQ_OPS_SIGNAL_REAL_FFT_H
#define TQ_OPS_SIGNAL_REAL_FFT_H

#include "ops/op.h"

enum { TQ_FFT_STAGES = 32 };

typedef struct tq_real_fft {
    int32_t half; /* complex values: half the length of the signal */
    bool inverse;
    int32_t radix[TQ_FFT_STAGES], span[TQ_FFT_STAGES]; /* span: complex values of one sub-transform after the stage */
    void *roots;          /* [half] complex: exp(-+ 2 pi i k / half) */
    void *super_twiddles; /* [half / 2] complex: w of k = 1, 2, ... */
} tq_real_fft;

/* Stages and roots for a signal of `length` values of a type, FLOAT32, INT16 or INT32.  TQ_BAD_OPERATOR: the length is
   odd, below 4, above 2^24, or has a prime factor above 5. */
tq_status tq_real_fft_make(tq_node *node, int32_t type, int64_t length, bool inverse, tq_real_fft *out,
                           tq_error *error);

/* signal [2 half] to spectrum [half + 1] complex values, or back if `inverse`.  scratch: [half] complex values.  The
   inverse is not divided by the length. */
void tq_real_fft_f32(const tq_real_fft *fft, const float *in, float *out, float *scratch);
void tq_real_fft_i16(const tq_real_fft *fft, const int16_t *in, int16_t *out, int16_t *scratch);
void tq_real_fft_i32(const tq_real_fft *fft, const int32_t *in, int32_t *out, int32_t *scratch);

#endif
