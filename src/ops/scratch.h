/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a scratch block: prepare lays them out one behind the other, each aligned to 64 bytes, and asks for the
 * total; eval finds them at their offsets.
 */
#ifndef TQ_OPS_SCRATCH_H
#define TQ_OPS_SCRATCH_H

#include "ops/op.h"

/* The offset of a part of count * size bytes, any numbers; adds the part to *total.  A total above 2^62 bytes becomes
   2^62, a size that no machine has, so that the request for scratch fails. */
static inline uint64_t tq_scratch_part(uint64_t *total, uint64_t count, uint64_t size)
{
    const uint64_t limit = (uint64_t)1 << 62;
    uint64_t at = *total;
    bool fits = at < limit && (size == 0 || count <= limit / size);
    *total = fits ? (at + count * size + 63) / 64 * 64 : limit;
    return fits ? at : 0;
}

/* The part at `offset` of node->scratch.  Without scratch all parts are empty; the address is then the node's, since C
   defines no sum of NULL and an offset, not even 0. */
static inline void *tq_scratch_at(const tq_node *node, uint64_t offset)
{
    return node->scratch ? (char *)node->scratch + offset : (char *)(uintptr_t)node;
}

#endif
