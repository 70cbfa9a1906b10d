/* SPDX-License-Identifier: Apache-2.0
 *
 * A model as a tree that can be changed, and back to a file.
 *
 * What a model stores behind its flatbuffer, and finds by Buffer.offset and size or by an operator's
 * large_custom_options_offset and _size, becomes OUTSIDE cells, whose bytes the writer puts behind
 * what it writes.  An offset that leads out of the file stays the number that it is.
 */
#ifndef TQ_MODEL_REWRITE_H
#define TQ_MODEL_REWRITE_H

#include "flatbuffer/writer.h"
#include "model/model.h"

/* The tree of an open model, whose bytes must outlive it.  Fails as tq_tree_read does. */
tq_status tq_rewrite_open(const tq_model *model, tq_tree *out, tq_error *error);

/* The tree of a model without anything: version 3, and the file identifier. */
tq_status tq_rewrite_new(const tq_allocator *allocator, tq_tree *out, tq_error *error);

/* Gives a buffer its bytes, which must outlive the tree, inside the flatbuffer; data NULL takes them away. */
tq_status tq_buffer_node_set(tq_tree *tree, tq_tree_node *buffer, tq_bytes bytes, tq_error *error);

/* The cell that holds a buffer's bytes, inside the flatbuffer or outside; NULL where it has none. */
tq_cell *tq_buffer_node_cell(const tq_tree_node *buffer);

/* Gives a buffer bytes that are made when they are written. */
tq_status tq_buffer_node_make(tq_tree *tree, tq_tree_node *buffer, tq_maker *maker, uint64_t size, tq_error *error);

/* tq_plan_open; a flatbuffer that would pass `limit` gets its constants moved outside.  What is to
   stand behind all that, such as a file's trailing archive, is the caller's. */
tq_status tq_rewrite_plan(tq_tree *tree, uint64_t limit, bool share_equal, tq_plan *out, tq_error *error);

#endif
