/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting indices by the items that they stand for: in place, without further memory, n log n at worst.
 */
#ifndef TQ_BASE_SORT_H
#define TQ_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether item `a` comes before item `b`. */
typedef bool tq_before(const void *context, uint32_t a, uint32_t b);

void tq_sort_indices(uint32_t *indices, size_t count, tq_before *before, const void *context);

#endif
