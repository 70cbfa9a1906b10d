/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of quant/fixed_math_16.h on rows of 16-bit fixed-point values.
 */
#ifndef TQ_KERNELS_FIXED_16_H
#define TQ_KERNELS_FIXED_16_H

#include <stddef.h>
#include <stdint.h>

/* in and out are disjoint or the same; n: 0 and more. */

/* 1 / (1 + e^-a), Q3 to Q0. */
void tq_logistic_q16(const int16_t *in, int16_t *out, size_t n);

/* tanh(a * 2^shift), Qk to Q0; a * 2^shift saturates.  0 <= k <= 6, 0 <= shift <= 1. */
void tq_tanh_q16(const int16_t *in, int16_t *out, size_t n, int k, int shift);

#endif
