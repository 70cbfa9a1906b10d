/* SPDX-License-Identifier: Apache-2.0
 *
 * FarmHash's Fingerprint64, a hash of bytes that does not change from one release or machine to the next.
 * Source: https://github.com/google/farmhash (farmhashna::Hash64, which Fingerprint64 is defined to be).
 */
#ifndef TQ_OPS_SEARCH_FINGERPRINT_H
#define TQ_OPS_SEARCH_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

/* The hash of `size` bytes, any number. */
uint64_t tq_fingerprint64(const void *bytes, size_t size);

#endif
