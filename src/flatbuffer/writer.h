/* SPDX-License-Identifier: Apache-2.0
 *
 * From a tree to a flatbuffer.
 *
 * Planning assigns an offset to every object and finds the size.  Writing hands the bytes to a sink in order, without a
 * copy in between.  Order: the root's offset, the identifier, every table followed by its targets, then the trailing
 * data: the large vectors (aligned to more than 8 bytes: Buffer.data) and, behind the flatbuffer, the bytes of
 * TQ_CELL_OUTSIDE, aligned to 16.  So all bytes that opening reads lie together.
 *
 * A vtable is written once, before its first table.  Trailing data of several cells that borrow the same memory is
 * written once; with share_equal, trailing data with equal bytes, too.
 */
#ifndef TQ_FLATBUFFER_WRITER_H
#define TQ_FLATBUFFER_WRITER_H

#include "base/sink.h"
#include "flatbuffer/tree.h"

#define TQ_FLATBUFFER_LIMIT INT32_MAX /* bytes; the limit of FlatBuffers' own verifier */

typedef struct tq_plan {
    tq_tree *tree;
    tq_region region;
    struct tq_vtable **vtables; /* a hash table of vtable_room entries */
    size_t vtable_count, vtable_room;
    tq_cell **large, **outside; /* trailing data: lists of cells */
    size_t large_count, large_room, outside_count, outside_room;
    bool share_equal;
    uint64_t writing; /* tq_tree_node.written of the nodes of this plan */
    uint64_t flatbuffer_size, size; /* bytes; size: of the whole file */
} tq_plan;

/* Plans the tree, which must not change until the plan is closed.  limit: of the flatbuffer, in bytes; more than
   TQ_FLATBUFFER_LIMIT is that.  TQ_TOO_LARGE: the flatbuffer passes the limit; TQ_DEPTH_BUDGET; TQ_BAD_ARGUMENT: a node
   occurs twice; TQ_NO_MEMORY. */
tq_status tq_plan_open(tq_tree *tree, uint64_t limit, bool share_equal, tq_plan *out, tq_error *error);

/* Writes plan->size bytes to the sink.  Fails as the sink or a maker does; TQ_NO_MEMORY. */
tq_status tq_plan_write(tq_plan *plan, const tq_sink *sink, tq_error *error);

/* Releases all memory of the plan. */
void tq_plan_close(tq_plan *plan);

#endif
