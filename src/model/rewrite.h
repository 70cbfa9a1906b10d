/* SPDX-License-Identifier: Apache-2.0
 *
 * A model as a tree that can be changed, and back to a file.
 *
 * Data behind the flatbuffer (Buffer.offset and size, an operator's large_custom_options_offset and _size)
 * become TQ_CELL_OUTSIDE cells, whose bytes the writer puts behind the new flatbuffer.  An offset that leads out
 * of the file stays a scalar.
 */
#ifndef TQ_MODEL_REWRITE_H
#define TQ_MODEL_REWRITE_H

#include "flatbuffer/writer.h"
#include "model/model.h"

/* A new tree of an open model, whose bytes must outlive the tree.  Fails as tq_tree_read does. */
tq_status tq_rewrite_open(const tq_model *model, tq_tree *out, tq_error *error);

/* A new tree of an empty model: version 3, and the file identifier.  TQ_NO_MEMORY. */
tq_status tq_rewrite_new(const tq_allocator *allocator, tq_tree *out, tq_error *error);

/* Stores a Buffer's bytes, which must outlive the tree, inside the flatbuffer, or outside where they are too many. data
   NULL: removes them.  TQ_NO_MEMORY. */
tq_status tq_buffer_node_set(tq_tree *tree, tq_tree_node *buffer, tq_bytes bytes, tq_error *error);

/* The cell of a Buffer's bytes, inside the flatbuffer or outside; NULL: none. */
tq_cell *tq_buffer_node_cell(const tq_tree_node *buffer);

/* Stores a maker of `size` bytes, which runs whenever the tree is written.  TQ_NO_MEMORY. */
tq_status tq_buffer_node_make(tq_tree *tree, tq_tree_node *buffer, tq_maker *maker, uint64_t size, tq_error *error);

/* tq_plan_open, but where the flatbuffer would pass `limit` bytes, constants move outside.  The caller writes any data
   that follow, such as a file's trailing archive. */
tq_status tq_rewrite_plan(tq_tree *tree, uint64_t limit, bool share_equal, tq_plan *out, tq_error *error);

#endif
