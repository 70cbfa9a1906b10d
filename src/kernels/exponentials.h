/* SPDX-License-Identifier: Apache-2.0
 *
 * Exponentials of many floats.
 */
#ifndef TQ_KERNELS_EXPONENTIALS_H
#define TQ_KERNELS_EXPONENTIALS_H

#include <stddef.h>

/* y[i] = tq_expf(x[i]) of float_math.h, for i < n; y may be x. */
void tq_exponentials(const float *x, float *y, size_t n);

#endif
