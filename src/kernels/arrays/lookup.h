/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of 256 bytes, applied to an array.
 */
#ifndef TQ_KERNELS_LOOKUP_H
#define TQ_KERNELS_LOOKUP_H

#include <stddef.h>
#include <stdint.h>

/* out[i] = table[in[i]] for i < n.  in and out are disjoint or the same. */
void tq_lookup_bytes(const uint8_t table[256], const uint8_t *in, uint8_t *out, size_t n);

#endif
