/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting indices by their items: in place, without further memory, n log n at worst.
 */
#ifndef TQ_BASE_SORT_H
#define TQ_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether item `a` comes before item `b`. */
typedef bool tq_before(const void *context, uint32_t a, uint32_t b);

/* Sorts indices[count] so that no item comes before an earlier one.  Hears Ctrl-C (stop.h): then the order is
   unspecified, and indices are a permutation of themselves. */
void tq_sort_indices(uint32_t *indices, size_t count, tq_before *before, const void *context);

#endif
