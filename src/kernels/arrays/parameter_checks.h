/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of many parameters at the speed of memory: per-axis parameters may be a tenth as many as the elements.
 */
#ifndef TQ_KERNELS_PARAMETER_CHECKS_H
#define TQ_KERNELS_PARAMETER_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether all of `count` scales are finite, above 0 and not denormal. */
bool tq_scales_fit(const float *scale, size_t count);

/* Copies `count` zero points to int32; *differ: some differ.  false: one lies outside [low, high], 0 <= high, and `to`
   is unspecified. */
bool tq_zero_points_fit_i64(const int64_t *from, size_t count, int32_t low, int32_t high, int32_t *to, bool *differ);
bool tq_zero_points_fit_i32(const int32_t *from, size_t count, int32_t low, int32_t high, int32_t *to, bool *differ);

#endif
