/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantized values of fewer than 8 bits, each in the low bits of a byte, as ml_dtypes stores them.
 */
#ifndef TQ_KERNELS_NARROW_VALUES_H
#define TQ_KERNELS_NARROW_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sign- or zero-extends `count` values to whole bytes; other bits of `from` are ignored.  mask: the low bits of a
   value, 2^k - 1.  from and to do not overlap. */
void tq_extend_values(const uint8_t *from, size_t count, uint8_t mask, bool is_signed, uint8_t *to);

#endif
