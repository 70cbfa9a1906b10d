/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantized values of fewer than 8 bits in the lower bits of bytes of their own, as ml_dtypes keeps them.
 */
#ifndef TQ_KERNELS_NARROW_VALUES_H
#define TQ_KERNELS_NARROW_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whole bytes of the same values, whatever the upper bits were.  mask: the lower bits. */
void tq_extend_values(const uint8_t *from, size_t count, uint8_t mask, bool is_signed, uint8_t *to);

#endif
