/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of any type and stride as doubles.
 */
#ifndef TQ_QUANT_REAL_VALUES_H
#define TQ_QUANT_REAL_VALUES_H

#include "quant/measure.h"

/* to[i] = the element at from + i * stride bytes. */
typedef void (*tq_real_loader)(const char *from, ptrdiff_t stride, size_t n, double *to);

tq_real_loader tq_real_loader_of(tq_real_type type);

#endif
