/* SPDX-License-Identifier: Apache-2.0
 *
 * From a tree to a flatbuffer.
 *
 * Planning gives every part its place and finds the size; writing hands the bytes out in order, so that
 * they can go to memory or to a file without standing anywhere in between.  Order: the root's offset,
 * the identifier, every table with what it leads to behind it, then the large vectors (those aligned to
 * more than 8 bytes, Buffer.data), so that what opening reads lies together; then, behind the
 * flatbuffer, what OUTSIDE cells stand for, aligned to 16.
 *
 * A vtable stands once, before the first table that has it.  A large vector or an outside run whose
 * bytes are the same memory as another's stands once; with `share_equal`, one whose bytes are equal.
 */
#ifndef TQ_FLATBUFFER_WRITER_H
#define TQ_FLATBUFFER_WRITER_H

#include "base/sink.h"
#include "flatbuffer/tree.h"

#define TQ_FLATBUFFER_LIMIT INT32_MAX /* bytes; what FlatBuffers' own verifier takes */

typedef struct tq_plan {
    tq_tree *tree;
    tq_region region;
    struct tq_vtable **vtables; /* a hash table of vtable_room places */
    size_t vtable_count, vtable_room;
    tq_cell **large, **outside;
    size_t large_count, large_room, outside_count, outside_room;
    bool share_equal;
    uint64_t writing; /* marks the nodes that this plan has met */
    uint64_t flatbuffer_size, size;
} tq_plan;

/* Plans the tree as it is; it must not change until the plan is closed.  Fails with TQ_TOO_LARGE where
   the flatbuffer would pass `limit`, TQ_BAD_ARGUMENT where a table occurs twice, TQ_NO_MEMORY. */
tq_status tq_plan_open(tq_tree *tree, uint64_t limit, bool share_equal, tq_plan *out, tq_error *error);

/* Hands out plan->size bytes. */
tq_status tq_plan_write(tq_plan *plan, const tq_sink *sink, tq_error *error);

void tq_plan_close(tq_plan *plan);

#endif
