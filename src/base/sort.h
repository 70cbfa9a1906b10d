/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting places by what stands at them: in place, without memory of its own, n log n at worst.
 */
#ifndef TQ_BASE_SORT_H
#define TQ_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether what stands at `a` comes before what stands at `b`. */
typedef bool tq_before(const void *context, uint32_t a, uint32_t b);

void tq_sort_places(uint32_t *places, size_t count, tq_before *before, const void *context);

#endif
