/* SPDX-License-Identifier: Apache-2.0
 *
 * Fingerprint64 of FarmHash (farmhashna::Hash64): 64 bits of a run of bytes, the same for ever and everywhere.
 */
#ifndef TQ_OPS_FINGERPRINT_H
#define TQ_OPS_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

uint64_t tq_fingerprint(const uint8_t *bytes, size_t size);

#endif
