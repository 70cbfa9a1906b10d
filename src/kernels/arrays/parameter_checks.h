/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether many parameters are what they must be, at the speed of memory: along rows there may be as many of them as a
 * tenth of an array's elements.
 */
#ifndef TQ_KERNELS_PARAMETER_CHECKS_H
#define TQ_KERNELS_PARAMETER_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether all are finite, above 0 and not denormal. */
bool tq_scales_fit(const float *scale, size_t count);

/* Copies zero points to int32; *differ says whether some differ.  false: one is not in [low, high], 0 <= high, and
   `to` holds any numbers. */
bool tq_zero_points_fit_i64(const int64_t *from, size_t count, int32_t low, int32_t high, int32_t *to, bool *differ);
bool tq_zero_points_fit_i32(const int32_t *from, size_t count, int32_t low, int32_t high, int32_t *to, bool *differ);

#endif
